"""A model without a model: the explicit steps of a playbook turned into actions, one sentence after the other."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from koi_lang.errors import PlaybookError
from koi_lang.llm.messages import ActionResult, Delta, Request, Task, stream_text
from koi_lang.llm.rehearsal.return_forms import end_of
from koi_lang.llm.rehearsal.state import NotYetKnownError, ProposedAction, RehearsalState, UnclearSentenceError
from koi_lang.llm.rehearsal.steps import PlaybookStep, steps_of
from koi_lang.llm.usage import has_images

NO_MODEL = "No model is configured, so this request has no answer."
UNANSWERED = "Run the program in a terminal, or pipe one line for each question into it."


class Rehearsal:
    """Follows the understood parts of a playbook and reports the others.

    Args:
        on_note: told once about each sentence that would need a model.
    """

    provider = "rehearsal"
    model = "rehearsal"

    def __init__(self, on_note: Callable[[str], None] | None = None) -> None:
        self._on_note = on_note
        self._notes: dict[str, None] = {}

    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the next action or batch as JSON. Raises PlaybookError when an action has failed."""
        return stream_text(self._answer(request))

    async def aclose(self) -> None:
        """Nothing is held."""

    def notes(self) -> tuple[str, ...]:
        """The sentences that need a model, in order."""
        return tuple(self._notes)

    def _answer(self, request: Request) -> str:
        if has_images(request.messages):
            self._note("an image, since a rehearsal reads text only")
        if request.task is None:
            self._note("a request outside of a playbook")
            return json.dumps({"text": NO_MODEL}) if request.json else NO_MODEL
        actions = self._next(request.task)
        answer = actions[0] if len(actions) == 1 else {"batch": actions}
        return json.dumps(answer, ensure_ascii=False, default=str)

    def _next(self, task: Task) -> list[Any]:
        """The actions that can be proposed now: at least one."""
        scene = RehearsalState(task)
        done = deque(result for result in task.results if not result.intent.startswith("_"))
        actions: list[Any] = []
        try:
            for deed in self._deeds(steps_of(scene.values.text, scene), scene):
                if not _was_done(deed, done, scene):
                    scene.expect(deed)
                    actions.append(deed.action)
                if deed.intent == "return":
                    return actions
            return [*actions, scene.with_values(end_of(scene)).action]
        except NotYetKnownError:
            return actions

    def _deeds(self, steps: list[PlaybookStep], scene: RehearsalState) -> Iterator[ProposedAction]:
        for step in steps:
            try:
                deed = step.action_for(scene)
            except UnclearSentenceError:
                self._note(scene.values.excerpt(step.source))
                scene.lose_track()
                continue
            if deed.action is None:
                scene.name(deed.label, deed.value)
            elif self._may(deed, step, scene):
                yield deed

    def _may(self, deed: ProposedAction, step: PlaybookStep, scene: RehearsalState) -> bool:
        if deed.intent == "return":
            for name in deed.value or ():
                self._note(scene.values.excerpt(f"`{name}` in: {step.source}"))
            return True
        if step.action is not None or deed.action is None or deed.action["actionType"] == "delegate":
            return True
        if deed.intent in scene.task.actions:
            return True
        self._note(scene.values.excerpt(f"{step.source} (the agent may not use `{deed.intent}`)"))
        return False

    def _note(self, text: str) -> None:
        if text in self._notes:
            return
        self._notes[text] = None
        if self._on_note:
            self._on_note(text)


def _belongs(result: ActionResult, deed: ProposedAction) -> bool:
    return deed.intent in (result.intent, result.action.get("intent"))


def _was_done(deed: ProposedAction, done: deque[ActionResult], scene: RehearsalState) -> bool:
    """Whether the next result belongs to this deed; then the scene learns it."""
    if not any(_belongs(result, deed) for result in done):
        return False
    result = done.popleft()
    while not _belongs(result, deed):
        result = done.popleft()
    if not result.ok:
        raise PlaybookError(
            f"`{deed.intent}` failed, and a rehearsal cannot find another way: {result.value}",
            help=UNANSWERED if deed.intent == "prompt_user" else "Configure a model, or change the playbook.",
        )
    scene.learn(deed, result)
    return True
