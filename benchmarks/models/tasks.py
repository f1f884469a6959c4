"""The tasks: small programs with one playbook each, and exactly what must come of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AGENT, EVENT = "Bench", "solve"
# Stands for a result that is not compared.
ANY = object()


@dataclass(frozen=True, slots=True)
class Task:
    """One playbook and its expected effects.

    Attributes:
        playbook: its sentences; `${args.x}` stands for a value of `args`.
        type: the result type as Koi writes it; empty for none.
        result: the only right result, or `ANY`. Letter case, outer blanks and a last full stop of texts do not count.
        can: permissions of the agent's role.
        declarations: teams, skills and other agents of the program.
        parts: what the agent has beside its handler, such as `uses team House`.
        output: the lines that it must print, and no others.
        answers: what the person answers, one for each question that must be asked.
        state: the values that fields of the agent's state must have been set to.
    """

    name: str
    playbook: str
    args: Mapping[str, Any] = field(default_factory=dict)
    type: str = ""
    result: Any = ANY
    can: str = "answer"
    declarations: str = ""
    parts: str = ""
    output: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """The text of its program."""
        playbook = textwrap.indent(self.playbook.strip(), " " * 6)
        type = f": {self.type}" if self.type else ""
        return (
            f"role Solver {{ can {self.can} }}\n{self.declarations}\nagent {AGENT} : Solver {{\n  {self.parts}\n"
            f'  on {EVENT}(args: Json){type} {{\n    playbook """\n{playbook}\n    """\n  }}\n}}\n'
        )

    @property
    def functions(self) -> list[str]:
        """The functions that stand for its actions, members and skills where another library carries it out."""
        if self in ANSWERS:
            return []
        state = ["set_state"] if "state" in self.parts else []
        team = ["ask_cook", "order_flowers"] if self.declarations == TEAM else []
        return ["print_line", "ask_person", *state, *team, *(["price", "code"] if self.declarations == SKILL else [])]

    @property
    def prompt(self) -> str:
        """The playbook with its values in place, for those that have no playbooks."""
        return re.sub(r"\$\{args\.(\w+)\}", lambda match: str(self.args[match[1]]), self.playbook)


TEAM = """
role Expert { can advise }
agent Cook : Expert {
  affordance "Knows about food."
  on suggest(args: { guests: number }) { affordance "Suggest a meal" return `stew 7Q for ${args.guests}` }
}
agent Gardener : Expert {
  affordance "Knows about flowers."
  on order(args: { guests: number }): { tulips: number } {
    affordance "Order flowers"
    return { tulips: args.guests * 3 + 1 }
  }
}
team House { cook: Cook, gardener: Gardener }
"""
SKILL = """
skill Prices {
  affordance "Computes prices."
  export function price(net: number): number { affordance "The price with taxes" return net * 2 + 7 }
  export function code(name: string): string { affordance "The code of a product" return `${name}-7Q` }
}
"""

ANSWERS = (
    Task(
        "city",
        "Read this text: ${args.text}\nReturn the name of the city and the number of its inhabitants.",
        {"text": "Lyon has 520000 inhabitants."},
        "{ city: string, inhabitants: int }",
        {"city": "Lyon", "inhabitants": 520000},
    ),
    Task(
        "sentiment",
        "A customer writes: ${args.text}\nReturn whether this is positive, negative or neutral.",
        {"text": "I love this phone, it is wonderful!"},
        '"positive" | "negative" | "neutral"',
        "positive",
    ),
    Task(
        "complaint",
        "A customer writes: ${args.text}\nReturn whether this is a complaint.",
        {"text": "The parcel arrived broken and nobody answers the phone."},
        "{ complaint: boolean }",
        {"complaint": True},
    ),
    Task("sum", "Return the sum of ${args.a} and ${args.b}.", {"a": 17, "b": 25}, "{ sum: int }", {"sum": 42}),
    Task(
        "colors",
        "Return the colors that this text names, in their order: ${args.text}",
        {"text": "A red boat, a green door and a blue hat."},
        "{ colors: string[] }",
        {"colors": ["red", "green", "blue"]},
    ),
    Task(
        "person",
        "Return the name and the age of the person in this text: ${args.text}",
        {"text": "Maria is a nurse. She is 34 years old."},
        "{ name: string, age: int }",
        {"name": "Maria", "age": 34},
    ),
    Task(
        "date",
        "Return year, month and day of this date as numbers: ${args.date}",
        {"date": "5 March 2024"},
        "{ year: int, month: int, day: int }",
        {"year": 2024, "month": 3, "day": 5},
    ),
    Task(
        "language",
        "Return the language of this sentence: ${args.text}",
        {"text": "Le chat dort sur la table."},
        '{ language: "English" | "French" | "German" }',
        {"language": "French"},
    ),
    Task("capital", "Return the capital of ${args.country}.", {"country": "France"}, "string", "Paris"),
    Task("opposite", "Return the opposite of the word `${args.word}`.", {"word": "hot"}, "string", "cold"),
    Task("translation", "Return the French word for `${args.word}`.", {"word": "cat"}, "string", "chat"),
    Task(
        "email",
        "Return the mail address in this text: ${args.text}",
        {"text": "Please write to ann.lee@example.org or call us."},
        "{ address: string }",
        {"address": "ann.lee@example.org"},
    ),
    Task(
        "invoice",
        "Return the total of this invoice and its currency: ${args.text}",
        {"text": "Tea 3.50, cake 4.00. Total: 7.50 euros."},
        '{ total: number, currency: "EUR" | "USD" }',
        {"total": 7.5, "currency": "EUR"},
    ),
    Task(
        "order",
        "Return what is ordered here: ${args.text}",
        {"text": "I want 12 pencils, please."},
        "{ order: { item: string, count: int } }",
        {"order": {"item": "pencils", "count": 12}},
    ),
    Task(
        "people",
        "Return each person of this text with their age: ${args.text}",
        {"text": "Ann is 30. Bob is 41."},
        "{ name: string, age: int }[]",
        [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 41}],
    ),
    Task(
        "priority",
        "Return the priority of this ticket, high if customers cannot work, else low: ${args.text}",
        {"text": "The whole shop is down, nobody can pay!"},
        '{ priority: "low" | "high" }',
        {"priority": "high"},
    ),
    Task(
        "phone",
        "Return the name in this text, and the phone number if there is one: ${args.text}",
        {"text": "My name is Carl. Write me a letter."},
        "{ name: string, phone?: string }",
        {"name": "Carl"},
    ),
    Task(
        "upper",
        "Return the word `${args.word}` reversed, and how many letters it has.",
        {"word": "tab"},
        "{ reversed: string, letters: int }",
        {"reversed": "bat", "letters": 3},
    ),
    Task(
        "largest",
        "Return the largest of these numbers: ${args.numbers}",
        {"numbers": "4, 19, 7, 12"},
        "int",
        19,
    ),
    Task(
        "animals",
        "Return the animals that this text names, in their order, and how many there are: ${args.text}",
        {"text": "The dog chased the cat, and the horse watched."},
        "{ animals: string[], count: int }",
        {"animals": ["dog", "cat", "horse"], "count": 3},
    ),
)

ACTIONS = (
    Task("print", 'Print "Hello, ${args.name}!"', {"name": "Ada"}, output=("Hello, Ada!",)),
    Task("print twice", 'Print "one". Then print "two".', output=("one", "two")),
    Task(
        "print and return",
        'Print "saved". Then return ok as true.',
        type="{ ok: boolean }",
        result={"ok": True},
        output=("saved",),
    ),
    Task(
        "ask",
        "Ask the person for their name. Return it.",
        type="{ name: string }",
        result={"name": "Ada"},
        answers=("Ada",),
    ),
    Task(
        "ask and print",
        'Ask the person for their name. Then print "Hello, " followed by the name and "!".',
        answers=("Ada",),
        output=("Hello, Ada!",),
    ),
    Task(
        "ask to choose",
        "Ask the person whether they want tea or coffee. Return the drink.",
        type='{ drink: "tea" | "coffee" }',
        result={"drink": "coffee"},
        answers=("coffee",),
    ),
    Task(
        "ask twice",
        "Ask the person for their first name. Then ask for their last name. Return both.",
        type="{ first: string, last: string }",
        result={"first": "Ada", "last": "Stone"},
        answers=("Ada", "Stone"),
    ),
    Task(
        "delegate",
        "Ask the cook to suggest a meal for ${args.guests} guests. Return the meal.",
        {"guests": 4},
        "{ meal: string }",
        {"meal": "stew 7Q for 4"},
        "delegate",
        TEAM,
        "uses team House",
    ),
    Task(
        "delegate and print",
        "Ask the cook to suggest a meal for ${args.guests} guests. Print the meal.",
        {"guests": 6},
        can="delegate",
        declarations=TEAM,
        parts="uses team House",
        output=("stew 7Q for 6",),
    ),
    Task(
        "delegate typed",
        "Have the gardener order flowers for ${args.guests} guests. Return how many tulips were ordered.",
        {"guests": 5},
        "{ tulips: int }",
        {"tulips": 16},
        "delegate",
        TEAM,
        "uses team House",
    ),
    Task(
        "delegate twice",
        "For ${args.guests} guests, ask the cook to suggest a meal and have the gardener order flowers. "
        "Return the meal and the number of tulips.",
        {"guests": 2},
        "{ meal: string, tulips: int }",
        {"meal": "stew 7Q for 2", "tulips": 7},
        "delegate",
        TEAM,
        "uses team House",
    ),
    Task("loop", "Print each number from 1 to 3 on its own.", can="execute", output=("1", "2", "3")),
    Task(
        "loop over a list",
        "Print each of these names on its own: ${args.names}",
        {"names": ["Ann", "Bob", "Cy"]},
        can="execute",
        output=("Ann", "Bob", "Cy"),
    ),
    Task(
        "state",
        "Set the field `count` of the state to 5.",
        can="execute",
        parts="state { count = 0 }",
        state={"count": 5},
    ),
    Task(
        "state from args",
        'Set the field `name` of the state to ${args.name}. Then print "done".',
        {"name": "Ada"},
        can="execute",
        parts='state { name = "" }',
        state={"name": "Ada"},
        output=("done",),
    ),
    Task(
        "skill",
        "Compute the price with taxes of ${args.net}. Return it.",
        {"net": 50},
        "{ price: number }",
        {"price": 107},
        declarations=SKILL,
        parts="uses skill Prices",
    ),
    Task(
        "skill and print",
        "Look up the code of the product ${args.name}. Print the code.",
        {"name": "lamp"},
        declarations=SKILL,
        parts="uses skill Prices",
        output=("lamp-7Q",),
    ),
    Task(
        "ask and skill",
        "Ask the person for a product. Look up the code of that product and return it.",
        type="{ code: string }",
        result={"code": "sofa-7Q"},
        answers=("sofa",),
        declarations=SKILL,
        parts="uses skill Prices",
    ),
    Task(
        "condition",
        'If ${args.age} is less than 18, print "too young", otherwise print "welcome".',
        {"age": 12},
        can="execute",
        output=("too young",),
    ),
    Task(
        "ask and decide",
        'Ask the person whether to go on, yes or no. If the answer is yes, print "going on", otherwise print "stop".',
        answers=("no",),
        can="execute",
        output=("stop",),
    ),
)

TASKS = {"answers": ANSWERS, "actions": ACTIONS}


def normalize(value: Any) -> Any:
    """A result as it is compared: texts without letter case, outer blanks and a last full stop."""
    match value:
        case str():
            return value.strip().rstrip(".").casefold()
        case Mapping():
            return {name: normalize(each) for name, each in value.items()}
        case list() | tuple():
            return [normalize(each) for each in value]
    return value
