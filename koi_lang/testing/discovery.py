"""Paths to the cases in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from koi_lang.diagnostics import suggestion
from koi_lang.errors import UsageError
from koi_lang.program.files import inside
from koi_lang.testing import blocks, recordings
from koi_lang.testing.cases import Case, Collect

TESTS = ".test.koi"
# Recorded runs are found under folders of this name.
RECORDED, RECORDED_UNDER = ".jsonl", "tests"
# Between a file and the name of one of its cases.
NAMED = "::"
COLLECTORS: Mapping[str, Collect] = {".koi": blocks.collect, ".jsonl": recordings.collect}


def find(paths: Iterable[str], *, update: bool = False, collectors: Mapping[str, Collect] = COLLECTORS) -> list[Case]:
    """The cases in files and folders, each file once, in the order of the paths.

    Args:
        paths: a file is taken whatever it is called; in a folder, `*.test.koi` and recorded runs under `tests`;
            `a.test.koi::adds` is one case of a file.
        update: whether recorded runs write anew what they expect.
        collectors: how cases are found in a file, by the ending of its name.

    Raises:
        UsageError: there is no such path or case, or the file is of no kind that holds tests.
    """
    wanted: dict[Path, set[str]] = {}
    for path in paths:
        whole, _, name = (path, "", "") if Path(path).exists() else path.partition(NAMED)
        for file in _files(Path(whole), collectors):
            wanted.setdefault(file, set()).add(name)
    return [
        case for file, names in wanted.items() for case in _select_names(collectors[file.suffix](file, update), names)
    ]


def _select_names(cases: Sequence[Case], names: Collection[str]) -> Sequence[Case]:
    """The cases of a file that have these names; all where one of them is empty, and a file that cannot be read."""
    known = {case.name for case in cases}
    if "" in names or known == {""}:
        return cases
    for name in names:
        if name not in known:
            help = suggestion(name, sorted(known), "test")
            raise UsageError(f"no test of the file is called `{name}`", help=help)
    return [case for case in cases if case.name in names]


def _files(path: Path, suffixes: Collection[str]) -> Sequence[Path]:
    if path.is_dir():
        return [file for file in sorted(filter(_is_test, inside(path.resolve(), ""))) if file.suffix in suffixes]
    if not path.exists():
        raise UsageError(f"there is no file or folder `{path}`", help="name files or folders that hold tests.")
    if path.suffix not in suffixes:
        known = ", ".join(f"`*{suffix}`" for suffix in suffixes)
        raise UsageError(f"`{path}` holds no tests", help=f"tests are in {known}.")
    return [path.resolve()]


def _is_test(file: Path) -> bool:
    return file.name.endswith(TESTS) or (file.suffix == RECORDED and RECORDED_UNDER in file.parts)
