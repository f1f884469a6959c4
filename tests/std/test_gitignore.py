"""`.gitignore` files mean what they mean to git."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from koi_lang.runtime.tree.comparing import PastRules
from koi_lang.runtime.tree.gitignore import IgnoreFile, IgnoreLevel, is_ignored
from koi_lang.runtime.tree.walking import Tree, Walker
from koi_lang.system.open_folders import OpenFolders
from koi_lang.system.wildmatch import as_bytes_text
from tests.std import ignored_trees

TREES = 60


def walk(folder: Path) -> Tree:
    """The tree of a project."""
    with OpenFolders(folder) as folders:
        return Walker(folder, frozenset(), lambda: None).walk(folders.root)


@pytest.mark.needs("git")
def test_git_agrees(tmp_path: Path) -> None:
    """On random trees with random rules in all folders, git ignores the same paths, and not few of them."""
    different, total, count = [], 0, 0
    for seed in range(TREES):
        root = tmp_path / str(seed)
        root.mkdir()
        paths = ignored_trees.make(random.Random(seed), root)
        by_git = ignored_trees.ignored_by_git(root, list(paths))
        tree = walk(root)
        rules = PastRules(tree.ignores)
        here = paths.keys() - {*tree.files, *tree.links, *tree.folders}
        then = {path for path, is_folder in paths.items() if rules.ignore(path, is_folder=is_folder)}
        different += [(seed, path) for path in sorted((by_git ^ here) | (by_git ^ then))]
        total, count = total + len(paths), count + len(by_git)

    assert count > total / 5
    assert len(different) < total / 1000, different


@pytest.mark.needs("git")
def test_git_agrees_on_a_folder_of_a_repository(tmp_path: Path) -> None:
    """Where the project is a folder of a repository, the rules of the folders around it count as git has them."""
    different, total = [], 0
    for seed in range(TREES):
        root = tmp_path / str(seed)
        root.mkdir()
        paths = ignored_trees.make(random.Random(seed), root)
        by_git = ignored_trees.ignored_by_git(root, list(paths))
        for folder in (path for path, is_folder in paths.items() if is_folder and path not in by_git):
            tree = walk(root / folder)
            here = {f"{folder}/{path}" for path in (*tree.files, *tree.links, *tree.folders)}
            inner = {path for path in paths if path.startswith(f"{folder}/")}
            different += [(seed, folder, path) for path in sorted((inner - by_git) ^ here)]
            total += len(inner)

    assert total > 1000
    assert len(different) < total / 1000, different


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("*.log", "a/b.log", True),
        ("*.log\n!keep.log", "a/keep.log", False),
        ("/build", "a/build", False),
        ("docs/**/x", "docs/x", True),
        ("?.txt", "é.txt", False),  # git counts bytes
        ("??.txt", "é.txt", True),
        ("a\\ ", "a ", True),
        ("[[:nope:]]", "n", False),
        ("fo**/bar", "fox/y/bar", True),  # as git takes it, which its manual does not say
    ],
)
def test_what_rules_mean(rules: str, path: str, expected: bool) -> None:
    """Known corners, each as git has it."""
    levels = [IgnoreLevel(IgnoreFile(as_bytes_text(rules)), "", 0)]

    assert is_ignored(levels, as_bytes_text(path), is_folder=False) is expected


def test_rules_made_to_take_long_do_not() -> None:
    """Patterns for which trying all ways takes years are answered at once."""
    file = IgnoreFile("*a*a*a*a*a*a*a*a*b\n**/a*/**/b*/**/c*/**/d\nx/**/*a*a*a*a*a*b/**/*c*c*c*d\n")
    before = time.process_time()

    assert file.verdict("a" * 250, "a" * 250, is_folder=False) is None
    assert file.verdict("b", "x/" + "/".join(["a" * 60] * 60) + "/b", is_folder=False) is None
    assert file.verdict("c", "/".join(["a", "b", "c"] * 600), is_folder=False) is None
    assert time.process_time() - before < 5
