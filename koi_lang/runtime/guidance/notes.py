"""Notes in Markdown files: the memory of a project and of its person, one note a file."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, Required, TypeAlias, TypedDict, cast

from koi_lang import settings
from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, KoiError, reason
from koi_lang.front_matter import FENCE, read_front_matter
from koi_lang.runtime.guidance.material import as_plain_text, plain_text
from koi_lang.runtime.guidance.skill_places import tell_path
from koi_lang.runtime.host import visible
from koi_lang.system.open_folders import FILE, resolve_links

FOLDER = ".agents/memory"
ENDING = ".md"
KINDS = ("fact", "decision", "preference", "lesson", "warning")
ID = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
MAX_ID_CHARS = 64
MAX_CHARS = 2_000
# Of a file: the longest text in any script, and its front matter.
MAX_BYTES = 16_000
MAX_ABOUT = 20
MAX_ABOUT_CHARS = 100
Owner: TypeAlias = Literal["project", "person"]
# A note as programs, journals and `--json` have it; `words` are those by which it was found.
NoteData = TypedDict(
    "NoteData",
    {
        "id": Required[str],
        "kind": Required[str],
        "text": Required[str],
        "owner": Required[Owner],
        "date": str,
        "about": list[str],
        "from": str,
        "run": str,
        "supersedes": str,
        "words": list[str],
    },
    total=False,
)


@dataclass(frozen=True, slots=True)
class Note:
    """A note.

    Attributes:
        about: paths, names or topics that it is about.
        source: the agent or person that wrote it; `from` in the file.
        run: the run in which it was written.
        date: a day such as `2026-11-02`; empty for none.
        supersedes: the id of an older note that this one replaces.
        owner: whose folder it stands in.
        name: of its file.
    """

    id: str
    kind: str
    text: str
    about: tuple[str, ...] = ()
    source: str = ""
    run: str = ""
    date: str = ""
    supersedes: str = ""
    owner: Owner = "project"
    name: str = ""

    def as_data(self) -> NoteData:
        """The note as data; empty fields are left out."""
        data: NoteData = {"id": self.id, "kind": self.kind, "text": self.text, "owner": self.owner}
        texts = {"date": self.date, "from": self.source, "run": self.run, "supersedes": self.supersedes}
        about = {"about": list(self.about)} if self.about else {}
        return cast("NoteData", data | about | {name: value for name, value in texts.items() if value})

    def as_file(self) -> str:
        """The content of its file."""
        about = f"[{', '.join(json.dumps(each, ensure_ascii=False) for each in self.about)}]" if self.about else ""
        lines = [
            f"{name}: {value}" for name, value in (("id", self.id), ("kind", self.kind), ("about", about)) if value
        ]
        texts = (("from", self.source), ("run", self.run), ("date", self.date), ("supersedes", self.supersedes))
        lines += [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in texts if value]
        return "\n".join([FENCE, *lines, FENCE, self.text, ""])


@dataclass(frozen=True, slots=True)
class NoteFolder:
    """A folder of notes.

    Attributes:
        root: the folder that links do not leave; None where the folder may be a link to anywhere.
        shown: its path as a person writes it.
    """

    owner: Owner
    path: Path
    root: Path | None
    shown: str

    def resolve(self) -> Path | None:
        """The folder with all links resolved; None where there is none. Raises AgentError for an unusable one."""
        try:
            found = resolve_links(self.path)
            if self.root is not None and not found.is_relative_to(self.root.resolve()):
                help = "Put the notes there instead of a link."
                raise AgentError(f"`{self.shown}` leads out of the project", help=help)
            about = found.stat()
        except FileNotFoundError:
            return None
        except RuntimeError as error:
            raise AgentError(f"`{self.shown}` is a link that leads to itself", help="Make a folder there.") from error
        except OSError as error:
            raise AgentError(f"`{self.shown}` cannot be read: {reason(error)}", help="Make a folder there.") from error
        if not stat.S_ISDIR(about.st_mode):
            raise AgentError(f"`{self.shown}` is a file, and notes stand in a folder", help="Rename it.")
        return found

    def path_of(self, name: str) -> str:
        """The path of a note as a person writes it."""
        return visible(f"{self.shown}/{name}")


def note_folders(project: Path) -> tuple[NoteFolder, NoteFolder]:
    """The folder of a project's notes, and that of the person's."""
    person = settings.config_folder() / "memory"
    return (
        NoteFolder("project", project / FOLDER, project, FOLDER),
        NoteFolder("person", person, None, tell_path(person)),
    )


def read_note(folder: NoteFolder, base: Path, name: str) -> Note:
    """The note in a file. Raises AgentError with the path of the file.

    Args:
        base: the folder with all links resolved.
    """
    file = base / name
    try:
        if file.is_symlink():
            raise AgentError("is a link", help="Put a copy in its place.")
        with open(os.open(file, FILE), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise AgentError("is no file with a text", help="Write a file in its place.")
            data = opened.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise AgentError(f"has more than {MAX_BYTES:,} bytes", help="Split it into notes.")
        note = parse_note(as_plain_text(data), name.removesuffix(ENDING))
        return replace(note, owner=folder.owner, name=name)
    except KoiError as error:
        raise AgentError(f"`{folder.path_of(name)}` {error.message}", help=error.help) from error
    except OSError as error:
        raise AgentError(f"`{folder.path_of(name)}` cannot be read: {reason(error)}") from error


def parse_note(text: str, stem: str) -> Note:
    """The note of a file; messages continue behind its name. Raises AgentError.

    Args:
        stem: the name of the file without its ending, which is the id where the front matter has none.
    """
    front, body = read_front_matter(text)
    fields = {name: front[name] for name in ("id", "kind", "from", "run", "date", "supersedes") if front.get(name)}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise AgentError(f"has a `{name}` that is no text", help=f"Write `{name}: …` with a word behind it.")
    for name in ("date", "supersedes"):
        _require_form(name, str(fields.get(name, "")))
    source, run = (
        " ".join(plain_text(str(fields.get(name, ""))).split())[:MAX_ABOUT_CHARS] for name in ("from", "run")
    )
    return Note(
        _require_form("id", str(fields.get("id", stem))),
        require_kind(str(fields.get("kind", "fact"))),
        require_text(body),
        about_of(front.get("about")),
        source,
        run,
        str(fields.get("date", "")),
        str(fields.get("supersedes", "")),
    )


def _require_form(name: str, value: str) -> str:
    """An id or a day. Raises AgentError for another text."""
    if name == "date":
        try:
            is_right = not value or (bool(DAY.fullmatch(value)) and bool(date.fromisoformat(value)))
        except ValueError:
            is_right = False
        if not is_right:
            raise AgentError("has a `date` that is no day", help="Write one such as `date: 2026-11-02`.")
    elif value and (len(value) > MAX_ID_CHARS or not ID.fullmatch(value)):
        help = f"It has small letters, digits and hyphens, at most {MAX_ID_CHARS}, such as `use-tabs`."
        raise AgentError(f"has no id in `{name}`", help=help)
    return value


def require_kind(kind: str) -> str:
    """A kind of notes. Raises AgentError for an unknown one; the message continues behind the name of a note."""
    if kind not in KINDS:
        shown = visible(kind)[:MAX_ABOUT_CHARS]
        raise AgentError(f"has the unknown kind `{shown}`", help=suggestion(kind, KINDS, "kind"))
    return kind


def require_text(text: str) -> str:
    """The text of a note without hidden characters. Raises AgentError for none and for a long one."""
    plain = plain_text(text).strip()
    if not plain:
        raise AgentError("has no text", help="Say in a sentence or two what is worth knowing.")
    if len(plain) > MAX_CHARS:
        help = f"Say it in at most {MAX_CHARS:,} characters, or write several notes."
        raise AgentError(f"has {len(plain):,} characters", help=help)
    return plain


def about_of(given: Any) -> tuple[str, ...]:
    """The topics of a note, from a text or a list of texts. Raises AgentError."""
    topics: Sequence[Any] = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(topics, list) or not all(isinstance(each, str) for each in topics) or len(topics) > MAX_ABOUT:
        help = f"Write `about: [src/parse.py, releases]` with at most {MAX_ABOUT} words or paths."
        raise AgentError("has no list of topics in `about`", help=help)
    return tuple(dict.fromkeys(filter(None, map(_line_of, topics))))


def _line_of(text: str) -> str:
    return " ".join(plain_text(text).split())[:MAX_ABOUT_CHARS]


def slug_of(text: str, *, max_words: int = 5, max_chars: int = 40) -> str:
    """The first words of a text as the beginning of an id."""
    words = re.findall(r"[a-z0-9]+", text.lower())[:max_words]
    while len("-".join(words)) > max_chars:
        words.pop()
    return "-".join(words) or "note"


def is_note_file(entry: os.DirEntry[str]) -> bool:
    """Whether a file of a folder is meant as a note; hidden ones, such as those of editors, are none."""
    return entry.name.endswith(ENDING) and not entry.name.startswith(".")
