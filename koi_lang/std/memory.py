"""Notes for `std/memory`: recalled by words or by meaning, written and removed as other files of the project are."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn
from unicodedata import normalize

from koi_lang.errors import AgentError, KoiError
from koi_lang.js.clock import wall_ms
from koi_lang.lazy import lazy_module
from koi_lang.redaction.redactor import redactor
from koi_lang.runtime.budget.limits import current_spending
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.runtime.context import current
from koi_lang.runtime.guidance.note_index import NoteFilter, open_notes, words_of
from koi_lang.runtime.guidance.notes import (
    DAY,
    FOLDER,
    KINDS,
    Note,
    NoteData,
    Owner,
    about_of,
    require_kind,
    require_text,
    slug_of,
)
from koi_lang.runtime.guidance.recall import as_data, near_enough, question_of, rank_notes, search_notes
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.effects import agent, folder, perform_effect

if TYPE_CHECKING:
    from koi_lang.std.code import access, changing
    from koi_lang.std.code.access import Workplace
else:  # for programs that only recall
    access = lazy_module("koi_lang.std.code.access")
    changing = lazy_module("koi_lang.std.code.changing")

MAX_COUNT = 50
# Two texts that share more of their words than this are alike. A small word or the order may turn what they say around.
MAX_LIKENESS = 0.8
MAX_COMPARED = 50
NUMBER = re.compile(r"\d+")
# A sentence that names a secret in one of some languages, and then letters with digits; the redactor knows the names in
# settings and programs.
SAYS_SECRET = re.compile(
    r"\b(?:pass(?:word|wort|phrase|code)|kennwort|contraseña|clave|mot de passe|senha|wachtwoord|пароль|token|secret"
    r"|(?:api|access)[ -]?(?:key|schlüssel))\b[^.!?\n]{0,60}?(?:[:=]|\b(?:is|was|ist|war|lautet|es|est|é)\b):?"
    r"\s*[\"'`]?(?P<value>(?=\S*\d)(?=\S*[^\W\d_])(?!\S*/)[^\s\"'`]{8,})",
    re.IGNORECASE,
)


async def recall(about: Any, options: Mapping[str, Any]) -> list[NoteData]:
    """The notes that fit a text, or the texts of another value, best first. Raises KoiError.

    Args:
        options: `count`, 5 without it; `kinds`; and `since`, a day.
    """
    count, wanted = _read_options(options)
    asking, run = agent(), current.get()
    question = question_of(about)
    spending = current_spending()
    by_meaning = asking is not None and spending is not None and asking.run.meaning.has_model(asking)

    async def look() -> list[NoteData]:
        def search() -> Any:
            return search_notes(run, folder(), question, wanted, with_newest=by_meaning)

        found, _ = await run_in_thread(lambda stop: search())
        return [as_data(each) for each in (found if by_meaning else near_enough(found))]

    given = {"about": question, "kinds": list(wanted.kinds), "since": wanted.since}
    effect = Effect("memory.recall", given, safe=True, reads_files=True)
    notes: list[NoteData] = list(await perform_effect(effect, look))
    if by_meaning and notes and asking is not None and spending is not None:
        notes = await rank_notes(asking, question, notes, spending)
    return notes[:count]


def _read_options(options: Mapping[str, Any]) -> tuple[int, NoteFilter]:
    """How many notes are wanted, and which. Raises AgentError for unknown options."""
    run = current.get()
    count = options.get("count", 5)
    kinds, since = options.get("kinds") or [], options.get("since") or ""
    if access.whole_number(count, "count", least=1) > MAX_COUNT:
        raise AgentError(f"`count` is {count!r}", help=f"Give a whole number from 1 to {MAX_COUNT}.")
    if not isinstance(kinds, Sequence) or isinstance(kinds, str) or not set(kinds) <= set(KINDS):
        raise AgentError(f"`kinds` is {kinds!r}", help=f"Give a list of {', '.join(f'`{kind}`' for kind in KINDS)}.")
    if not isinstance(since, str) or (since and not DAY.fullmatch(since)):
        raise AgentError(f"`since` is {since!r}", help="Give a day such as `2026-11-02`.")
    return int(count), NoteFilter(kinds, since, NoteFilter().owners if run is None else run.guidance.owners)


async def remember(text: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Write a note into the memory of the project, unless there is one that says the same.

    Args:
        options: `kind`, `about`, and `supersedes`, the id of the note that this one replaces.

    Returns:
        The `id` and the `path`; `created` is false for a note that was there, and `similar` is the id and the text of
        one that has nearly the same words.

    Raises:
        AgentError: it is empty, too long, or holds a secret.
        PermissionDeniedError: a rule or the person does not allow it.
    """
    place = access.Workplace.current()
    run = "" if place.run is None else place.run.id
    day = datetime.fromtimestamp(wall_ms() / 1000, UTC).astimezone().date().isoformat()
    note = new_note(text, options, source=place.agent, run=run, date=day)
    if place.run is not None and place.run.redact(note.as_file()) != note.as_file():
        refuse_secret()

    async def work() -> dict[str, Any]:
        other = await run_in_thread(lambda stop: find_alike(place, note))
        if other is not None and says_the_same(note.text, other.text):
            return {"id": other.id, "path": f"{FOLDER}/{other.name}", "created": False}
        path = f"{FOLDER}/{note.id}.md"
        await changing.write_file(place, path, note.as_file())
        similar = {} if other is None else {"similar": {"id": other.id, "text": other.text}}
        return {"id": note.id, "path": path, "created": True, **similar}

    given = {"text": note.text, "kind": note.kind, "about": list(note.about), "supersedes": note.supersedes}
    return dict(await perform_effect(Effect("memory.remember", given), work))


async def forget(id: str) -> bool:
    """Remove a note of the project; says whether it was there. Raises KoiError."""
    if not isinstance(id, str) or not id:
        raise AgentError(f"{id!r} is no id of a note", help="`recall` returns notes with their ids.")
    place = access.Workplace.current()

    async def work() -> bool:
        note = await run_in_thread(lambda stop: find_note(place, id))
        if note is None:
            return False
        if note.owner != "project":
            help = "They remove it themselves with `koi memory forget`."
            raise AgentError(f"the note `{id}` is the person's own", help=help)
        return await changing.remove_file(place, f"{FOLDER}/{note.name}")

    return bool(await perform_effect(Effect("memory.forget", {"id": id}), work))


def find_note(place: Workplace, id: str) -> Note | None:
    """The note of an id. Raises AgentError where notes cannot be searched."""
    with closing(open_notes(place.root)) as index:
        return index.find(id)


def new_note(
    text: Any, options: Mapping[str, Any], *, source: str, date: str, run: str = "", owner: Owner = "project"
) -> Note:
    """A note with an id of its own. Raises AgentError where it is none, or holds a secret."""
    if not isinstance(text, str):
        raise AgentError(f"a note is a text, not {text!r:.100}", help="Say in a sentence or two what is worth knowing.")
    try:
        plain = require_text(text)
        kind = require_kind(str(options.get("kind") or "fact"))
        id = f"{slug_of(plain)}-{secrets.token_hex(2)}"
        supersedes = str(options.get("supersedes") or "")
        note = Note(id, kind, plain, about_of(options.get("about")), source, run, date, supersedes, owner)
    except KoiError as error:
        raise AgentError(f"the note {error.message}", help=error.help) from error
    says_secret = SAYS_SECRET.finditer(f"{note.text}\n{' '.join(note.about)}")
    if redactor()(note.as_file()) != note.as_file() or any(not each["value"].isupper() for each in says_secret):
        refuse_secret()
    return note


def note_text(text: str) -> str:
    """A text as a note would hold it; empty where it can be none."""
    try:
        return new_note(text, {}, source="", date="").text
    except AgentError:
        return ""


def refuse_secret() -> NoReturn:
    """Raise AgentError for a note that holds a secret."""
    help = "Say where the secret is kept instead, such as the name of its variable."
    raise AgentError("the note holds a secret, and notes are kept in plain files", help=help)


def find_alike(place: Workplace, note: Note) -> Note | None:
    """A note that says the same as a new one, else one that is alike; none that it replaces.

    Raises AgentError for replacing none.
    """
    with closing(open_notes(place.root)) as index:
        older = index.find(note.supersedes) if note.supersedes else None
        if note.supersedes and (older is None or older.owner != note.owner):
            where = "" if older is None else " in the same folder"
            help = "Leave `supersedes` out, or name a note that there is."
            raise AgentError(f"there is no note `{note.supersedes}`{where} to supersede", help=help)
        found = index.search(note.text, MAX_COMPARED, NoteFilter(owners=(note.owner,)))
    others = [each.note for each in found if each.note.id != note.supersedes]
    same = (other for other in others if says_the_same(note.text, other.text))
    return next(same, next((other for other in others if is_alike(note.text, other.text)), None))


def says_the_same(one: str, other: str) -> bool:
    """Whether two texts are equal but for blanks and the full stop at the end."""
    plain, others = (" ".join(normalize("NFC", each).split()).removesuffix(".") for each in (one, other))
    return plain == others


def is_alike(one: str, other: str) -> bool:
    """Whether two texts have the same numbers and most of their words in common."""
    words, others = set(words_of(one)), set(words_of(other))
    has_same_numbers = NUMBER.findall(one) == NUMBER.findall(other)
    return one == other or (has_same_numbers and len(words & others) > MAX_LIKENESS * len(words | others))
