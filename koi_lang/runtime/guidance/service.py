"""Guidance of a run: the files of the project and its person that its agents are given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError
from koi_lang.runtime.concurrency.stoppable_threads import run_in_thread
from koi_lang.runtime.guards.repositories import git_branch
from koi_lang.runtime.guidance.instructions import read_instructions, read_own_instructions
from koi_lang.runtime.guidance.note_index import NoteFilter
from koi_lang.runtime.guidance.notes import Owner
from koi_lang.runtime.guidance.recall import (
    as_data,
    near_enough,
    notes_to_tell,
    question_of,
    rank_notes,
    search_notes,
)
from koi_lang.runtime.guidance.skill_files import read_part
from koi_lang.runtime.guidance.skill_folders import SkillEntry, find_skills, look_at_skill

if TYPE_CHECKING:
    from koi_lang.runtime.budget.limits import BudgetAccount
    from koi_lang.runtime.ports import AgentPort

# Bad notes that a run names, a line each.
MAX_PROBLEMS = 3
# The permissions of agents that are told where the files are on which they work.
ON_FILES = ("read", "write", "execute")
SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


class Guidance:
    """The instructions, skills and notes for agents, looked at anew whenever one begins with a playbook.

    Attributes:
        owners: those whose notes its agents may be told.

    Args:
        folder: the project.
        note: is told what is left out, a line each and once.
        is_served: whether others than the person at this machine may call the program; they are told nothing of the
            person's own files.
        tells_notes: whether agents that say `uses memory` are told notes.
    """

    def __init__(
        self,
        folder: Path,
        note: Callable[[str], None] = lambda line: None,
        *,
        is_served: bool = False,
        tells_notes: bool = True,
    ) -> None:
        self._folder, self._note = folder, note
        self._tells_notes = tells_notes
        self.owners: Sequence[Owner] = ("project",) if is_served else ("project", "person")
        self._noted: set[str] = set()

    async def look(self, agent: AgentPort, args: Any = None) -> dict[str, Any]:
        """The guidance for an agent as data: instructions, `place`, `skills`, those that are `unavailable`, and notes.

        Notes are in `memory`, or in `candidates` where a model for embeddings is to choose.

        Raises:
            AgentError: a skill that the program names cannot be read.
        """
        found: dict[str, Any] = {}
        if agent.about.instructions:
            files, problems = read_instructions(self._folder, agent.about.file)
            found["instructions"] = [asdict(file) for file in files]
            own, more = read_own_instructions() if "person" in self.owners else ([], [])
            if own:
                found["own_instructions"] = [asdict(file) for file in own]
            for problem in (*more, *problems):
                self._tell(problem)
        if "person" in self.owners and any(map(agent.role.allows, ON_FILES)):
            branch = await run_in_thread(lambda stop: git_branch(self._folder))
            found["place"] = {"folder": str(self._folder), "system": SYSTEMS.get(sys.platform, sys.platform)}
            found["place"] |= {"branch": branch} if branch else {}
        entries = self._entries(agent)
        if usable := [entry for entry in entries.values() if not entry.problem]:
            found["skills"] = [{"name": entry.place.name, "description": entry.description} for entry in usable]
        if others := [entry for entry in entries.values() if entry.problem]:
            found["unavailable"] = [{"name": entry.place.name, "reason": entry.problem} for entry in others]
        if agent.about.reads_notes and self._tells_notes:
            found |= await self._notes(agent, question_of(args))
        return found

    async def choose(
        self, agent: AgentPort, args: Any, found: Mapping[str, Any], spending: BudgetAccount
    ) -> Mapping[str, Any]:
        """The guidance with the notes that the model is told. Raises LimitReachedError."""
        if "candidates" not in found:
            return found
        ranked = await rank_notes(agent, question_of(args), found["candidates"], spending)
        return {**found, "memory": notes_to_tell(ranked)}

    async def _notes(self, agent: AgentPort, question: str) -> dict[str, Any]:
        """The notes that fit a payload; those of the folder in which the run may write them."""
        run = agent.run
        by_meaning = bool(question.strip()) and run.meaning.has_model(agent)
        wanted = NoteFilter(owners=self.owners)
        try:
            notes, problems = await run_in_thread(
                lambda stop: search_notes(run, run.folder, question, wanted, with_newest=by_meaning)
            )
        except AgentError as error:
            notes, problems = [], [error.message]
        for problem in problems[:MAX_PROBLEMS]:
            self._tell(problem)
        if len(problems) > MAX_PROBLEMS:
            self._tell(f"{len(problems) - MAX_PROBLEMS} more notes are left out; `koi memory list` says why")
        if by_meaning and notes:
            return {"candidates": [as_data(each) for each in notes]}
        return {"memory": notes_to_tell([as_data(each) for each in near_enough(notes)])}

    async def read_skill(self, agent: AgentPort, name: str, file: str, offset: int) -> dict[str, Any]:
        """The text of a skill that an agent uses, or of a file beside it.

        Raises:
            AgentError: it uses none of that name, or the text cannot be read.
        """
        entries = self._entries(agent)
        if name not in entries:
            help = suggestion(name, list(entries), "skill") if entries else "It has no skills to read."
            raise AgentError(f"`{agent.name}` has no skill `{name}` to read", help=help)
        if entries[name].problem:
            raise AgentError(f"the skill `{name}` cannot be used here: {entries[name].problem}")
        return read_part(entries[name].place, file, offset)

    def _entries(self, agent: AgentPort) -> Mapping[str, SkillEntry]:
        """The skills of an agent by name: those that its program names, then those that count in the project."""
        found: dict[str, SkillEntry] = {}
        for place in agent.about.guides():
            if place.name in found and found[place.name].place != place:
                help = "Rename the folder of one of them."
                raise AgentError(f"`{agent.name}` uses two skills whose folders are called `{place.name}`", help=help)
            entry = look_at_skill(place)
            if entry.problem and not entry.description:
                raise AgentError(f"the skill {entry.problem}")
            found[place.name] = entry
        if agent.about.offers_skills:
            for entry in find_skills(self._folder):
                if entry.counts:
                    found.setdefault(entry.place.name, entry)
        return found

    def _tell(self, problem: str) -> None:
        if problem not in self._noted:
            self._noted.add(problem)
            self._note(f"note: {problem}")
