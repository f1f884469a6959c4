"""Handlers with the actions that a model would take in them, by which explanations are judged."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from koi_lang.freezing.recordings import RecordedCall, RecordedStep

TODAY = "Sunday, 2026-11-29, Etc/UTC"
Done = tuple[str, dict[str, Any], Any]
NAMES = ("Ada", "Alan", "Grace", "Edsger", "Barbara", "Donald", "Tony", "Niklaus")
GOODS = ("tea", "cup", "pot", "jam", "pie", "nut", "oil", "rye")


@dataclass(frozen=True, slots=True)
class HandlerCase:
    """A handler.

    Attributes:
        payload: makes one of random ones.
        work: what its model does with a payload and a state.
        special: payloads that are recorded beside random ones, such as one at a limit.
    """

    playbook: str
    payload: Callable[[random.Random], dict[str, Any]]
    work: Callable[[Mapping[str, Any], Mapping[str, Any]], Sequence[Done]]
    special: Sequence[dict[str, Any]] = ()
    state: Callable[[random.Random], dict[str, Any]] = field(default=lambda rng: {})

    def record(self, name: str, count: int, seed: int, *, has_special: bool = True) -> list[RecordedCall]:
        """Some recordings; the special ones come first."""
        rng, given = random.Random(f"{name} {seed}"), list(self.special) if has_special else []
        given += [self.payload(rng) for _ in range(count - len(given))]
        return [self._read_recordings(f"run{n}", args, self.state(rng)) for n, args in enumerate(given[:count])]

    def _read_recordings(self, run: str, args: dict[str, Any], state: dict[str, Any]) -> RecordedCall:
        now, steps = dict(state), list[RecordedStep]()
        for intent, fields, result in self.work(args, state):
            steps.append(RecordedStep(intent, fields, result, dict(now)))
            now.update(fields.get("updates", {}))
        return RecordedCall(run, TODAY, self.playbook, args, state, tuple(steps))


def two(value: float) -> float:
    """A number with two decimals, whole where it is."""
    rounded = math.floor(value * 100 + 0.5) / 100
    return int(rounded) if rounded.is_integer() else rounded


def goods(rng: random.Random, least: int = 1) -> list[dict[str, Any]]:
    """Some articles."""
    return [
        {
            "name": f"{rng.choice(GOODS)}{rng.randint(10, 99)}",
            "price": rng.randint(100, 9000) / 100,
            "left": rng.randint(0, 20),
        }
        for _ in range(rng.randint(least, 4))
    ]


def show(message: str) -> Done:
    """A line that is printed."""
    return "print", {"message": message}, {"printed": True, "message": message}


def give(data: Any) -> Done:
    """The result."""
    return "return", {"data": data}, data


def keep(key: str, value: Any) -> Done:
    """A value in the registry."""
    return "registry_set", {"key": key, "value": value}, {"success": True, "key": key, "saved": True}


def ask(member: str, data: dict[str, Any], result: Any) -> Done:
    """Something that a member does."""
    return member, {"data": data}, result


def price_of(name: str) -> int:
    """What a member knows."""
    return sum(map(ord, name)) * 7 % 900 + 11


def _points(id: str) -> dict[str, Any]:
    return {"name": f"N{price_of(id[::-1] + 'q') ** 2}", "points": price_of(id)}


EXPLAINABLE: Mapping[str, HandlerCase] = {
    "greet": HandlerCase(
        "Greet ⟨args.name⟩.",
        lambda rng: {"name": rng.choice(NAMES)},
        lambda args, state: [show(f"Hello, {args['name']}!"), give({})],
    ),
    "add": HandlerCase(
        "Return the sum of ⟨args.a⟩ and ⟨args.b⟩.",
        lambda rng: {"a": rng.randint(1, 1000), "b": rng.randint(1, 1000), "c": rng.randint(1, 1000)},
        lambda args, state: [give({"sum": args["a"] + args["b"]})],
    ),
    "invoice": HandlerCase(
        "Print the net sum of the hours at the rate, and return the tax, which is 0.19 of it.",
        lambda rng: {"hours": rng.randint(2, 90), "rate": rng.randint(2000, 9999) / 100},
        lambda args, state: [
            show(f"Net {two(args['hours'] * args['rate']):.2f}"),
            give({"tax": two(args["hours"] * args["rate"] * 0.19)}),
        ],
    ),
    "send to all": HandlerCase(
        "Have a mail sent to each of the people.",
        lambda rng: {"people": rng.sample(NAMES, rng.randint(1, 5)), "subject": rng.choice(GOODS)},
        lambda args, state: [
            *(
                ask("mail::send", {"to": each, "subject": f"{args['subject']} for {each}"}, {})
                for each in args["people"]
            ),
            give({"sent": len(args["people"])}),
        ],
    ),
    "approve above": HandlerCase(
        "When the amount is over 100, have the boss approve it first. Then store it under its number.",
        lambda rng: {
            "amount": rng.choice([rng.randint(5, 99), rng.randint(101, 900)]),
            "number": f"n{rng.randint(1000, 9999)}",
        },
        lambda args, state: [
            *([ask("boss::approve", {"amount": args["amount"]}, {})] if args["amount"] > 100 else []),
            keep(f"bill-{args['number']}", args["amount"]),
            give({}),
        ],
        special=(
            {"amount": 100, "number": "n1111"},
            {"amount": 340, "number": "n2222"},
            {"amount": 101, "number": "n2323"},
            {"amount": 35, "number": "n3333"},
        ),
    ),
    "express": HandlerCase(
        "Store the parcel. If it is express, call the driver, too.",
        lambda rng: {"id": f"p{rng.randint(1000, 9999)}", "express": rng.random() < 0.5},
        lambda args, state: [
            keep(args["id"], "stored"),
            *([ask("driver::call", {"parcel": args["id"]}, {})] if args["express"] else []),
            give({}),
        ],
        special=(
            {"id": "p1234", "express": True},
            {"id": "p4321", "express": False},
            {"id": "p5678", "express": True},
        ),
    ),
    "count up": HandlerCase(
        "Count the visit of ⟨args.name⟩.",
        lambda rng: {"name": rng.choice(NAMES)},
        lambda args, state: [
            ("update_state", {"updates": {"visits": state["visits"] + 1}}, {}),
            show(f"{args['name']} is visitor {state['visits'] + 1}"),
            give({}),
        ],
        state=lambda rng: {"visits": rng.randint(3, 900)},
    ),
    "count paid": HandlerCase(
        "Return how many bills are paid.",
        lambda rng: {
            "bills": [{"id": rng.randint(1, 999), "paid": rng.random() < 0.5} for _ in range(rng.randint(2, 9))]
        },
        lambda args, state: [give({"paid": sum(each["paid"] for each in args["bills"])})],
    ),
    "names": HandlerCase(
        "Print the names of the articles.",
        lambda rng: {"articles": goods(rng)},
        lambda args, state: [show(f"Articles: {', '.join(each['name'] for each in args['articles'])}"), give({})],
    ),
    "points": HandlerCase(
        "Look the user up and say the points.",
        lambda rng: {"user": f"u{rng.randint(100, 999)}"},
        lambda args, state: [
            ("registry_get", {"key": f"user:{args['user']}"}, {"found": True, "value": _points(args["user"])}),
            show(f"{_points(args['user'])['name']} has {_points(args['user'])['points']} points"),
            give(_points(args["user"])["points"]),
        ],
    ),
    "price": HandlerCase(
        "Ask for the price of the article, and return what the pieces cost.",
        lambda rng: {"article": f"{rng.choice(GOODS)}{rng.randint(10, 99)}", "pieces": rng.randint(2, 40)},
        lambda args, state: [
            ask("shop::price", {"article": args["article"]}, {"price": price_of(args["article"])}),
            give({"cost": price_of(args["article"]) * args["pieces"]}),
        ],
    ),
    "nested": HandlerCase(
        "Print each article of each order.",
        lambda rng: {
            "orders": [
                {"id": rng.randint(1, 99), "articles": rng.sample(GOODS, rng.randint(1, 3))}
                for _ in range(rng.randint(1, 3))
            ]
        },
        lambda args, state: [
            *(show(f"{order['id']}: {each}") for order in args["orders"] for each in order["articles"]),
            give({}),
        ],
    ),
    "average": HandlerCase(
        "Return the average of the numbers, with two decimals.",
        lambda rng: {"numbers": [rng.randint(1, 99) for _ in range(rng.randint(2, 7))]},
        lambda args, state: [give({"average": two(sum(args["numbers"]) / len(args["numbers"]))})],
    ),
    "is big": HandlerCase(
        "Return whether the total is more than 50.",
        lambda rng: {"total": rng.choice([rng.randint(1, 49), rng.randint(51, 99)])},
        lambda args, state: [give({"big": args["total"] > 50})],
        special=({"total": 50}, {"total": 70}, {"total": 20}, {"total": 51}),
    ),
    "status": HandlerCase(
        "Print `paid` or `open` behind the number of the bill.",
        lambda rng: {"number": rng.randint(100, 999), "is_paid": rng.random() < 0.5},
        lambda args, state: [show(f"{args['number']}: {'paid' if args['is_paid'] else 'open'}"), give({})],
        special=(
            {"number": 123, "is_paid": True},
            {"number": 234, "is_paid": False},
            {"number": 345, "is_paid": True},
            {"number": 456, "is_paid": False},
        ),
    ),
    "address": HandlerCase(
        "Store the address of the customer.",
        lambda rng: {
            "customer": rng.choice(NAMES),
            "address": {"street": f"S{rng.randint(1, 99)}", "zip": rng.randint(10000, 99999)},
        },
        lambda args, state: [keep(f"address:{args['customer']}", args["address"]), give({})],
    ),
    "with shipping": HandlerCase(
        "Return the price of the pieces with the shipping.",
        lambda rng: {"pieces": rng.randint(2, 40), "price": rng.randint(11, 900), "shipping": rng.randint(3, 97)},
        lambda args, state: [give({"cost": args["pieces"] * args["price"] + args["shipping"]})],
    ),
    "ask how many": HandlerCase(
        "Ask the person how many of the article they want, and store the answer.",
        lambda rng: {"article": f"{rng.choice(GOODS)}{rng.randint(10, 99)}"},
        lambda args, state: [
            ("prompt_user", {"question": f"How many {args['article']}?"}, {"answer": str(price_of(args["article"]))}),
            keep(f"wanted:{args['article']}", str(price_of(args["article"]))),
            give({}),
        ],
    ),
    "reorder": HandlerCase(
        "Order each article of which less than 5 are left.",
        lambda rng: {"articles": goods(rng, 2)},
        lambda args, state: [
            *(ask("shop::order", {"name": each["name"]}, {}) for each in args["articles"] if each["left"] < 5),
            give({}),
        ],
        special=(
            {"articles": [{"name": "tea1", "price": 2.5, "left": 5}, {"name": "jam2", "price": 3.5, "left": 4}]},
            {"articles": [{"name": "rye3", "price": 1.25, "left": 1}, {"name": "oil4", "price": 9.75, "left": 0}]},
        ),
    ),
    "order": HandlerCase(
        "Reserve each article, say what is left, then return the sum of the prices.",
        lambda rng: {"customer": rng.choice(NAMES), "articles": goods(rng)},
        lambda args, state: [
            show(f"Order of {args['customer']}"),
            *(
                done
                for each in args["articles"]
                for done in (
                    ask("stock::reserve", {"name": each["name"]}, {"place": price_of(each["name"])}),
                    show(f"{each['name']} is at {price_of(each['name'])}"),
                )
            ),
            keep(f"order-{args['customer']}", {"count": len(args["articles"])}),
            give({"total": two(sum(each["price"] for each in args["articles"]))}),
        ],
    ),
}


def _mood(text: str) -> str:
    return ("calm", "angry", "glad")[price_of(text) % 3]


UNEXPLAINABLE: Mapping[str, HandlerCase] = {
    "mood": HandlerCase(
        "Say how the author feels.",
        lambda rng: {"text": " ".join(rng.choices(GOODS, k=4))},
        lambda args, state: [give({"mood": _mood(args["text"])})],
    ),
    "capitals": HandlerCase(
        "Print the name in capitals.",
        lambda rng: {"name": rng.choice(NAMES)},
        lambda args, state: [show(args["name"].upper()), give({})],
    ),
    "cheapest first": HandlerCase(
        "Print the articles, the cheapest first.",
        lambda rng: {"articles": goods(rng, 2)},
        lambda args, state: [
            *(show(each["name"]) for each in sorted(args["articles"], key=lambda each: float(each["price"]))),
            give({}),
        ],
    ),
    "made up": HandlerCase(
        "Give the ticket a number.",
        lambda rng: {"title": f"{rng.choice(GOODS)}{rng.randint(10, 99)}"},
        lambda args, state: [keep(f"T-{price_of(args['title'])}", args["title"]), give({})],
    ),
    "today": HandlerCase(
        "Store the name with the date.",
        lambda rng: {"name": rng.choice(NAMES)},
        lambda args, state: [keep(f"seen:{args['name']}", "2026-11-29"), give({})],
    ),
}


AMBIGUOUS: Mapping[str, HandlerCase] = {
    "pieces": HandlerCase(
        "Store under `count` how many pieces there are.",
        lambda rng: (lambda count: {"items": list(GOODS[:count]), "pieces": count})(rng.randint(2, 6)),
        lambda args, state: [keep("count", args["pieces"]), give({})],
    ),
    "currency": HandlerCase(
        "Print the amount.",
        lambda rng: {"amount": rng.randint(10, 999), "currency": "EUR"},
        lambda args, state: [show(f"{args['amount']} EUR"), give({})],
    ),
    "echo": HandlerCase(
        "Look the customer up, and greet them by name.",
        lambda rng: {"name": rng.choice(NAMES)},
        lambda args, state: [
            ask("desk::find", {"name": args["name"]}, {"name": args["name"]}),
            show(f"Hello, {args['name']}!"),
            give({}),
        ],
    ),
    "limit": HandlerCase(
        "If the amount is over 100, ask the boss.",
        lambda rng: {"amount": rng.choice([rng.randint(5, 90), rng.randint(110, 900)])},
        lambda args, state: [*([ask("boss::ask", {}, {})] if args["amount"] > 100 else []), give({})],
        special=({"amount": 340}, {"amount": 120}, {"amount": 35}),
    ),
    "two lists": HandlerCase(
        "Print a line for each.",
        lambda rng: (lambda count: {"rows": list(range(count)), "marks": list(GOODS[:count])})(rng.randint(2, 6)),
        lambda args, state: [*(show("row") for _ in args["rows"]), give({})],
    ),
}
