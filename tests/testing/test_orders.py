"""`koi test --orders`: tests run in many orders of parallel work, and an order that fails is named and repeated."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from koi_lang.errors import UsageError
from koi_lang.testing import blocks
from koi_lang.testing.cases import CaseOutcome
from koi_lang.testing.loops import Overtime
from koi_lang.testing.orders import Orders, Walk, explore
from tests.projects import Project

PROGRAM = """
role Worker { can execute, can registry }

agent Till : Worker {
  state { total = 0, open = true, sold = [] }
  on add(args: { pieces: int }) {
    const before = this.state.total
    await registry.get("price")
    this.state.total = before + args.pieces
  }
  on sell(args: { what: string }) {
    if (this.state.open) {
      await registry.set(args.what, "sold")
      this.state.sold.push({ what: args.what, open: this.state.open })
    }
  }
  on close() {
    await registry.get("price")
    this.state.open = false
  }
  on total() { return this.state.total }
  on sold() { return this.state.sold }
}

agent Clerk : Worker {
  on tell(args: { text: string }) { await registry.get("price")  console.log(args.text) }
  on wait(args: { seconds: int }) { await new Promise(done => setTimeout(done, args.seconds * 1000)) }
  on think(args: { about: string }) { playbook "Think about {{args.about}}." }
  on say(args: { text: string }) { return args.text }
}
"""
# Each holds in one order or more, and in another one it does not.
RACES: Mapping[str, str] = {
    "lost update": """
      const later = async () => { await Clerk.wait({ seconds: 1 })  await Till.add({ pieces: 2 }) }
      await Promise.all([Till.add({ pieces: 1 }), later()])
      expect await Till.total() == 3
    """,
    "check, then act": """
      await Promise.all([Till.sell({ what: "tea" }), Till.close()])
      for (const each of await Till.sold()) { expect each.open }
    """,
    "claimed twice": """
      let done = 0
      const claim = async (wait) => {
        await Clerk.wait({ seconds: wait })
        if (await registry.get("task") == null) {
          await registry.set("task", "taken")
          done += 1
        }
      }
      await Promise.all([claim(1), claim(5)])
      expect done == 1
    """,
    "order of prints": """
      await Promise.all([Clerk.tell({ text: "one" }), Clerk.tell({ text: "two" })])
      expect output == ["one", "two"]
    """,
    "two writes": """
      await Promise.all([registry.set("price", 1), registry.set("price", 2)])
      expect await registry.get("price") == 2
    """,
    "each waits for the other": """
      let left, right
      const first = async () => { await registry.get("a")  if (left == null) { right = 1 } else { await left } }
      const second = async () => {
        await registry.get("b")
        if (right == null) { left = new Promise(() => {}) }
      }
      await Promise.all([first(), second()])
    """,
    "a timer before an answer": """
      given model answers { "about tea": [{ actionType: "direct", intent: "return", data: "black" }] }
      let found = "nothing"
      const late = async () => { await Clerk.wait({ seconds: 30 })  if (found == "nothing") { found = "late" } }
      const think = async () => { const answer = await Clerk.think({ about: "tea" })  found = answer + found }
      await Promise.all([late(), think()])
      expect found == "blacknothing"
    """,
}


def run_in(project: Project, body: str, orders: Orders) -> CaseOutcome:
    """The outcome of a test in these orders."""
    path = project.write("main.test.koi", f'{PROGRAM}test "this" {{ {body} }}')
    (case,) = blocks.collect(path, False)
    assert isinstance(case, blocks.TestBlock), getattr(case, "message", "")
    return replace(case, orders=orders).run()


@pytest.mark.parametrize("name", RACES)
def test_a_race_is_found_and_repeated(project: Project, name: str) -> None:
    """Within fifty orders; the order that the failure names fails each time in the same way."""
    found = run_in(project, RACES[name], Orders(50))
    order = found.message.rpartition("--order ")[2].partition("`")[0]
    again = [run_in(project, RACES[name], Orders(1, only=order)) for _ in range(2)]

    assert (False, True) == (found.ok, found.orders <= 50)
    messages = [each.message.partition("  = order: ")[0] for each in (found, *again)]
    assert messages == messages[:1] * 3


def test_the_failure_says_what_came_before_what(project: Project) -> None:
    """With as few steps as it needs, and the command that runs it again."""
    others = "".join(f'Clerk.tell({{ text: "{number}" }}), ' for number in range(4))
    body = f"""
      const order = []
      const note = async (name, work) => {{ await work  order.push(name) }}
      await Promise.all([
        {others} note("one", Clerk.tell({{ text: "one" }})), note("two", Clerk.tell({{ text: "two" }})),
      ])
      expect order == ["one", "two"]
    """

    found = run_in(project, body, Orders(50, "a seed"))

    assert found.message.partition("  = order: ")[2].split("\n")[1:] == [
        "    `registry.get` in `Clerk.tell` of branch 7 came before `registry.get` in `Clerk.tell` of branch 2"
    ]


@pytest.mark.parametrize(
    ("body", "orders"),
    [
        ("await Clerk.tell({ text: 'a' })", 1),
        ("await Promise.all([Clerk.say({ text: 'a' }), Clerk.say({ text: 'b' })])", 1),
        ("await Promise.all([Clerk.tell({ text: 'a' }), Clerk.tell({ text: 'b' })])", 4),
        ("await Promise.all([1, 2, 3].map(n => registry.get(`key-${n}`)))", 12),
        # Timers fire in the order of the clock; what else happens may come before or after each.
        ("await Promise.all([Clerk.wait({ seconds: 2 }), Clerk.wait({ seconds: 1 })])", 1),
        ("await Promise.all([Clerk.wait({ seconds: 1 }), Clerk.tell({ text: 'a' })])", 4),
    ],
)
def test_equal_orders_are_left_out(project: Project, body: str, orders: int) -> None:
    """A test ends when all its orders have been taken, with effects that are performed at once and late."""
    found = run_in(project, body, Orders(50))

    assert (True, orders) == (found.ok, found.orders), found.message


def test_programs_without_shared_state_have_one_result(project: Project) -> None:
    """Whatever they wait for, and however their branches are nested."""
    for number in range(20):
        chance = random.Random(number)
        body = f"""
          const work = {branches(chance, 3)}
          expect JSON.stringify(await work()) == {expected(random.Random(number), 3)!r}
        """
        found = run_in(project, body, Orders(10))
        assert found.ok, found.message


def branches(chance: random.Random, depth: int) -> str:
    """An asynchronous function that returns its own number and what its branches return."""
    own, waits = chance.randrange(100), chance.choice(["registry.get('price')", "Clerk.wait({ seconds: 3 })", "0"])
    parts = [branches(chance, depth - 1) for _ in range(chance.randrange(3) if depth else 0)]
    inside = ", ".join(f"({part})()" for part in parts)
    return f"async () => {{ await {waits}  return [{own}, ...await Promise.all([{inside}])] }}"


def expected(chance: random.Random, depth: int) -> str:
    """What such a function returns, as JSON."""
    own, _ = chance.randrange(100), chance.choice(["", "", ""])
    parts = [expected(chance, depth - 1) for _ in range(chance.randrange(3) if depth else 0)]
    return f"[{','.join([str(own), *parts])}]"


def test_the_command_runs_a_test_in_its_orders(project: Project) -> None:
    """It fails where one order does, names the order, and runs it alone."""
    project.write("main.test.koi", f'{PROGRAM}test "prints" {{ {RACES["order of prints"]} }}')

    found = project.koi("test", "--orders", "20")
    verbose = project.koi("test", "--orders", "20", "-v", "--json")
    again = project.koi("test", "main.test.koi::prints", "--order", "1:1")
    first = project.koi("test", "main.test.koi::prints", "--order", "first")

    assert '"orders": 3' in verbose.stdout
    assert (1, 1, 0) == (found.returncode, again.returncode, first.returncode)
    assert "`koi test main.test.koi::prints --order 1:1` runs it again:" in found.stdout


def test_an_order_that_a_test_does_not_have_fails(project: Project) -> None:
    """As after the test or the program was changed: that nothing fails in it says nothing."""
    found = run_in(project, RACES["order of prints"], Orders(1, only="9:1"))

    assert (False, "error: this test has no order `9:1`, but fewer choices than that names") == (
        found.ok,
        found.message.partition("\n")[0],
    )


def test_an_order_without_an_end_is_named() -> None:
    """With its number, and as far as it has come; those before it have passed."""

    def run(walk: Walk) -> CaseOutcome:
        slots = [("end", ("A.f#1", f"~{branch}", "registry.get#1")) for branch in (1, 2)]
        if walk.choose(slots, False):
            raise Overtime
        return CaseOutcome(True)

    with pytest.raises(Overtime) as raised:
        explore(Orders(50), "this", run)

    assert ["  = order: the time was over in order 2, `--order 1:1`"] == raised.value.__notes__


def test_options_that_do_not_go_together(project: Project) -> None:
    """A seed without orders, or one order of many, is told, not passed over."""
    project.write("main.test.koi", 'test "adds" { expect 1 + 1 == 2 }')

    seed = project.koi("test", "--seed", "q")
    both = project.koi("test", "--orders", "5", "--order", "1:1")

    assert (2, 2) == (seed.returncode, both.returncode)
    assert "Write `--orders N` with it." in seed.stderr
    assert "Write one of the two." in both.stderr


@pytest.mark.parametrize("text", ["1", "1:a", "1:1,", "last", "1:1;2:2", "first,1:1"])
def test_what_is_no_order_is_refused(text: str) -> None:
    """With the way to get one."""
    with pytest.raises(UsageError, match="is no order") as raised:
        Orders(1, only=text)

    assert raised.value.help == "take the one that a failure of `koi test --orders` names."
