"""The registry on disk: where it lies, what it takes over, and what it does with files it cannot read."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from contextlib import closing

import pytest

from koi_lang.errors import RegistryError, SettingsError
from koi_lang.runtime.registry import open_registry


def ask(folder, method, *arguments, config=None):
    """Open the registry of a folder, call one method, close it again."""
    with closing(open_registry(folder, config)) as registry:
        return asyncio.run(getattr(registry, method)(*arguments))


def write_data(folder, text):
    """Put a `data.json` where the JavaScript implementation does."""
    file = folder / ".koi" / "registry" / "data.json"
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    return file


def keyv(**options):
    """A configuration of the `keyv-sqlite` backend."""
    return {"registry": {"backend": "keyv-sqlite", "options": options}}


def test_entries_outlive_the_process(tmp_path):
    """What one registry wrote, the next one of the folder reads."""
    ask(tmp_path, "set", "user", {"name": "Ana"})

    assert ask(tmp_path, "get", "user") == {"name": "Ana"}


def test_nobody_else_can_read_it(tmp_path):
    """The file and the log beside it are for their owner only."""
    with closing(open_registry(tmp_path, None)) as registry:
        asyncio.run(registry.set("user", {"name": "Ana"}))
        files = [path for path in tmp_path.rglob("*") if path.is_file()]

        assert len(files) > 1
        assert {0o600} == {path.stat().st_mode & 0o777 for path in files}


def test_opening_touches_nothing(tmp_path):
    """A registry that is not used leaves no folder behind."""
    open_registry(tmp_path, None).close()

    assert list(tmp_path.iterdir()) == []


def test_a_closed_registry_opens_again(tmp_path):
    """After `close` the next use works as before."""
    with closing(open_registry(tmp_path, None)) as registry:
        asyncio.run(registry.set("a", 1))
        registry.close()

        assert asyncio.run(registry.get("a")) == 1


def test_stats_of_a_folder(tmp_path):
    """`stats` names the backend, counts entries, and gives the file and its size in bytes."""
    ask(tmp_path, "set", "a", 1)

    stats = ask(tmp_path, "stats")

    file = tmp_path / ".koi" / "registry" / "registry.sqlite"
    assert stats == {"backend": "local", "count": 1, "file": str(file), "size": file.stat().st_size}


def test_stats_in_memory(tmp_path):
    """A registry in memory has no file."""
    stats = ask(tmp_path, "stats", config={"registry": {"backend": "memory"}})

    assert stats == {"backend": "memory", "count": 0, "file": None, "size": 0}


def test_data_json_is_taken_over(tmp_path):
    """Entries of the JavaScript implementation are there at the first use, in order, and its file stays as it was."""
    text = json.dumps({"b": {"age": 30}, "a": 0, "c": None, "ø": ""}, indent=2)
    file = write_data(tmp_path, text)

    keys = ask(tmp_path, "keys")

    assert (["b", "a", "c", "ø"], text) == (keys, file.read_text("utf-8"))
    assert [ask(tmp_path, "get", key) for key in keys] == [{"age": 30}, 0, None, ""]


def test_data_json_is_taken_over_once(tmp_path):
    """Deleted entries do not come back with the next opening."""
    write_data(tmp_path, '{"a": 1, "b": 2}')
    ask(tmp_path, "delete", "a")

    assert ask(tmp_path, "keys") == ["b"]


def test_a_later_data_json_does_not_overwrite(tmp_path):
    """A `data.json` that appears after the first use adds its entries; those that exist win."""
    ask(tmp_path, "set", "a", "new")
    (tmp_path / ".koi" / "registry" / "data.json").write_text('{"a": "old", "b": 2}')

    assert [ask(tmp_path, "get", key) for key in ("a", "b")] == ["new", 2]


@pytest.mark.parametrize("text", ["", "\ufeff{}", "{}"])
def test_an_empty_data_json_has_no_entries(tmp_path, text):
    """A file without entries is no mistake."""
    write_data(tmp_path, text)

    assert ask(tmp_path, "keys") == []


@pytest.mark.parametrize("text", ['{"a": 1', "[1]", '{"\\ud83d": 1}', "[" * 100_000])
def test_a_damaged_data_json_is_reported(tmp_path, text):
    """The error says what to do; the file is unchanged, and once it is repaired its entries are taken over."""
    file = write_data(tmp_path, text)
    with pytest.raises(RegistryError, match=r"data\.json` cannot be taken over") as caught:
        ask(tmp_path, "get", "a")
    kept = file.read_text("utf-8")
    file.write_text('{"a": 1}')

    assert (text, 1) == (kept, ask(tmp_path, "get", "a"))
    assert caught.value.help.startswith("Repair the file, or move it elsewhere")


def test_a_damaged_database_is_reported_and_kept(tmp_path):
    """A file that is no database raises an error that says what to do, and is not changed."""
    file = tmp_path / ".koi" / "registry" / "registry.sqlite"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not a database" * 1000)

    with pytest.raises(RegistryError, match="is damaged") as caught:
        ask(tmp_path, "set", "a", 1)

    assert (file.read_bytes(), "move it elsewhere" in caught.value.help) == (b"not a database" * 1000, True)


def test_a_damaged_page_is_reported(tmp_path):
    """Damage behind the header of the database is found when the entries are read."""
    for number in range(50):
        ask(tmp_path, "set", f"k{number}", "x" * 500)
    file = tmp_path / ".koi" / "registry" / "registry.sqlite"
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)

    with pytest.raises(RegistryError, match="is damaged"):
        ask(tmp_path, "keys")


def test_a_damaged_value_is_reported(tmp_path):
    """An entry that something else has overwritten fails by name and can be set again."""
    ask(tmp_path, "set", "a", 1)
    with closing(sqlite3.connect(tmp_path / ".koi" / "registry" / "registry.sqlite")) as connection, connection:
        connection.execute("UPDATE entries SET value = '{'")
    with pytest.raises(RegistryError, match="the stored value of `a` is damaged"):
        ask(tmp_path, "get", "a")
    ask(tmp_path, "set", "a", 2)

    assert ask(tmp_path, "get", "a") == 2


def test_a_newer_layout_is_refused(tmp_path):
    """A file that a later version wrote is not touched."""
    ask(tmp_path, "set", "a", 1)
    with closing(sqlite3.connect(tmp_path / ".koi" / "registry" / "registry.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")

    with pytest.raises(RegistryError, match="newer version"):
        ask(tmp_path, "get", "a")


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    """A file in the place of the folder raises an error that says what to check."""
    (tmp_path / ".koi").write_text("")

    with pytest.raises(RegistryError, match="cannot be used") as caught:
        ask(tmp_path, "get", "a")

    assert "set another `path`" in caught.value.help


def test_the_path_option_moves_the_registry(tmp_path):
    """`path` names the folder of the `local` backend, seen from the working directory."""
    ask(tmp_path, "set", "a", 1, config={"registry": {"options": {"path": "data/kept", "autoSaveInterval": 5000}}})

    assert [path.name for path in (tmp_path / "data" / "kept").iterdir()] == ["registry.sqlite"]


def test_namespaces_share_a_file(tmp_path):
    """Two namespaces of one file do not see each other; `clear` empties only its own."""
    ask(tmp_path, "set", "a", 1, config=keyv(path="shared.sqlite", namespace="one"))
    ask(tmp_path, "set", "a", 2, config=keyv(path="shared.sqlite", namespace="two"))

    cleared = ask(tmp_path, "clear", config=keyv(path="shared.sqlite", namespace="two"))

    assert (cleared, ask(tmp_path, "get", "a", config=keyv(path="shared.sqlite", namespace="one"))) == (1, 1)


def write_keyv(file, rows):
    """Create the table that the key-value library of the JavaScript implementation uses."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE keyv (key VARCHAR(255) PRIMARY KEY, value TEXT)")
        connection.executemany("INSERT INTO keyv VALUES (?, ?)", rows)


def test_a_keyv_table_is_taken_over(tmp_path):
    """Rows of the namespace become entries without their envelope; expired ones and other namespaces do not."""
    later_ms = int(time.time() * 1000) + 60_000
    rows = {
        "koi:b": {"value": {"tag": "::x"}, "expires": None},
        "koi:a": {"value": 0, "expires": later_ms},
        "koi:old": {"value": 1, "expires": 1},
        "other:a": {"value": 2, "expires": None},
    }
    write_keyv(tmp_path / "r.sqlite", [(key, json.dumps(row)) for key, row in rows.items()])

    keys = ask(tmp_path, "keys", config=keyv(path="r.sqlite"))

    values = [ask(tmp_path, "get", key, config=keyv(path="r.sqlite")) for key in keys]
    assert (keys, values) == (["b", "a"], [{"tag": ":x"}, 0])


@pytest.mark.parametrize("text", ["{", "3", None])
def test_a_damaged_keyv_row_is_reported(tmp_path, text):
    """A row that holds no object fails by name."""
    write_keyv(tmp_path / "r.sqlite", [("koi:a", text)])

    with pytest.raises(RegistryError, match="the row `koi:a`"):
        ask(tmp_path, "keys", config=keyv(path="r.sqlite"))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"backend": "redis"}, "unknown registry backend `redis`"),
        ({"backend": "../evil"}, "unknown registry backend `../evil`"),
        ({"backend": 3}, "the registry's `backend` in `.koi-config.json` must be text, not 3"),
        ({"options": []}, "`registry.options` in `.koi-config.json` must be an object, not []"),
        ({"options": {"path": ""}}, "the registry's `path` in `.koi-config.json` must be text, not ''"),
        ("local", "`registry` in `.koi-config.json` must be an object, not 'local'"),
    ],
)
def test_a_bad_configuration_is_refused(tmp_path, section, words):
    """What the configuration cannot mean is a settings error before anything is opened."""
    with pytest.raises(SettingsError) as caught:
        open_registry(tmp_path, {"registry": section})

    assert caught.value.message == words


def test_an_unknown_backend_is_answered_with_the_known_ones(tmp_path):
    """The help of the error lists the backends."""
    with pytest.raises(SettingsError) as caught:
        open_registry(tmp_path, {"registry": {"backend": "redis"}})

    assert caught.value.help == "Set `registry.backend` to one of `local`, `memory`, `keyv-sqlite`."
