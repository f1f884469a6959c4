"""Options of the test-suite, and what many tests start from."""

from __future__ import annotations

import gc
import itertools
import os
import re
import shlex
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.runner import runtestprotocol

from koi_lang.compiler import lalr
from koi_lang.compiler.parser import parse
from koi_lang.program import loader
from koi_lang.sessions.prepared import FOLDER
from koi_lang.source import Source
from koi_lang.system import resources
from tests import forks
from tests.environment import drop_settings
from tests.in_process import modules_behind
from tests.needs import mark_counterparts
from tests.projects import Project
from tests.search_path import hide_bubblewrap
from tests.wheel import Installed, installed_once

# Tests that need more than the extra `test` brings.
BEYOND_USUAL = {"api/test_jupyter.py": "IPython", "service/test_document_holds.py": "schemathesis"}
collect_ignore = [path for path, package in BEYOND_USUAL.items() if find_spec(package) is None]

pytest_plugins = ["tests.cpu_costs"]
# Numbers of the folders of tests.
FOLDERS = itertools.count()
WORKER_PLUGINS = "xdist.plugin,anyio.pytest_plugin,pytest_timeout,_hypothesis_pytestplugin"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--accept` writes what golden tests see as what they expect."""
    parser.addoption("--accept", action="store_true", help="rewrite golden files; read the difference afterwards")


def pytest_configure(config: pytest.Config) -> None:
    """Make the processes that tests start independent of how the suite was started.

    What the shell says to programs does not reach them. Python keeps bytecode, so that they are compiled once. Ctrl-C
    and the end of a terminal reach them, also where a shell in the background or `nohup` ignores those. They find the
    commands of this Python, also where its environment is not activated, but no bubblewrap, and no servers of models
    that run here. Their pytest loads no plugin that happens to be installed here. Folders are trusted, but in tests
    of that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    drop_settings(os.environ)
    os.environ["KOI_LOCAL_PORTS"] = "none"
    os.environ["KOI_TRUST_FOLDER"] = "1"
    sys.dont_write_bytecode = False
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    if (links := hide_bubblewrap(os.environ)) is not None:
        config.add_cleanup(links.cleanup)
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):  # workers load plugins themselves
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.environ.pop("PYTEST_PLUGINS", None)
    else:
        forks.share()
        if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
            fork_workers(config)


def fork_workers(config: pytest.Config) -> None:
    """Have the workers of the whole suite begin with what most tests import, instead of importing it each.

    Their plugins are named, since those that are looked for have to be imported after pytest.
    """
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": WORKER_PLUGINS}
    python = shlex.join(forks.python_for_workers())
    config.option.tx = [f"popen//python={python}" if spec == "popen" else spec for spec in config.option.tx]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Half as many processes again as there are cores: tests that wait for other processes leave theirs idle."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + cores // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect cases without the garbage collector: it would walk through all modules and cases again and again.

    They live until the end, so that it passes over them afterwards, too. What tests leave is looked for seldom: a
    search visits all that has been imported and cached since.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20, 50)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the usual suite leaves out of tests that are `sampled(n)`, and counterparts.

    It takes n cases, spread over all; `-m thorough` takes the others.
    """
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for found in cases.values():
        (usual,) = found[0].get_closest_marker("sampled").args  # type: ignore[union-attr]
        taken = {number * len(found) // usual for number in range(usual)}
        for number, item in enumerate(found):
            if number not in taken:
                item.add_marker(pytest.mark.thorough)
    mark_counterparts(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker send what the terminal shows: how a test ended, and what failed.

    Half of the six messages of a test say that it begins, has been set up and is over, and their keywords are most of
    the others; to send and to read them takes as long as a short test.
    """
    options = item.config.option
    if not hasattr(item.config, "workerinput") or options.verbose > 0:
        return None
    if options.durations is not None or options.xmlpath:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.passed:
            report.keywords = {}
        if report.when != "setup" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--accept"))


@pytest.fixture(autouse=True)
def _recursion_limit() -> Iterator[None]:
    """No test leaves the process with another recursion limit than it had."""
    limit = sys.getrecursionlimit()
    yield
    assert limit == sys.getrecursionlimit()


@pytest.fixture(autouse=True, scope="session")
def _tables(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The tables of the parser are made once, and not at the cost of the test that happens to be the first to parse.

    They are taken from the cache of whoever runs the suite into that of the tests. Keys and trust of that person are
    left alone: the tests have a folder of their own for them.
    """
    os.environ["KOI_CONFIG_DIR"] = str(tmp_path_factory.getbasetemp() / "config")
    lalr.parse_tokens("")
    parse(Source("", "role Reader {}"))
    folder = tmp_path_factory.getbasetemp() / "cache"
    folder.mkdir()
    tables = lalr._tables(resources.grammar().read_text("utf-8"))
    if isinstance(tables, str) and os.path.exists(tables):  # there may be no home folder to keep them in
        shutil.copy(tables, folder)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder: that of pytest is found among those of all tests before, and has a link to the newest."""
    name = re.sub(r"\W", "_", request.node.name)[:26]
    folder = tmp_path_factory.getbasetemp() / f"{name}{next(FOLDERS)}"
    folder.mkdir(0o700)
    return folder


@pytest.fixture
def project(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    """An empty folder for programs; what is loaded from it is forgotten afterwards.

    Its person has been told already what koi tells only once.
    """
    cache = tmp_path_factory.getbasetemp() / "cache"
    (cache / FOLDER).mkdir(parents=True, exist_ok=True)
    (cache / FOLDER / "no-sandbox").touch()
    monkeypatch.setenv("KOI_CACHE_DIR", str(cache))
    folder = tmp_path / "project"
    folder.mkdir()
    last = next(reversed(sys.modules))
    yield Project(folder)
    for name in modules_behind(last):
        if name.startswith(loader.PREFIX) or is_below(folder, sys.modules[name]):
            del sys.modules[name]


def is_below(folder: Path, module: ModuleType) -> bool:
    """Whether a module is of a file in a folder."""
    return str(getattr(module, "__file__", "")).startswith(f"{folder}{os.sep}")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Installed:
    """The wheel of this checkout, installed into an environment of its own that all workers share."""
    base = tmp_path_factory.getbasetemp()
    return installed_once((base.parent if hasattr(request.config, "workerinput") else base) / "wheel")
