"""The store of snapshots: shared by runs, emptied with them, never larger than it may be, and not believed blindly."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError
from koi_lang.runtime.snapshots.manifest import FileStatus, KeptFile, Manifest, tree_digest
from koi_lang.runtime.snapshots.retention import begin_keeping
from koi_lang.runtime.snapshots.store import DamagedContentError, SnapshotStore, delete_snapshots, sweep_snapshots
from tests.projects import Project


def no_stop() -> None:
    """Go on."""


def has_room(size: int) -> None:
    """There always is."""


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    """An empty store."""
    return SnapshotStore.of(tmp_path)


def contents(store: SnapshotStore) -> int:
    """How many bytes all contents have."""
    return sum(size for _, size in store.objects())


def keep(store: SnapshotStore, run: str, *contents: bytes) -> str:
    """A snapshot of some contents."""
    files = {f"{n}.txt": KeptFile(0o644, len(data), store.put(data, has_room)) for n, data in enumerate(contents)}
    return store.keep(run, Manifest(files), has_room)


def test_a_list_comes_back_as_it_was() -> None:
    """All that a snapshot holds is in its form on disk, and only what makes up the tree is in its name."""
    status = FileStatus(0o600, 3, 10, 20, 30)
    manifest = Manifest(
        {"é\n.txt": KeptFile(0o600, 3, "a" * 64, status), "b": KeptFile(0o755, 0, "b" * 64)},
        {"link": "../../outside"},
        {"empty": 0o1777},
        {"large.bin": "large"},
        [("", "src/", "*.log\n")],
    )
    data = manifest.to_bytes()
    later = Manifest({**manifest.files, "b": KeptFile(0o755, 0, "b" * 64, status)}, *list(parts(manifest))[1:])

    assert Manifest.of_bytes(data) == manifest
    assert tree_digest(later.to_bytes()) == tree_digest(data)
    assert tree_digest(Manifest(manifest.files).to_bytes()) != tree_digest(data)


def parts(manifest: Manifest) -> tuple[object, ...]:
    """The fields of a snapshot."""
    return (manifest.files, manifest.links, manifest.folders, manifest.left_out, manifest.ignores)


def test_a_content_is_kept_once_and_goes_with_its_last_run(store: SnapshotStore) -> None:
    """What two runs share stays until both are gone."""
    first, second = keep(store, "a", b"same", b"mine"), keep(store, "b", b"same")

    assert (contents(store), first.partition("-")[0], second.partition("-")[0]) == (8, "a", "b")
    assert delete_snapshots(store.folder.parent.parent, "a")
    sweep_snapshots(store.folder.parent.parent)
    assert contents(store) == 4
    assert delete_snapshots(store.folder.parent.parent, "b")
    sweep_snapshots(store.folder.parent.parent)
    assert (contents(store), delete_snapshots(store.folder.parent.parent, "b")) == (0, False)


@pytest.mark.parametrize("name", ["../../..", "..", "a/../../b", "", ".hidden", "a" * 200])
def test_nothing_else_is_deleted(store: SnapshotStore, name: str) -> None:
    """A name that is none of a run leads nowhere."""
    keep(store, "a", b"1")

    assert not delete_snapshots(store.folder.parent.parent, name)
    assert contents(store) == 1


@pytest.mark.parametrize(
    "id", ["", "x", "../../etc/passwd", "a-" + "0" * 15, "a/b-" + "0" * 16, "..-" + "0" * 16, "a-" + "G" * 16, "\n" * 9]
)
def test_what_is_no_id_is_told(store: SnapshotStore, id: str) -> None:
    """Whatever a model or journal gives, no file outside of the lists is looked for."""
    with pytest.raises(AgentError, match="is no snapshot"):
        store.manifest(id)


def test_what_is_not_there_is_told(store: SnapshotStore) -> None:
    """A snapshot that was removed says so."""
    with pytest.raises(AgentError, match=r"there is no snapshot `a-0000000000000000`"):
        store.manifest("a-" + "0" * 16)


@pytest.mark.parametrize("damage", [b"", b"{}\n[]\n", b"\xff", b'{"format":1}\n[]\n', b"[" * 100_000])
def test_a_damaged_list_is_told(store: SnapshotStore, damage: bytes) -> None:
    """Half a list, or another one, is not carried out."""
    id = keep(store, "a", b"1")
    (store.lists / "a" / id.partition("-")[2]).write_bytes(damage)
    (store.folder / "latest").write_bytes(damage)

    with pytest.raises(AgentError, match="is damaged"):
        store.manifest(id)
    assert store.latest() == Manifest()


@pytest.mark.parametrize(
    "manifest",
    [
        *(
            Manifest({path: KeptFile(0o644, 1, "a" * 64)})
            for path in ("../x", "/etc/x", "a/../../x", "a//b", "", ".env")
        ),
        *(Manifest(links={path: "x"}) for path in ("..", "a/.git", "a/", "a\0b")),
        *(Manifest(folders={path: 0o755}) for path in ("../x", ".koi")),
        *(Manifest(folders={"a": mode}) for mode in (-1, 0o10000, 7.5, "0755")),  # type: ignore[dict-item]
        Manifest({"a": KeptFile("x", 1, "a" * 64)}),  # type: ignore[arg-type]
        Manifest({"a": KeptFile(0o644, -1, "a" * 64)}),
        Manifest(links={"a": 5}),  # type: ignore[dict-item]
    ],
)
def test_a_made_up_list_leads_nowhere(store: SnapshotStore, manifest: Manifest) -> None:
    """A list whose name is right, and that holds what no snapshot has, is damaged."""
    id = store.keep("a", manifest, has_room)

    with pytest.raises(AgentError, match="is damaged"):
        store.manifest(id)


def test_a_damaged_content_is_told_and_kept_again(store: SnapshotStore) -> None:
    """What is not what its name says is never given, and the next snapshot mends it."""
    digest = store.put(b"content", has_room)
    path = store.folder / "objects" / digest[:2] / digest[2:]
    path.write_bytes(b"another")

    with pytest.raises(DamagedContentError):
        store.get(digest)
    assert store.put(b"content", has_room) == digest
    assert store.get(digest) == b"content"


@pytest.mark.parametrize("digest", ["", "../../../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n"])
def test_a_content_is_named_by_its_digest(store: SnapshotStore, digest: str) -> None:
    """A list leads to contents of the store, and to no other file."""
    with pytest.raises(DamagedContentError):
        store.get(digest)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Where there is a file or a link in place of the folder, the message says what to do."""
    (tmp_path / "a" / ".koi").mkdir(parents=True)
    (tmp_path / "a" / ".koi" / "snapshots").write_text("")
    (tmp_path / "b" / ".koi").mkdir(parents=True)
    (tmp_path / "b" / ".koi" / "snapshots").symlink_to(tmp_path / "a")

    for name in "ab":
        with pytest.raises(AgentError, match=r"snapshots cannot be kept in `.koi/snapshots`") as told:
            SnapshotStore.of(tmp_path / name)
        assert told.value.help == "Make room, or have `.koi` be a folder that can be written."


def test_removing_waits_for_those_who_add(store: SnapshotStore) -> None:
    """Many add at a time; who removes is alone."""
    done: list[str] = []
    with store.hold_lock(shared=True, stop=no_stop), store.hold_lock(shared=True, stop=no_stop):
        waiting = threading.Thread(target=lambda: (sweep_snapshots(store.folder.parent.parent), done.append("swept")))
        waiting.start()
        waiting.join(0.2)
        done.append("added")
    waiting.join()

    assert done == ["added", "swept"]


def test_who_waits_to_be_alone_gets_its_turn(store: SnapshotStore) -> None:
    """However many share the store, one after the other, somebody who removes does not wait for all of them."""
    swept, turns = threading.Event(), []

    def share() -> None:
        while not swept.is_set() and len(turns) < 400:
            with store.hold_lock(shared=True, stop=no_stop):
                turns.append(1)
                swept.wait(0.05)

    threads = [threading.Thread(target=share) for _ in range(8)]
    for thread in threads:
        thread.start()
    sweep_snapshots(store.folder.parent.parent)
    swept.set()
    for thread in threads:
        thread.join()

    assert len(turns) < 300


def test_contents_that_are_named_are_never_swept(store: SnapshotStore) -> None:
    """While some runs keep the same contents, others are deleted and swept: no list lacks anything at the end."""
    project = store.folder.parent.parent

    def work(number: int) -> None:
        for turn in range(10):
            with store.hold_lock(shared=True, stop=no_stop):
                keep(store, f"run{number}-{turn}", b"same", str(turn).encode(), str(number).encode())
            delete_snapshots(project, f"run{(number + 1) % 8}-{turn - 1}")
            sweep_snapshots(project)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    kept = [Manifest.of_bytes(path.read_bytes()) for path in store.lists.glob("*/*")]
    assert len(kept) > 8
    assert all(store.get(file.digest) for manifest in kept for file in manifest.files.values())


def test_runs_that_go_meanwhile_are_not_counted(store: SnapshotStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is deleted between being listed and being read takes nothing and names nothing."""
    project = store.folder.parent.parent
    with store.hold_lock(shared=True, stop=no_stop):
        for run in ("first", "second"):
            keep(store, run, run.encode())
    listed = os.scandir

    def scandir(folder: str | int) -> object:
        if folder != store.lists:
            return listed(folder)
        runs = list(listed(folder))
        for run in runs:
            delete_snapshots(project, run.name)
        return runs

    monkeypatch.setattr(os, "scandir", scandir)
    assert store.used_bytes() == len("first" + "second")
    monkeypatch.undo()
    sweep_snapshots(project)
    assert (lists(store), contents(store)) == ([], 0)


def test_a_run_that_is_deleted_while_it_keeps_loses_nothing(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its folder goes between being made and being written to, it is made again."""
    made, left = os.makedirs, [3]

    def makedirs(path: str, **how: Any) -> None:
        made(path, **how)
        if left[0] and "runs" in path:
            left[0] -= 1
            os.rmdir(path)

    monkeypatch.setattr(os, "makedirs", makedirs)
    with store.hold_lock(shared=True, stop=no_stop):
        id = keep(store, "run", b"one")

    assert ([0], {"0.txt"}) == (left, set(store.manifest(id).files))


def test_waiting_ends_when_nobody_wants_it(store: SnapshotStore) -> None:
    """Who waits for another run can be ended."""

    def stop() -> None:
        raise KeyboardInterrupt

    with (
        store.hold_lock(shared=True, stop=no_stop),
        pytest.raises(KeyboardInterrupt),
        store.hold_lock(shared=False, stop=stop),
    ):
        raise AssertionError("the lock was held")


def test_runs_without_a_journal_leave_nothing(tmp_path: Path) -> None:
    """Their snapshots go when they end, and where they were killed, with the next run that keeps some."""
    store = SnapshotStore.of(tmp_path)
    (tmp_path / ".koi" / "runs").mkdir()
    (tmp_path / ".koi" / "runs" / "recorded.jsonl").touch()
    for run in ("going", "recorded"):
        begin_keeping(tmp_path, run, no_stop)
    for run in ("going", "recorded", "killed"):
        keep(store, run, run.encode())
    end = begin_keeping(tmp_path, "last", no_stop)
    assert end is not None
    keep(store, "last", b"last")

    assert (begin_keeping(tmp_path, "last", no_stop), lists(store)) == (None, ["going", "last", "recorded"])
    end()
    assert (lists(store), contents(store)) == (["going", "recorded"], len("going" + "recorded"))


def lists(store: SnapshotStore) -> list[str]:
    """The runs that keep snapshots."""
    return sorted(path.name for path in store.lists.iterdir() if path.is_dir())


def test_snapshots_go_with_the_journal_of_their_run(project: Project) -> None:
    """`koi runs delete` removes both."""
    program = """
        import "std/workspace"
        role R { can execute }
        agent A : R { on go(args: Json) { console.log((await snapshot()).files) } }
        run A.go({})
        """
    project.write("a.koi", program)
    project.write("note.txt", "note")
    assert project.koi("run", "a.koi").stdout == "1\n"
    store = SnapshotStore.of(project.folder)
    (run,) = lists(store)
    assert contents(store) == 4

    deleted = project.koi("runs", "delete", run, "--yes")

    assert (deleted.stdout, lists(store), contents(store)) == (f"removed {run}\n", [], 0), deleted.stderr
    assert project.koi("run", "--no-record", "a.koi").stdout == "1\n"
    assert (lists(store), os.listdir(store.lists), contents(store)) == ([], [], 0)
    assert json.loads(project.koi("runs", "list", "--json").stdout) == []
