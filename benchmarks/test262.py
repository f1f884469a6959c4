"""Tests of ECMAScript itself: `python -m benchmarks.test262 CHECKOUT` runs those that the language takes part in.

CHECKOUT is a folder with https://github.com/tc39/test262. Left out are tests that name what `docs/language.md` calls
absent, and those that Node does not pass with the same helpers. Each of the others is the handler of a program: it
passes, is refused when it is compiled, or fails. What fails is in `KNOWN` with its reason, or the command ends with 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

from koi_lang.diagnostics import CompileError
from koi_lang.program import declarations, loader
from koi_lang.program.files import absolute
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.host import SilentHost
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services

BUILT_INS = (
    *("AggregateError", "Array", "Boolean", "Date", "Error", "GeneratorPrototype", "Infinity", "JSON", "Map", "Math"),
    *("NaN", "NativeErrors", "Number", "Object", "Promise", "RegExp", "Set", "String", "decodeURI"),
    *("decodeURIComponent", "encodeURI", "encodeURIComponent", "isFinite", "isNaN", "parseFloat", "parseInt"),
)
# What no test that is run may name: words of the language that are absent here, and helpers that are about them.
ABSENT = re.compile(
    r"\b(?:class|eval|Function|super|arguments|debugger|export|import|globalThis|Symbol|Proxy|Reflect|BigInt|Iterator"
    r"|Temporal|Realm|DataView|ArrayBuffer|Weak(?:Map|Set|Ref)|(?:Typed|Int\d+|Float\d+|Uint(?:16|32|8C)\w*)Array)\b"
    r"|\b\d+n\b|\bwith\s*\(|\bvoid\s|\byield\s*\*|\bthis\.|new\.target|prototype|__proto__|\.constructor\b"
    r"|[dD]efineProperty|defineProperties|[pP]rototypeOf|getOwnProperty|isFrozen|isSealed|isExtensible|freeze|seal\b"
    r"|preventExtensions|\.(?:call|apply|bind)\(|\$262|\$DONE|\$ERROR|asyncTest|isConstructor|nativeFunctionMatcher"
    r"|fnGlobalObject|propertyHelper|verify(?:Property|Not)|testWith|assert\.\w*deepEqual"
)
ABSENT_FEATURES = re.compile(
    r"Symbol|Proxy|Reflect|BigInt|class|TypedArray|Temporal|Atomics|Shared|Weak|tail-call|import|decorators|Realm|Intl"
    r"|explicit-resource|iterator|new\.target|async-iteration|top-level|regexp-(?:v|modifiers|legacy)|resizable"
    r"|Array\.fromAsync|uint8array|RegExp\.escape|json-parse|isError|promise-try|caller|source-phase|joint|upsert"
    r"|math-sum|sum-precise|immutable"
)
ABSENT_FLAGS = re.compile(r"module|async|raw|noStrict|CanBlock")
HELPERS = """
const ownError = (message) => Object.assign(new Error(message), { name: "Test262Error" })
const Test262Error = { name: "Test262Error" }
const isSame = (a, b) => a === b ? a !== 0 || 1 / a === 1 / b : a !== a && b !== b
const isEqual = (a, b) => a.length === b.length && a.every((item, at) => isSame(item, b[at]))
const assertTrue = (value, told) => { if (value !== true) throw ownError(`not true: ${told}`) }
const assertThrows = (kind, work, told) => {
  let thrown = null
  try { work() } catch (error) { thrown = { error } }
  if (thrown === null) throw ownError(`nothing was thrown: ${told}`)
  if (thrown.error?.name !== kind.name) throw ownError(`another error: ${thrown.error?.name}: ${thrown.error?.message}`)
}
const assert = {
  sameValue: (a, b, told) => { if (!isSame(a, b)) throw ownError(`${String(a)} is not ${String(b)}: ${told}`) },
  notSameValue: (a, b, told) => { if (isSame(a, b)) throw ownError(`${String(a)} twice: ${told}`) },
  compareArray: (a, b, told) => { if (!isEqual(a, b)) throw ownError(`[${String(a)}] is not [${String(b)}]: ${told}`) },
  throws: assertThrows
}
const compareArray = isEqual
"""
# What tests write that helpers of theirs, which have members or are made with `new`, are called by.
REPLACED = {
    r"\bassert\s*\(": "assertTrue(",
    r"\bnew Test262Error\s*\(": "ownError(",
    r"(['\"])use strict\1;?": "",
}
PROGRAM = """role R { can execute }
agent A : R {
  on go() {%s%s
  }
}
run A.go()
"""
NODE = """
for (const event of ["unhandledRejection", "uncaughtException"]) process.on(event, () => {})
const bodies = JSON.parse(require("fs").readFileSync(0, "utf8"))
const passes = (body) => { try { new Function(`"use strict"; ${body}`)(); return true } catch { return false } }
console.log(JSON.stringify(bodies.map(passes)))
process.exit()
"""
# How long a test may compute, or wait, in seconds; and how many are carried out one after the other.
MAX_CPU_S, MAX_S, AT_ONCE = 10, 30, 25


@dataclass(frozen=True, slots=True)
class Test:
    """A test: its path in the checkout, and what its handler does."""

    name: str
    body: str


@dataclass(frozen=True, slots=True)
class Known:
    """Failures that are known.

    Attributes:
        most: how many there may be; the number only falls.
        names: the paths of the tests, or a part of them.
        told: a part of what they fail with.
        is_refusal: whether the program is told what it cannot do, and does not go on with a wrong value.
    """

    reason: str
    most: int
    names: str = ""
    told: str = ""
    is_refusal: bool = False

    def covers(self, name: str, told: str) -> bool:
        """Whether a failure is of this kind."""
        return re.search(self.names, name) is not None and re.search(self.told, told) is not None


KNOWN: Sequence[Known] = (
    Known("arrays hold numbered items only", 237, told="holds numbered items only", is_refusal=True),
    Known("functions, texts, numbers and truth values have no members that can be set", 34, is_refusal=True,
          told=r"Cannot (?:set|delete) property '[^']*' of (?:`|the function|\d|\"|true|false|-|an object)"),
    Known("functions, arrays and texts are no objects of `Object`, and plain functions no constructors", 44,
          told=r"` of (?:the function|an array|an object|\"[^\"]*\").* is not a function|is not a constructor",
          is_refusal=True),
    Known("objects have no prototypes and members no attributes, and `Object.create` says so", 94, is_refusal=True,
          told="objects have no prototypes|members have no attributes"),
    Known("`var` is `let`, and there is no value before it", 11, told="^(?:UnboundLocal|Name)Error", is_refusal=True),
    Known("what Python's `re` cannot search for is refused", 18, is_refusal=True,
          told="a lookbehind has to|open group|named capture referenced|count is too large|named reference"),
    Known("an array is no longer than memory allows", 17, told="Invalid array length", is_refusal=True),
    Known("a text is a sequence of characters, not of UTF-16 units", 13,
          names="u-surrogate|u-captured|u-lastindex|source-text/6|pad(?:End|Start)/normal|coerced-position|A4.12_T1|dotall"),
    Known("`this` in a function is the agent, or the object it belongs to", 1,
          names=r"10\.4\.3|-5-\d+\.js$|context-method|call-this"
          r"|callback-(?:this|context)|executor-call|this-(?:arg|strict)|-arguments\.js"),
    Known("lists have no holes, and what is put far behind the end fills them", 38, names="built-ins/Array/"),
    Known("objects have no prototypes and no attributes of members", 8,
          names="Object/create|has-instance|hasown_inherited|8.12.1-1_|order-enumerable|Object/keys/15|12.6.3_2-3|13.2-2-s|13.2-19|11.4.1-"),
    Known("`Object(value)` gives a plain value", 4,
          told=r"new (?:Boolean|Number|String|false|Object)|typeof new|string is not object|Object\(0\)|1 \+ f"),
    Known("built-in functions have no `length` and no members of their own", 8,
          told=r"\.length is expected|hasOwnProperty\('length'\)|has length property"),
    Known("a name that is read in the head of its loop, or set before its `let`, is no error", 10,
          names="fordecl-tdz|scope-(?:body|head)-lex|before-initialization|closure-inside-next"),
    Known("`var` is `let`: it counts between its braces, and behind its declaration", 8,
          names="var-none|head-var-bound|scope-name-var|S12.6.4_A7_T2|S12.2_A4"),
    Known("`return` and `async` take what stands on the next line", 5,
          names="asi/|no-line-terminator|async-lineterminator"),
    Known("searches with the flag `u` take what JavaScript refuses", 11, names="unicode_restricted|u-unicode-esc"),
    Known("groups in repeated groups keep the text of an earlier round", 3,
          names="lookahead-quantifier|nullable-quantifier|lookBehind/captures"),
    Known("the order in which arguments are converted, and values that say what they are by steps", 12,
          names="fp-evaluation|year-offset|Error/constructor|lastindex-access|toPrecision/nan|return-abrupt|pos-coerce"
          "|computed-reference|11.2.3-3_3|S8.12.8|string-entry-primitive|hasOwn/hasown.js|replacer-array|toLocaleString"),
    Known("`yield` directly before a slash is a name", 1, names="yield/rhs-regexp"),
    Known("members of `JSON` and `Math` are listed", 1, names="JSON/15.12-0-4"),
    Known("a rejected promise that nobody handles fails the run, as in Node", 1,
          names="async-function/evaluation-body"),
)  # fmt: skip


def tests_in(checkout: Path) -> Iterator[Test]:
    """The tests of the checkout that name nothing absent."""
    folders = [checkout / "test" / "language", *(checkout / "test" / "built-ins" / name for name in BUILT_INS)]
    for path in sorted(path for folder in folders for path in folder.rglob("*.js")):
        text = path.read_text("utf-8", "surrogatepass")
        about = re.search(r"/\*---(.*?)---\*/", text, re.DOTALL)
        if about is None or path.stem.endswith("_FIXTURE") or "negative:" in about[1]:
            continue
        flags, features, includes = (_listed(about[1], field) for field in ("flags", "features", "includes"))
        body = text[: about.start()] + text[about.end() :]
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", body, flags=re.DOTALL)
        is_absent = ABSENT_FLAGS.search(flags) or ABSENT_FEATURES.search(features) or ABSENT.search(code)
        if is_absent or set(re.findall(r"[\w.]+", includes)) - {"compareArray.js"}:
            continue
        body = re.sub(r"(['\"])use strict\1;?", "", re.sub(r"\bassert\s*\(", "assertTrue(", body))
        yield Test(
            path.relative_to(checkout / "test").as_posix(), re.sub(r"\bnew Test262Error\s*\(", "ownError(", body)
        )


def _listed(about: str, field: str) -> str:
    found = re.search(rf"^{field}:\s*(\[.*?\]|(?:\n\s*-.*)+)", about, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def passing_in_node(tests: Sequence[Test]) -> list[Test]:
    """Those that Node passes with the same helpers."""
    passing = []
    for begin in range(0, len(tests), 100):
        some = tests[begin : begin + 100]
        bodies = json.dumps([HELPERS + test.body for test in some])
        done = subprocess.run(["node", "-e", NODE], input=bodies, capture_output=True, text=True, check=False)
        verdicts = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else []
        passing += [test for test, passes in zip(some, verdicts, strict=False) if passes]
    return passing


def carry_out(tests: Sequence[Test]) -> list[tuple[str, str]]:
    """The name of each test with what came of it: nothing where it passes, else what was told.

    A refusal of the compiler begins with `refused`.
    """
    results = []
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, _end_test)
    with TemporaryDirectory() as folder:
        os.environ["KOI_CACHE_DIR"] = folder
        path = Path(folder) / "test.koi"
        for test in tests:
            program = (
                f"role R {{ can execute }}\nagent A : R {{\n  on go() {{{HELPERS}{test.body}\n  }}\n}}\nrun A.go()\n"
            )
            path.write_text(program, "utf-8", "surrogatepass")
            signal.alarm(MAX_S)
            signal.setitimer(signal.ITIMER_PROF, MAX_CPU_S)
            try:
                _run(path)
                told = ""
            except CompileError as error:
                told = f"refused: {error}"
            except (Exception, SystemExit) as error:
                told = f"{type(error).__name__}: {error}"
            finally:
                signal.alarm(0)
                signal.setitimer(signal.ITIMER_PROF, 0)
            results.append((test.name, told))
    return results


def _end_test(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("it takes too long")


def _run(path: Path) -> None:
    """Run a program to its end. Raises what compiling and running raise."""
    entry = loader.load_compiled(str(path), fresh=True)
    try:
        module = loader.module_of(absolute(str(path)), None, entry)
        services = Services(
            _refuse_model,
            host=_Quiet(),
            teams=lambda: declarations.teams_of(module),
            folder=path.parent,
            evaluate=evaluate,
        )

        async def run() -> None:
            async with Run(services):
                await module.main()

        asyncio.run(run())
    finally:
        loader.unload()


class _Quiet(SilentHost):
    """A host to which tests print in vain."""

    def print(self, text: str) -> None:
        """No-op."""


def _refuse_model(*given: object) -> NoReturn:
    raise AssertionError("a test asks no model")


@dataclass(slots=True)
class Report:
    """What came of tests.

    Attributes:
        folders: how many passed, were refused and failed, by folder.
        known: how many failed, by the reason.
        unknown: the names of other tests that failed, with what was told.
    """

    folders: dict[str, Counter[str]]
    known: Counter[str]
    unknown: list[tuple[str, str]]

    @staticmethod
    def of(results: Sequence[tuple[str, str]], known: Sequence[Known]) -> Report:
        """The report on what `carry_out` gives."""
        report = Report({}, Counter(), [])
        for name, told in results:
            verdict = "passed" if not told else "refused" if told.startswith("refused") else "failed"
            if verdict == "failed":
                kind = next((each for each in known if each.covers(name, told)), None)
                if kind is None:
                    report.unknown.append((name, told))
                else:
                    report.known[kind.reason] += 1
                    verdict = "refused" if kind.is_refusal else verdict
            report.folders.setdefault("/".join(name.split("/")[:2]), Counter())[verdict] += 1
        return report

    def problems(self, known: Sequence[Known]) -> list[str]:
        """What is worse than known."""
        more = [
            f"{self.known[each.reason]} failures where {each.most} are known: {each.reason}"
            for each in known
            if self.known[each.reason] > each.most
        ]
        return more + [f"{name}: {' '.join(told.split())[:160]}" for name, told in self.unknown]

    def lines(self) -> Iterator[str]:
        """The report as text."""
        yield f"{'folder':32} {'passed':>7} {'failed':>7} {'refused':>8} {'right':>7}"
        total: Counter[str] = sum(self.folders.values(), Counter())
        for name, counts in [*sorted(self.folders.items()), ("all", total)]:
            accepted = counts["passed"] + counts["failed"]
            right = f"{100 * counts['passed'] / accepted:.1f} %" if accepted else ""
            yield f"{name:32} {counts['passed']:7,} {counts['failed']:7,} {counts['refused']:8,} {right:>7}"
        yield ""
        yield from (f"{count:5} {reason}" for reason, count in self.known.most_common())


def main(words: Sequence[str]) -> int:
    """Run the tests of a checkout; gives 1 where something fails that is not known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.test262", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--folder", default="", help="a part of the paths of tests, such as built-ins/Map")
    given = parser.parse_args(words)
    if not (given.checkout / "test" / "language").is_dir():
        print(f"{given.checkout} is no checkout of tc39/test262", file=sys.stderr)
        return 2
    tests = passing_in_node([test for test in tests_in(given.checkout) if given.folder in test.name])
    parts = [tests[begin : begin + AT_ONCE] for begin in range(0, len(tests), AT_ONCE)]
    with multiprocessing.get_context("spawn").Pool() as pool:
        results = [result for part in pool.imap(carry_out, parts) for result in part]
    report = Report.of(results, KNOWN)
    print("\n".join(report.lines()))
    problems = report.problems(KNOWN)
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
