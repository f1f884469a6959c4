r"""What stands for a value in an answer, and how `${` is written as text."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koi_lang.errors import AgentError
from koi_lang.llm.rehearsal.values import without_references
from koi_lang.llm.transcript import Transcript
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.actions.registered import find_builtin
from koi_lang.runtime.playbook.lenient_fields import read_values
from koi_lang.runtime.playbook.references import ActionScope, require_results
from koi_lang.runtime.playbook.told_expressions import ToldData
from koi_lang.runtime.replay.digest_forms import FIRST_WITH_FAILURES, FORM
from koi_lang.system.interpolation import COMMANDS, Interpolation, Rendered
from tests.playbook.playing import Player, act, done, solo
from tests.playbook.transports import MODELS, talk


def scope(**args: object) -> ActionScope:
    """What references can mention."""
    return ActionScope(evaluate, args, {"n": 2})


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        (r"\${args.n}", "${args.n}"),
        (r"\\${args.n}", r"\3"),
        (r"\\\${args.n}", r"\${args.n}"),
        (r"\\\\${args.n}\\", r"\\3\\"),
        (r"\{{args.n}}", "{{args.n}}"),
        (r"a \${args.n} costs $${args.n}", "a ${args.n} costs $3"),
        (r"\$${args.n}", r"\$3"),
        (r"\${HOME} and ${HOME}", "${HOME} and ${HOME}"),
        (r"C:\new\{args} \$ \n", r"C:\new\{args} \$ \n"),
        (r"\${args.n", r"\${args.n"),
        (r"\${}", r"\${}"),
        (r"${\${args.n}}", "${${args.n}}"),
        (r"${args.n}\${args.n}${state.n}", "3${args.n}2"),
    ],
)
def test_backslashes(written: str, filled: str) -> None:
    """One has what follows stand as it is, two stand for one; in front of anything else they are characters."""
    assert {"a": [filled]} == scope(n=3).resolve({"a": [written]})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("${args.list.map(x => x.name).push(1)}", "`args.list.map(x => x.name).push` cannot be called here"),
        ("${args.missing}", "`args` has no `missing`"),
        ("it is ${args.lst}", "`args` has no `lst`. Did you mean `args.list`?"),
        ("${args.list[3].name}", "`args.list` has 1 item"),
        ("${args.list[0].nam.x}", "`args.list[0]` has no `nam`. Did you mean"),
        ("{{state.m}}", "`state` has no `m`"),
        ("${state.m + 1}", "it is NaN"),
        ("${args.list.find(x => x.name === 'Bo')}", "it is undefined"),
        ("${args.list.find(x => x.name === 'Bo').name}", "has no value"),
        ("${args.list[0].name.toUpperCase}", "`args.list[0].name.toUpperCase` is a function. Call it, as in"),
        ("${args.list.find}", "Call it, as in `args.list.find(…)`."),
        ("${args.list.length()}", "is a number, and no function. Write `args.list.length`, without `()`."),
        ("${state.n / 0}", "it is Infinity"),
        (
            "${args.list.map(x => state.n ** 60 * 2)}",
            "`state.n ** 60` is rounded: whole numbers are exact",
        ),
        ("${[state.n / 0]}", "`[state.n / 0]` holds Infinity"),
        ("${args.list.map(x => x.name * 2)}", "holds NaN"),
        ("${args.list.map(x => x.nope)}", "`args.list.map(x => x.nope)` holds undefined. Write `?? …`"),
        ("${({ a: { b: args.nope } })}", "holds undefined"),
        ('${"Dear " + args.nope}', "`args.nope` is undefined. Write `?? …`"),
        ('${"x" + args.list[0].name * 2 + "y"}', "`args.list[0].name * 2` is NaN"),
        ("${`x${args.nope}`}", "`args.nope` is undefined"),
        ("${String(args.nope)}", "holds undefined"),
        ("${args.list.map(x => x.nope).map(String).length}", "is undefined"),
        ("${args.list.map(x => x.name / 2).join()}", "holds NaN"),
        ("${JSON.stringify({ a: args.list[0].name / 2 })}", "holds NaN"),
        ("${(state.n / 0).toFixed(2)} ${'x'.concat(args.nope)}", "is Infinity"),
        ("${'x'.concat(args.nope)}", "holds undefined"),
        ("${total + args.n}", "there is no `total` here"),
        ("${x => args.n}", "a function by itself is not computed here"),
        ("${format(args.list)}", "`format` cannot be called here"),
        ("${new Date(state.n)}", "`new` is not computed here"),
        ("${/d/i.test(args.name)}", "a regular expression is not computed here"),
        ("{{/d/.test(args.name)}}", "a regular expression is not computed here"),
        ("${~args.n}", "`~` is not computed here"),
        ("${...args.list}", "is no expression"),
        ("${{a: args.list}}", "Write an object as `${({ … })}`"),
        ("${{...args.list[0], b: 2}}", "Write an object as `${({ … })}`"),
        ("${(args.list}", "is no expression"),
        ("${return args.list}", "is no expression"),
        ("${if (args.list) 1}", "is no expression"),
        ("${let x = args.list}", "is no expression"),
        ("{{ 'x' if not args.list }}", "is no expression"),
        ("${not args.list} of it", "is no expression"),
        ("{{not args.list}}", "is no expression"),
        ("${len args.list}", "is no expression"),
        ("${True and args.list}", "is no expression"),
        ("${None if args.list else 1}", "is no expression"),
        ("${for x in args.list}", "is no expression"),
        ("${lambda: args.list}", "is no expression"),
        ("${f'{args.list}' + args.list}", "is no expression"),
        ("${?args.list}", "is no expression"),
        ("${args.list.map(x => { return x })}", "one expression behind its arrow"),
        ("${state.n:.2f}", "is no expression"),
        ("`code` and ${args.missing}", "`args` has no `missing`"),
        ("```js\nx\n``` and ${args.missing}", "`args` has no `missing`"),
        ("in all ${args.list.map(a => a + c)}", "there is no `c` here"),
        ("${args.list.map(x => }", "is no expression"),
        ("{{state.n.map(x => x)}}", "`map` cannot be called on a number"),
    ],
)
def test_what_cannot_be_computed_is_told(written: str, message: str) -> None:
    """It is no text that passes for a result: whoever wrote it begins with a value that is known."""
    with pytest.raises(AgentError) as raised:
        scope(list=[{"name": "Ada"}]).resolve({"data": [written]})

    assert message in f"{raised.value.message}. {raised.value.help}"


def test_a_result_before_the_first_action_is_told() -> None:
    """The message names what is missing."""
    with pytest.raises(AgentError, match="no action before it gave a `previousResult`"):
        require_results(scope(n=3), {"message": "${previousResult}"})


@pytest.mark.parametrize(
    "written",
    [
        "${HOME}/${1} ${OUT:-args} ${#args[@]} ${FILE%.*} $(date)",
        "${NAME:-args.n} ${NAME%.args} ${NAME:0:args} ${NAME?args} ${NAME^^args}",
        "${total} and {{total}}",
        "${total + 1} ${foo(1)}",
        '${1 + 1} ${"a"} ${60 * 60} ${Math.max(1, 2)} ${new Date().toISOString()} ${Date.now()}',
        "char *c[] = {{\"x\"}}; {{-1}} f\"{{'a'}}\" {{[1]}} {{ {} }} ${{ 'a' }} ${{ 1 == 2 }}",
        "{{! args.n }} {{!args.n}} ${!args} ${!args[@]} {{#if args.n}} {{/if}} {{- args.n -}}",
        "{{&args.n}} {{> args}} {{~args.n}}",
        "{{#if state.x}} ${#args} {{range args.list}} {{a: args.n}}",
        "`${args.list.forEach(x => 1)}`",
        "`${args.missing}`",
        "const html = `<ul>${items.map(i => `<li>${args.missing} ${i.name}</li>`).join('')}</ul>`",
        "```js\nreturn `${args.nix.x}`\n```",
        "{{#each args}}{{this}}{{/each}} {{> part}} {{/if}}",
        "${{ matrix.os }} {{ .Values.x }}",
    ],
)
def test_texts_for_others_stay(written: str) -> None:
    """Templates, programs in backticks and names that nobody here knows are texts."""
    assert written == scope(list=[1], n=3).resolve(written)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${Math.max(...args.list)}", 5),
        ("${({ a: { b: args.n } }).a}", {"b": 3}),
        ('${"}" + args.n}', "}3"),
        ("${'${' + args.n}", "${3"),
        ('${args.rows.map(r => "}").join()}', "}"),
        ("${args.rows.map(r => `}`).join()}.", "}."),
        ("it's ${args.n} isn't ${args.n}}", "it's 3 isn't 3}"),
        ("${it's} and ${args.n} isn't", "${it's} and 3 isn't"),
        ("${!args.n} {{ !args.n }} {{-args.n}}", "false false -3"),
        ({"k-${args.n}": {"{{args.n}}": 1}}, {"k-3": {"3": 1}}),
        ("${args.list.map(x => ({ v: x, w: { x } }))}", [{"v": 5, "w": {"x": 5}}]),
        ("{{args.list.map(x => ({ v: x }))}}", [{"v": 5}]),
        ("${args.rows.map(({ k }) => `<${k}>`).join('')}!", "<a>!"),
        ("${`${args.n} of ${args.list.length}`}", "3 of 1"),
        ("${args.missing ?? 'none'} ${args.nix?.x?.y ?? 0}", "none 0"),
        ("${[args.missing ?? 1, null, isNaN(args.n / 'x')]}", [1, None, True]),
        ("${args.rows.map(r => r.nope).filter(Boolean).length} ${`${args.rows.map(r => r.nope ?? 'x')}`}", "0 x"),
        ("${NAME:-${args.n}}", "${NAME:-3}"),
        ("`${args.n} ${args.missing}`", "`3 ${args.missing}`"),
        (r"\${args.f({ a: ${args.n} })}", "${args.f({ a: 3 })}"),
    ],
)
def test_braces_and_texts_in_expressions(written: object, value: object) -> None:
    """An expression ends where its braces are closed; a hole in a hole of others is one of its own."""
    assert value == scope(list=[5], n=3, rows=[{"k": "a"}]).resolve(written)


RESULT = {"name": "Ada", "total": 12, "HOME": "/h", "rows": [1]}
NOTHING_TOLD = ToldData(Transcript([]).snapshot(), {}, Rendered(("Print ${name} and ${total + 1}.",)))


def later_scope() -> ActionScope:
    """The names in the answer after the one with an action that gave `RESULT`."""
    names = scope(n=3)
    names.begin_answer(NOTHING_TOLD, int(FORM))
    names.record("call_skill", "r", RESULT)
    names.begin_answer(NOTHING_TOLD, int(FORM))
    return names


@pytest.mark.parametrize("field", ["content", "before", "after", "diff", "command"])
@pytest.mark.parametrize(
    "code", ['echo "${HOME}" ${total}', "{{name}} {{ name }}", "${rows[@]} ${name%.*}", "${r}", "${name + 1}"]
)
def test_code_has_no_names_of_fields(field: str, code: str) -> None:
    """What goes into files and commands is in another language, whenever a result had such fields."""
    names = scope(n=3)
    names.record("call_skill", "r", RESULT)

    for each in (names, later_scope()):
        assert {field: code} == each.substitute({field: code})
        assert {"input": {field: [code]}} == each.substitute({"input": {field: [code]}})
        assert {"message": f"{code}\nx"} == each.substitute({"message": f"{code}\nx"})


def test_code_has_the_names_of_results() -> None:
    """Results by their ids and items of loops are names everywhere; so are others beside them."""
    names = later_scope()
    names.add({"iteration": 2, "row": {"a": 1}})
    code = "${r.output.name} {{row.a}} ${iteration + row.a} ${r.output.rows[0]}\n${r.output.total + lastResult.total}"

    assert "Ada 1 3 1\n24" == names.substitute({"content": code})["content"]
    assert "13 2\n" == names.resolve("${previousResult.total + 1} {{iteration}}\n")
    assert "3 2\n3" == names.resolve("${args.n} ${state.n}\n${args.n}")


CODE = [
    "`card ${state}`",
    "${state}",
    "`${args.findings.length} of ${state}`",
    "${JSON.stringify(state)} ${Object.keys(args).length}\n",
    "{{ state }} / {{ args.n }}",
    '{"s": "${state}"}',
    'for a in "${args[@]}"; do echo ${args[0]} ${state:-off} ${#args[@]}; done',
    "cat <<END\n${args.n}\nEND",
    "${[args, state].length + total} ${args.n +} ${OUT:-${args.n}}",
    "`was ${previousResult}`, `then ${lastResult.total + 1}`",
    "for (let iteration = 0;;) console.log(`round ${iteration} of ${iterationIndex} {{ iteration }}`)",
    r"cat > in.sh <<END\nrm -rf \${DIR}/cache \\${OUT} \\\${args.n}\nEND",
    r"""bash -c "for i in 1 2; do echo \${i} \${state}; done" && echo `a \${x}`""",
]


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("field", ["content", "after", "command"])
def test_code_of_a_model_is_text(field: str, code: str) -> None:
    """What a model wrote into files was computed where its program called something `args`, `state` or `iteration`."""
    names = later_scope()
    names.add({"iteration": 2, "iterationIndex": 1})

    assert {field: code} == names.substitute({field: code})
    assert {"input": {"files": [{field: code}]}} == names.substitute({"input": {"files": [{field: code}]}})
    assert {field: code} == names.child_scope().substitute({field: code})


def test_a_backslash_in_code_before_what_would_be_a_value() -> None:
    """There it says that it is none, as in any other text."""
    names = later_scope()
    names.record("read_file", "r", {"text": "x"})

    assert {"content": r"a ${r.output.text} b \x c ${HOME}"} == names.substitute(
        {"content": r"a \${r.output.text} b \\${r.output.text} c ${HOME}"}
    )


@pytest.mark.parametrize(("text", "value"), [("${args.n}", 3), (" {{ state.n }}\n", 2), ("${`<${args.n}>`}", "<3>")])
def test_code_that_is_one_expression_is_its_value(text: str, value: Any) -> None:
    """So a payload goes into a file as it is."""
    assert {"content": value} == later_scope().substitute({"content": text})


def test_an_author_has_names_in_code() -> None:
    """What the playbook itself has is computed in code, too, and what a frozen plan has."""
    names = scope(n=3)
    filled_in = ("Write `n = ", Interpolation(3, "3", "args.n"), "`.")
    for playbook, content in (("Write `n = ${args.n}`.",), "n = 3 ${state.n}"), (filled_in, "n = ${args.n} ${state.n}"):
        names.begin_answer(ToldData(Transcript([]).snapshot(), {}, Rendered(playbook)), int(FORM))
        assert {"content": content} == names.substitute({"content": "n = ${args.n} ${state.n}"})
        for command in COMMANDS:
            assert {command: "echo 3 ${state.n}"} == names.substitute({command: "echo ${args.n} ${state.n}"})
            assert {command: f"{content}\nx"} == names.substitute({command: "n = ${args.n} ${state.n}\nx"})
    names.is_of_program = True
    assert {"content": "n = 3 2"} == names.substitute({"content": "n = ${args.n} ${state.n}"})


@pytest.mark.parametrize(
    ("command", "value", "is_plain"),
    [
        ("wc -l ${args.n}", "notes.txt", True),
        ("wc -l ${args.n} && ls\npwd", "docs/notes.txt", True),
        ("wc -l '${args.n}'", "my notes.txt", True),
        ("${args.n}", "wc -l x; rm y", True),
        ("wc -l ${args.n}", "x; rm y", False),
        ("set -e\nwc -l ${args.n}", "x; rm y", False),
        ("wc -l ${args.n}", "my notes.txt", False),
        ("wc -l ${args.n}", "-rf", False),
        ("wc -l '${args.n}'", "it's", False),
        ('wc -l "${args.n}"', "$(rm y)", False),
        ('sh -c "wc -l ${args.n}"', "x; rm y", False),
        ('sh -c "wc -l ${args.n}"', "notes.txt", True),
        ('sh -c "wc -l ${args.n}"', "x keep.txt", False),
        ('psql -c "DELETE FROM t WHERE id = ${args.n} AND x"', "id=id", False),
        ('psql -c "DELETE FROM t WHERE id = ${args.n} AND x"', "8--", False),
        ("sh -c 'wc \"${args.n}\" '", "$(rm y)", False),
        ("cat <<END\n '${args.n}'\nEND", "two words", True),
        ("wc '${args.n}' | sort", 'a; rm y (1) $(x) "b" `c`\n', True),
        ('wc --note="${args.n}"; ls', "it's; rm y (1)", True),
        ('wc "${args.n}"', "`rm y`", False),
        ("cat <<END\nx '${args.n}'\nEND", "$(rm y)", False),
        ("echo $HOME '${args.n}'", "x; rm y", False),
        ("python3 -c 'print(\"${args.n}\")'", "(1)", False),
        ("python3 -c 'print(${args.n})'", "open(0)", False),
    ],
)
@pytest.mark.parametrize("author", [True, False])
def test_values_in_commands_are_plain_words(command: str, value: str, is_plain: bool, author: bool) -> None:
    """A payload was run as a command where the playbook says `wc -l ${args.file}`; a result is no better."""
    names = scope(n=value)
    told = ToldData(Transcript([]).snapshot(), {}, Rendered((f"Run `{command}`." if author else "Count.",)))
    names.begin_answer(told, int(FORM))
    if not author:
        names.record("read", "r", {"n": value})
        command = command.replace("args.n", "r.output.n")

    if is_plain:
        hole = "${args.n}" if author else "${r.output.n}"
        assert [command.replace(hole, value)] == list(names.substitute({"command": command}).values())
    else:
        with pytest.raises(AgentError, match="which a shell may read as more than a word"):
            names.substitute({"input": {"command": [command]}})
    assert {"content": f"# {value}"} == names.substitute({"content": "# ${r.output.n}"}) or author


def test_an_action_says_which_fields_are_code() -> None:
    """The usual names count where nobody does."""
    text = "n = ${args.n}"

    assert {"page": text, "content": "n = 3"} == later_scope().substitute({"page": text, "content": text}, {"page"})


LETTERS = """
role Worker { can write, can execute }
skill Files {
  export function keep(content: string) { affordance "Keeps a text." console.log(content) return content.length }
}
agent Main : Worker {
  uses skill Files
  state { total = 2 }
  on go(args) { playbook "Keep what is to be kept." }
}
"""


def test_what_a_model_keeps_is_what_it_wrote(play: Player) -> None:
    """By the name of a function, in the call of a skill, and in a loop."""
    code = "const n = `${args.n} of ${state.total}, ${iteration} ${previousResult}`"
    keep = act("call_skill", skill="Files", function="keep", input={"content": code})
    answers = [keep, act("keep", content=code), act("repeat", count=1, actions=[keep]), act("return")]

    assert (code, code, code) == play(LETTERS, answers, payload={"n": 5}).printed


def test_code_that_is_a_number_is_its_text(play: Player) -> None:
    """A file can hold one; where a number is asked for it stays one."""
    keep = act("call_skill", skill="Files", function="keep", input={"content": "${args.n}"})
    batch = [keep, act("keep", content="${args.n}"), act("update_state", updates={"code": "${args.n}"}), done()]

    played = play(LETTERS, [{"batch": batch}], payload={"n": 5})

    assert (("5", "5"), 5) == (played.printed, played.state("Main")["code"])
    shell = find_builtin("shell")
    assert shell is not None
    fields = {"command": 5, "timeout_ms": "7", "description": "d"}
    assert {**fields, "command": "5", "timeout_ms": 7} == read_values(shell, fields)[0]


def test_names_of_fields_are_of_one_answer() -> None:
    """Later only what the playbook itself spells out is computed with them; then and always in conditions."""
    names = later_scope()

    assert "${HOME} ${rows.length} Ada 13" == names.resolve("${HOME} ${rows.length} ${name} ${ total + 1 }")
    assert names.evaluate_condition("total == 12 && ${name} == 'Ada'")
    with pytest.raises(AgentError, match="there is no `total` here"):
        names.resolve("${args.n + total}")
    names.record("call_skill", "", {"total": 5})
    assert "5 8 ${HOME}" == names.resolve("${total} ${total + args.n} ${HOME}")


def test_answers_to_earlier_versions_are_read_as_they_were() -> None:
    """In a replay of an old journal nothing fails that did not, and nothing is computed that was not."""
    names = scope(list=[1], n=3)
    names.begin_answer(ToldData(Transcript([]).snapshot(), {}, Rendered()), FIRST_WITH_FAILURES - 1)
    texts = ["${Math.max(...args.list)}", "${args.missing}", "${total + args.n}", "${args.nix.x}", "${({ a: 1 }).a}"]

    assert texts == names.resolve(texts)
    names.record("call_skill", "r", RESULT)
    assert {"content": "/h 13 2"} == names.substitute({"content": "${HOME} ${total + 1} ${1 + 1}"})
    with pytest.raises(AgentError):
        names.resolve("${args.list.map(String)}")


def test_a_literal_refers_to_nothing() -> None:
    """What is not there is no error, and has no type of its own."""
    require_results(scope(), {"message": r"\${nobody.output.x}"})

    assert "${state.n}" == scope().resolve(r"\${state.n}")


def test_a_literal_in_a_condition() -> None:
    """In quotes it is what it is in code: text."""
    assert scope(text="${state.n}").evaluate_condition(r"""args.text == '\${state.n}'""")
    assert not scope(text="2").evaluate_condition(r"""args.text == '\${state.n}'""")


@given(st.text("$\\{}x", max_size=12))
@example("${{{\\}}}")
@example("{{{{x}}}}")
@example("${${{{x}}}}")
def test_a_rehearsal_writes_any_value(value: str) -> None:
    """What is no reference of its author arrives as it is, between backslashes of the author, too."""
    answer = without_references([("a", True), (value, False), ("${args.x}\\", True), (value, False)])

    assert f"a{value}<x>\\{value}" == scope(x="<x>").resolve(answer)


@given(st.text("\\$", max_size=6))
def test_backslashes_of_a_value(value: str) -> None:
    """They have no reference of the author stand as it is."""
    assert f"{value}1." == scope(x=1).resolve(without_references([(value, False), ("${args.x}.", True)]))


@pytest.mark.parametrize(
    "text", ["\\" * 2_000_000, "${" * 1_000_000, "\\${x}" * 400_000, '${"' * 300_000, "${'}${`" * 150_000]
)
def test_long_texts_take_time_in_proportion(text: str) -> None:
    """However many backslashes there are."""
    began = time.process_time()
    scope().resolve(text)

    assert time.process_time() - began < 5


@pytest.mark.parametrize("transport", ["text", "tools"])
@pytest.mark.parametrize("provider", list(MODELS))
def test_a_model_writes_a_literal(play: Player, provider: str, transport: str) -> None:
    """In an action and in one within a plan."""
    says = [
        act("print", message=r"\${args.n} is ${args.n}"),
        act("repeat", count=1, actions=[act("print", message=r"\${state}")]),
    ]
    played, *_ = talk(
        play, solo("think", "execute"), [[*says, done()]], (provider, transport), calls=[("Main.go", {"n": 3})]
    )

    assert (None, ("${args.n} is 3", "${state}")) == (played.error, played.printed)


def test_a_model_learns_how_to_write_a_literal(play: Player) -> None:
    """Where it refers to a result that nobody has; what it is told works."""
    text = "${nobody.output.x}"
    played = play(solo("think", "execute"), [act("print", message=text), act("print", message=f"\\{text}"), done()])

    assert r"A text `${…}` is written `\\${…}` in JSON" in played.feedback[1]
    assert (text,) == played.printed
