"""The checks of a program: what `koi check --explain` says of them is true, and what golden files do not show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from time import process_time

import pytest

from koi_lang.compiler.analysis import analyse
from koi_lang.compiler.imports import Unit
from koi_lang.compiler.parser import parse
from koi_lang.compiler.rules import check, explanation, explanations, write_out
from koi_lang.compiler.rules.roles import PERMISSIONS
from koi_lang.compiler.rules.table import RULES
from koi_lang.runtime.actions.lookup import all_actions
from koi_lang.source import Source
from tests.support import HERE, diagnostics_of, diagnostics_of_text

EXAMPLE = re.compile(r"^(Wrong|Right):\n\n((?:    [^\n]*\n|\n)+)", re.MULTILINE)
CLEAN = sorted((HERE / "data" / "clean").glob("*.koi"))
GOLDEN = sorted((HERE / "messages" / "rules").glob("*.koi"))
# What the examples import.
OTHERS = {
    "first.koi": "role Worker { can execute }",
    "second.koi": "role Worker { can execute }",
    "roles.koi": "role Worker { can execute }",
    "roles.py": "",
}
WORKER = "role Worker { can execute, can delegate }\n"


def codes(text: str) -> list[str]:
    """The codes of everything that is wrong with a program."""
    return [diagnostic.code for diagnostic in diagnostics_of_text(text, OTHERS)]


def in_handler(code: str) -> str:
    """A program whose only handler consists of some code."""
    return f"{WORKER}agent Clerk : Worker {{ on work(args) {{ {code} }} }}"


@cache
def explained() -> dict[str, str]:
    """What `koi explain` says of each code."""
    return explanations()


def example(code: str, kind: str) -> str:
    """The wrong or the right example of an explanation."""
    return next(dedent(text) for found, text in EXAMPLE.findall(f"{explained()[code]}\n") if found == kind)


@pytest.mark.parametrize("code", RULES)
def test_the_wrong_example_is_reported(code: str) -> None:
    """The wrong example of a rule has the problem that the rule is about, and no other one."""
    assert [code] == codes(example(code, "Wrong"))


@pytest.mark.parametrize("code", RULES)
def test_the_right_example_is_clean(code: str) -> None:
    """Nothing at all is wrong with the right example of a rule."""
    assert codes(example(code, "Right")) == []


@pytest.mark.parametrize("code", ["E0106", "E0107", "E0108", "E0118"])
def test_the_wrong_import_is_reported(code: str) -> None:
    """The wrong examples of imports have the problem that the text explains."""
    others = {**OTHERS, "rules.md": "Be brief.", "prices.ts": "", "unclosed.py": "print(\n"}

    assert [code] == [found.code for found in diagnostics_of_text(example(code, "Wrong"), others)]


@pytest.mark.parametrize("code", RULES)
def test_an_explanation_begins_with_a_sentence(code: str) -> None:
    """The first line of an explanation is a sentence that fits on a line."""
    assert re.fullmatch(r"[A-Z`].{10,110}\.", explained()[code].split("\n")[0])


def test_examples_are_whole_programs() -> None:
    """A part of an agent or of a handler gets what belongs around it, on one line where that is not too wide."""
    wide = " + ".join("a" * 24)
    parts = [
        "in handler(a, b): return a",
        "",
        "in agent:",
        "  state { x = 1 }",
        "",
        "  on go() { }",
        "",
        f"in handler: {wide}",
    ]
    shown = write_out("\n".join(part and f"    {part}" for part in parts)).replace(
        "    role Worker { can execute }\n", ""
    )

    assert [
        "    agent Clerk : Worker { on work(a, b) { return a } }", "",
        "    agent Clerk : Worker {", "      state { x = 1 }", "", "      on go() { }", "    }", "",
        "    agent Clerk : Worker {", f"      on work(args) {{ {wide} }}", "    }",
    ] == shown.split("\n")  # fmt: skip
    assert not any(re.search("^ +in (agent|handler)", text, re.MULTILINE) for text in explained().values())


@pytest.mark.parametrize("path", CLEAN, ids=lambda path: path.stem)
def test_a_good_program_is_not_criticised(path: Path) -> None:
    """Programs that use the whole language and its odd but legal habits get no message."""
    assert [(found.code, found.message) for found in diagnostics_of(path)] == []


def test_every_rule_has_a_golden_file() -> None:
    """The wording of every rule can be read in `messages/rules`."""
    shown = {diagnostic.code for path in GOLDEN for diagnostic in diagnostics_of(path)}

    assert set() == RULES.keys() - shown


def test_permissions_of_actions_are_known() -> None:
    """What the built-in actions need is among the permissions that a misspelt one is compared with."""
    needed = {kind.needs for kind in all_actions() if kind.needs}

    assert set() == needed - set(PERMISSIONS)


@pytest.mark.parametrize(
    "code",
    [
        "if (args.a) { this.state.names = [] } this.state.names.push('a')",
        "this.state.names?.push('a')",
        "Object.assign(this.state, args) this.state.names.push('a')",
        "return this.state.names",
    ],
)
def test_a_list_that_may_have_begun_is_not_criticised(code: str) -> None:
    """A field of the state without a value is no mistake where code may have set it, or is careful with it."""
    text = f"{WORKER}agent Clerk : Worker {{ state {{ names: string[] }} on work(args) {{ {code} }} }}"

    assert codes(text) == []


@pytest.mark.parametrize(
    "code",
    [
        "let a: any = 1, b: Json = [], c: string = null, d: Task = 1, e: number | Json = 'x' return [a, b, c, d, e]",
        "let a: string = args.a, b: number = args.a + 'x', c: true | 'x' = true return [a, b, c]",
        "let a: Array<string> = [1], b: String = `x`, c: Int = -1, d: BOOL = !1 return [a, b, c, d]",
    ],
)
def test_values_that_may_be_right_are_not_criticised(code: str) -> None:
    """Only what is written down, and is of another kind than the type says, is told."""
    assert "E0227" not in codes(in_handler(code))


def test_a_type_may_be_what_a_program_declares() -> None:
    """The names of declarations are types, too, and a name is reported once a file."""
    assert codes(in_handler("let a: Clerk = args, b: worker = args return [a, b]")) == []
    assert codes(in_handler("let a: Task = args, b: Task = args return [a, b]")) == ["E0226"]


def test_types_that_payloads_are_not_held_to_are_told() -> None:
    """They are where they are checked, also within declared types; those of variables are for readers."""
    types = "type A = { day: Date, b: B }  type B = { names: keyof A }  type C = { rest: Partial<A> }"
    payload = f"{WORKER}{types} agent D : Worker {{ on a(x: A): Record<string, A> {{ return {{}} }} }} run D.a({{}})"

    assert codes(payload) == ["E0226"] * 3
    assert codes(in_handler("let a: Map<string, Date> = args, b: keyof Json = 1 return [a, b]")) == []


def test_problems_come_in_the_order_of_the_source() -> None:
    """All rules run, and what they find is sorted by place."""
    text = "team T { a: Nobody }\nagent A : Nothing { uses skill None_ }\nprompt P = Q\nrun A.go(1, 2)"

    assert [code for code in codes(text) if code != "E0243"] == ["E0202", "E0201", "E0204", "E0206", "E0207", "E0415"]


def test_an_unused_prompt_does_not_hide_an_error_in_it() -> None:
    """Two rules may find something at one declaration."""
    assert codes(f"{WORKER}prompt P = Q\nagent A : Worker {{ on go(args) {{ }} }}\nrun A.go({{}})") == [
        "E0243",
        "E0206",
    ]


def test_a_name_is_reported_once_a_handler() -> None:
    """A forgotten declaration gives one message, however often the name is used."""
    assert codes(in_handler("console.log(total) return total + total")) == ["E0221"]


def test_a_name_of_another_file_is_advised_to_be_imported() -> None:
    """A file that relies on what its importer declares is told to import it."""
    others = {"part.koi": "agent Clerk : Worker { on work(args) { return Boss } }"}
    found = diagnostics_of_text('import "./part.koi"\nrole Worker { can execute }\nagent Boss : Worker { }', others)

    assert [item.help for item in found] == ['`./test.koi` declares it: write `import "./test.koi"`.'] * 2


def test_circular_imports_know_each_other() -> None:
    """Two files that import each other may use each other's declarations."""
    others = {"part.koi": 'import "./test.koi"\nagent Clerk : Worker { on work(args) { return Boss } }'}

    assert (
        diagnostics_of_text('import "./part.koi"\nrole Worker { can execute }\nagent Boss : Worker { }', others) == []
    )


def test_an_own_declaration_clashes_with_an_imported_one_once() -> None:
    """A file that declares what it imports has an error; files that import it are not told again."""
    others = {"a.koi": 'import "./b.koi"\nrole Worker { can execute }', "b.koi": "role Worker { can think }"}
    found = diagnostics_of_text('import "./a.koi"\nagent A : Worker { }', others)

    assert [(item.code, item.place.source.path, item.others[0].source.path) for item in found] == [
        ("E0211", "a.koi", "b.koi")
    ]


def test_an_import_is_used_at_any_distance() -> None:
    """An import is no waste when what its file imports in turn is used."""
    others = {"a.koi": 'import "./b.koi"', "b.koi": "role Worker { can execute }"}
    program = 'import "./a.koi"\nagent A : Worker { on go(args) { } }\nrun A.go({})'

    assert diagnostics_of_text(program, others) == []


def test_a_python_module_without_a_name_may_be_imported_for_its_effect() -> None:
    """Only a Python import that gives a name must use it."""
    rest = f"{WORKER}agent A : Worker {{ on go(args) {{ }} }}\nrun A.go({{}})"

    assert codes(f'import "./roles.py"\n{rest}') == []
    assert codes(f'import roles from "./roles.py"\n{rest}') == ["E0241"]


@pytest.mark.parametrize(
    "base",
    ["peers", "Crew", "(peers(Crew))", "crew", "args.team", "(args ? Crew : Crew)"],
)
def test_a_team_with_a_tool_is_not_checked(base: str) -> None:
    """Who handles an event is only checked when every possible receiver is an agent of the program."""
    team = "team Crew { tool: mcp://files/search, a: A }\n"
    agent = (
        f'agent A : Worker {{ on go(args) {{ const crew = Crew  await send {base}.event("x").any()({{ crew }}) }} }}'
    )

    assert codes(WORKER + team + agent) == []


def test_a_team_that_lists_the_agent_is_its_peers() -> None:
    """An agent that uses no team speaks to the teams it belongs to."""
    team = "team Crew { a: A, b: B }\nagent B : Worker { on help(args) { } }\n"
    agent = 'agent A : Worker { on go(args) { await send peers.event("%s").any()({}) } }\nrun A.go({})'

    assert codes(WORKER + team + agent % "help") == []
    assert codes(WORKER + team + agent % "hlep") == ["E0231"]


def test_missing_permission_is_told_once_an_agent() -> None:
    """An agent that sends three times lacks its permission once."""
    sends = 'await send Crew.event("go").any()({}) ' * 3
    agent = f"agent A : Worker {{ on go(args) {{ {sends} }} on again(args) {{ {sends} }} }}"

    assert codes(f"role Worker {{ can execute }}\nteam Crew {{ a: A }}\n{agent}") == ["E0401"]


@pytest.mark.parametrize("name", ["try", "catch", "phases", "break", "event"])
def test_words_that_begin_nothing_else_may_name_handlers(name: str) -> None:
    """The words that the JavaScript implementation allows as names of handlers are allowed."""
    assert codes(f"{WORKER}agent A : Worker {{ on {name}(args) {{ }} }}") == []


@pytest.mark.parametrize(
    "use",
    ["this.state.total = 1", "this.state.total++", "Object.assign(this.state, args)", "const me = this  me.go()"],
)
def test_fields_that_code_sets_are_known_to_texts(use: str) -> None:
    """A text may name a field that is not declared when code sets it, or when code may set any field."""
    state = 'state { count = 0 } on tell(args) { playbook "{{state.total}} of {{state.cuont}}" }'
    found = codes(f"{WORKER}agent A : Worker {{ {state} on go(args) {{ {use} }} }}")

    assert (["E0316"] if "state.total" in use else []) == found


@pytest.mark.parametrize(
    "hole",
    [
        "${step1.output.text}",
        "${count + 1}",
        "{{#if a}}",
        "{{> part}}",
        "{{a b}}",
        "{{args}}",
        "{{ state.x }}",
        "{{Math.PI}}",
    ],
)
def test_holes_that_are_left_to_the_model_are_not_reported(hole: str) -> None:
    """Unknown `${…}` belongs to the model's plans, and what is no expression is plain text."""
    assert codes(f'{WORKER}agent A : Worker {{ on tell(args) {{ playbook "Say {hole}." }} }}') == []


def test_a_prompt_may_name_what_any_of_its_playbooks_has() -> None:
    """A prompt that two agents use is checked against the fields of both."""
    agents = "".join(
        f"agent {name} : Worker {{ state {{ {field} = 0 }} on tell(args) {{ playbook P }} }}\n"
        for name, field in (("A", "count"), ("B", "total"))
    )

    assert codes(f'{WORKER}prompt P = "{{{{state.count}}}} {{{{state.total}}}}"\n{agents}') == []
    assert codes(f'{WORKER}prompt P = "{{{{state.cuont}}}}"\n{agents}') == ["E0316"]


def test_a_hole_in_an_imported_text_is_shown_in_its_file() -> None:
    """A misspelt field in a text that became a prompt is reported where it stands."""
    agent = "agent A : Worker { state { count = 0 } on tell(args) { playbook Rules } }"
    program = f'import Rules : prompt from "./rules.md"\n{WORKER}{agent}'
    found = diagnostics_of_text(program, {"rules.md": "Be brief.\nWe are at {{state.cuont}}."})

    assert [
        (item.code, item.place.source.path, item.place.source.position(item.place.span.start)) for item in found
    ] == [("E0316", "rules.md", (2, 11))]


def test_prompts_around_a_circle_are_reported_once() -> None:
    """Prompts that contain each other are one mistake, and the check ends."""
    assert codes('prompt A = B\nprompt B = "x" + C\nprompt C = A + B') == ["E0313"]


@pytest.mark.parametrize(
    "code",
    ["let f = () => { return 1 } return f()", "function f() { return 1 }  return f()", "return g()  function g() { }"],
)
def test_what_is_reached_is_not_called_unreachable(code: str) -> None:
    """A `return` ends its own function only, and functions declared behind it exist."""
    assert codes(in_handler(code)) == []


def test_the_semicolon_ends_a_return() -> None:
    """`return;` returns nothing, whatever stands on the next line."""
    assert codes(in_handler("if (args) return;\nconsole.log(args)")) == []


@pytest.mark.parametrize("code", ["E0201", "e0318", "E0101", "E0102", "E0106"])
def test_every_code_can_be_explained(code: str) -> None:
    """Codes of rules, of spelling and of imports have an explanation, in any letter case."""
    assert explanation(code)


def test_an_unknown_code_has_no_explanation() -> None:
    """What is not the code of a message is not explained."""
    assert explanation("E9999") is None


def program_of(handlers: int) -> str:
    """A program of ten lines a handler."""
    lines = "".join(f"    const a{n} = args.items.map(x => x.price * {n}).filter(y => y > 2)\n" for n in range(7))
    body = "".join(f"  on h{n}(args: Json) {{\n{lines}    return a0\n  }}\n" for n in range(handlers))
    return f"{WORKER}agent A : Worker {{\n{body}}}\n"


def seconds(handlers: int) -> Iterator[tuple[float, float]]:
    """How long a program takes to be checked, and to be read, three times."""
    source = Source("test.koi", program_of(handlers))
    for _ in range(3):
        start = process_time()
        program, _ = parse(source)
        read = process_time()
        file = analyse(Unit("test.koi", source, program))
        analysed = process_time()
        check([file])
        yield process_time() - analysed, read - start


def test_thousands_of_lines_are_checked_quickly() -> None:
    """Checks look at every node once: 1,000 lines take about the time that it takes to read them, usually less."""
    checked, read = zip(*seconds(100), strict=True)

    assert min(checked) < 1.25 * min(read)


@pytest.mark.parametrize(
    "limit",
    [
        "turns: 0",
        "turns: 1.5",
        "turns: 2m",
        "tokens: 0",
        "tokens: 1.5",
        "tokens = 5m",
        "time: 0",
        "time: 0s",
        "time: 1e999",
        "usd: 1e999",
        "usd: 2h",
    ],
)
def test_a_limit_that_cannot_be_meant_is_an_error(limit: str) -> None:
    """What nothing could stay within, and a duration in place of a number, is told before anything is spent."""
    assert ["E0424"] == codes(f"{WORKER}agent A : Worker {{ budget {{ {limit} }} on go() {{ return 1 }} }}")


def test_limits_that_can_be_meant_are_not_criticised() -> None:
    """Seconds and durations are times; no money at all leaves the models that cost nothing."""
    limits = "tokens: 5e4, usd: 0, time: 2, turns = 1"

    assert (
        codes(f"{WORKER}agent A : Worker {{ budget {{ {limits} }} on go() {{ playbook 'a' budget {{ time: 5ms }} }} }}")
        == []
    )


def resilient(property: str) -> str:
    """A program whose handler has one property of `resilience`."""
    return f'{WORKER}agent A : Worker {{ resilience "go" {{ {property} }} on go() {{ return 1 }} }}'


@pytest.mark.parametrize(
    "property",
    [
        'retry_max_attempts = "x"',
        "retry_max_attempts = -1",
        "retry_max_attempts = 1.5",
        "retry_max_attempts = 1e999",
        "retry_max_attempts = true",
        "retry_max_attempts = many",
        "retry_delay = -5",
        "retry_delay = null",
        "retry_delay = 1e999",
        "timeout = 0",
        "timeout = 1e999",
        "timeout = '5s'",
        "backoff = linear",
        "backoff = 0",
        "backoff = 1e999",
    ],
)
def test_a_wrong_value_of_resilience_is_an_error(property: str) -> None:
    """Numbers of `resilience` are numbers in their range, and the only word is `exponential`."""
    assert ["E0425"] == codes(resilient(property))


@pytest.mark.parametrize(
    "property",
    ["retry_max_attempts = 1 + 2", "retry_delay = 0", "timeout = null", "backoff = exponential", "backoff = 1.5"],
)
def test_a_value_of_resilience_that_is_right_or_computed_is_not_criticised(property: str) -> None:
    """Only what is written out is judged."""
    assert codes(resilient(property)) == []


@pytest.mark.parametrize(
    "parts",
    [
        'affordance "a" affordance "b"',
        "budget { turns: 1 } budget { turns: 2 }",
        "amnesia = true amnesia = false",
        'examples "a" examples "b"',
        'llm small = { model: "a" } llm small = { model: "b" }',
        'resilience "go" { timeout = 5 } resilience "go" { timeout = 6 }',
        'playbook "go" "a" playbook "go" "b"',
    ],
)
def test_a_part_that_replaces_another_is_told(parts: str) -> None:
    """Of parts that an agent has once, a second one is not taken without a word."""
    assert ["E0219"] == codes(f"{WORKER}agent A : Worker {{ {parts} on go() {{ return 1 }} }}")


def test_parts_for_different_things_are_not_criticised() -> None:
    """Each handler has its own `resilience`, each purpose its own model."""
    parts = 'llm default = { model: "a" } llm judge = { model: "b" } resilience "go" { timeout = 5 }'
    more = 'resilience "come" { timeout = 5 } on come() { return 2 }'

    assert codes(f"{WORKER}agent A : Worker {{ {parts} {more} on go() {{ return 1 }} }}") == []


@pytest.mark.parametrize("role", ["Default", "smal", "fast"])
def test_a_model_for_no_known_purpose_is_an_error(role: str) -> None:
    """An `llm` block that nothing would use is told, also when only its letter case is wrong."""
    assert ["E0426"] == codes(f'{WORKER}agent A : Worker {{ llm {role} = {{ model: "a" }} on go() {{ return 1 }} }}')


@pytest.mark.parametrize(("role", "found"), [("judge", []), ("small", []), ("juge", ["E0426"])])
def test_a_block_may_name_a_role_of_models(role: str, found: list[str]) -> None:
    """`role` in an `llm` block is one of those of `koi.toml`."""
    assert found == codes(f'{WORKER}agent A : Worker {{ llm default = {{ role: "{role}" }} on go() {{ return 1 }} }}')


@pytest.mark.parametrize("line", ["@if (args.a) {", "@else {", "@let x", "@if args.a {", "@if (args.) {\n}"])
def test_a_template_that_cannot_be_read_is_told_by_the_check(line: str) -> None:
    """What would stop `koi run` at a directive is known before."""
    prompt = f'prompt Tone = compose {{ template: "Be kind.\n{line}\n" }}\n'

    assert ["E0320"] == codes(f"{WORKER}{prompt}agent A : Worker {{ on go(args) {{ playbook Tone }} }}")


@pytest.mark.parametrize(
    "part",
    [
        "agent A : Worker { state { ready = yes } }",
        "agent A : Worker { state { all = [1, { a: yes }] } }",
        "agent A : Worker { llm default = { model: yes } }",
        "mcp files = { command: yes }",
        "agent A : Worker { on go(args) { return args } } run A.go(yes)",
        "agent A : Worker { on go(args = yes) { return args } }",
        "agent A : Worker { on go({ a = yes }) { return a } }",
        'test "x" { given model answers yes }',
    ],
)
def test_names_are_looked_up_wherever_a_value_stands(part: str) -> None:
    """A name that nobody declares is told outside of handlers, too, also where it is the whole value."""
    assert codes(f"{WORKER}{part}") == ["E0221"]


@pytest.mark.parametrize("name", ["add", "fill", "truth", "peers", "this", "settle", "Agent"])
def test_names_of_the_runtime_are_no_names_of_a_program(name: str) -> None:
    """What compiled modules call is unknown to programs: in the state, in templates and as an argument of a prompt."""
    template = f'"\n@let x = {name}\n@if ({name}) {{\n{{{{x}}}}\n}}\n"'
    state = codes(f"{WORKER}agent A : Worker {{ state {{ x = {name} }} }}")
    composed = codes(f"{WORKER}export prompt P = compose {{ template: {template} }}")
    playbook = f"agent A : Worker {{ on go(args) {{ playbook P({name}) }} }}"

    assert state in (["E0221"], ["E0222"])
    assert composed == ["E0321", "E0321"]
    assert codes(f'{WORKER}prompt P(a: string) = "{{{{a}}}}"\n{playbook}') == ["E0321"] * (name != "this")


@pytest.mark.parametrize(
    "hole",
    ["{{args.x = 1}}", "{{args.x++}}", "{{await args.x}}", "{{() => { return 1 }}}", "{{x}}", "${args.x.pop()}"]
    + [f"{{{{{call}}}}}" for call in ("args.x?.push(1)", "Object.assign(args, { x: 1 })", "args.x['splice'](1)")]
    + [f"{{{{{call}}}}}" for call in ("args.x.sort?.()", "args.x.setHours(1)", "args.x.map(x => x.shift())")],
)
def test_a_hole_that_cannot_be_filled_is_told(hole: str) -> None:
    """What a text cannot compute stays as it is, and `koi check` says so."""
    assert codes(f'{WORKER}agent A : Worker {{ on go(args) {{ playbook "Say {hole}" }} }}') == ["E0318"]


def test_a_directive_changes_nothing() -> None:
    """It is read again before each request."""
    template = '"\n@if (state.xs.push(1)) {\n}\n@let one = state.xs.sort()\n"'

    assert ["E0320"] == codes(f"{WORKER}export prompt P = compose {{ template: {template} }}")


@pytest.mark.parametrize(
    "code",
    [
        "const all = [this.work(1), Clerk.work(2)] return await Promise.all(all)",
        "const one = this.work(1) const two = await one return [two.x, await one]",
        "const one = this.work(1) return one.then(x => x.y).catch(e => e)",
        "let one = this.work(1) one = await one return one.x",
        "const one = this.work(1) return args.early ? one : null",
        "const kept = registry.get('a') || this.work(1) return await kept",
        "this.work(1) return this.work(2)",
        "const fetch = () => 1 return fetch() + 1",
        "const f = async () => 1, g = () => 1 return [g() + 1, (await f()) + 1, typeof f()]",
        "const a = fetch('x'), b = fetch('y') return a === b",
        "const registry = { get: () => 1 } return registry.get() + 1",
        "const list = args.list.map(async x => await this.work(x)) return await Promise.all(list)",
    ],
)
def test_promises_that_are_not_computed_with_are_not_criticised(code: str) -> None:
    """A promise may be kept, passed on, waited for later and compared with another one."""
    assert codes(in_handler(code)) == []


def test_a_promise_of_a_test_is_told_once() -> None:
    """What the rule for tests tells is not told again."""
    test = 'test "x" { const r = Clerk.work({}) expect r.a == 1 expect Clerk.work({}).b == 2 }'

    assert codes(f"{in_handler('return 1')} {test}") == ["E0434", "E0434"]


@pytest.mark.parametrize(
    "code",
    [
        "for (const i in args.list) console.log(args.list[i])",
        "const list = [1, 2] for (const i in list) { if (Number(i) > 0) return list }",
        "for (const key in args.table) console.log(key, key.length)",
        "let list = [] list = args.table for (const key in list) console.log(key)",
        'return "a" in args.table && !("b" in { b: 1 })',
        "const a = b, b = a return 'x' in a",
        "return 1 in { 1: 2 }",
    ],
)
def test_keys_that_are_meant_are_not_criticised(code: str) -> None:
    """`in` is right with objects, with what nobody knows, and for indexes."""
    assert codes(in_handler(code)) == []


@pytest.mark.parametrize(
    "text",
    [
        '"Return { name }, {args}, { args.a: 1 }, {other.x}, ${other.x}, a{args.x}, {{args.x}} and ${args.x}."',
        '"Return { \\"a\\": \\"{{args.x}}\\" }."',
    ],
)
def test_braces_that_are_text_are_not_criticised(text: str) -> None:
    """Shapes of objects, names that nobody declares, and what is filled in are no mistakes."""
    assert codes(f"{WORKER}agent A : Worker {{ on go(args) {{ playbook {text} }} }}") == []


@pytest.mark.parametrize(
    "code",
    [
        'return args.text.replace("{{args.name}}", args.name).split("${args.x}")',
        'return ["{args}", "{ a }", "${b}", "{{c}}", `${args.d}`]',
        'const f = () => { const inner = 1 return inner } return ["${inner}", f()]',
        'affordance "{args.x}" return args.x',
    ],
)
def test_quotes_that_are_meant_are_not_criticised(code: str) -> None:
    """What looks for a place in a text, and what names no variable that is visible there, is no mistake."""
    assert codes(in_handler(code)) == []


@pytest.mark.parametrize(
    "code",
    [
        "const console = { lgo: 1 }, Math = args return [console.lgo, Math.any]",
        "return [this.state.any, this.name, this.work, this.toString(), String.name, console?.any, Object.is(1, 1)]",
        "const box = { n: 1, add() { return this.n } } return box.add()",
        "const registry = args.registry return registry.put",
    ],
)
def test_members_that_are_there_are_not_criticised(code: str) -> None:
    """Variables hide the objects of the language, and `this` in an object is told by another rule, if at all."""
    assert "E0239" not in codes(in_handler(code))


@pytest.mark.parametrize(
    "code",
    [
        "const crew = args.crew return await send crew.event('go').any()({})",
        "const asked = Crew.event('go').any() return await send asked.event('go')({})",
        "return await send (peers(args.crew)).event('go').any()({})",
    ],
)
def test_sends_that_only_the_run_knows_are_not_criticised(code: str) -> None:
    """A question that code has put together may say whom it is for, and a variable may hold any team."""
    team = "team Crew { clerk: Clerk }\nteam Others { clerk: Clerk }\n"

    assert codes(team + in_handler(code)) == []


@pytest.mark.parametrize(
    "call",
    [
        "add(...args.list)", "add(args.a, args.b)", "add(1, 2, 'x')", "loose()", "loose(1, 2)", "rest(1, 2, 3)",
        "[1].map(loose)", "this.callSkill('Sums', 1, 2)", "this.callSkill('Sums', args.name, 1)", "open()",
    ],
)  # fmt: skip
def test_arguments_that_may_fit_are_not_criticised(call: str) -> None:
    """Parameters without a type, with a default or of an open type may be left out, and spreads are not counted."""
    functions = (
        "export function add(a: number, b: number, c?: string): number { return a + b }"
        "export function loose(a, b = 1) { return a }"
        "export function rest(a: number, ...b: any) { return a }"
        "export function open(a: Json, b: string | null) { return a }"
    )
    agent = f"agent A : Worker {{ uses skill Sums on go(args) {{ return {call} }} }}"

    assert codes(f"{WORKER}skill Sums {{ {functions} }} {agent}") == []
