"""A model whose answers are written down beforehand: tests, demonstrations, replays."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from koi_lang.errors import ProviderError, SettingsError, reason
from koi_lang.llm.messages import Delta, Request, Usage, stream_text

# How feedback on what was refused, failed or could not be read begins.
REFUSALS = ("❌", "🚫")
MAX_SHOWN = 400
REPORT = "last_report"
Answers: TypeAlias = Sequence[Any] | Mapping[str, Sequence[Any]]


class ScriptedModel:
    """Gives the answers of a list one by one and keeps the requests it was asked; it looks at no image.

    Args:
        answers: texts or JSON values in order, or such lists by a text that the request must contain in its
            system message or playbook; the first key that is found decides. `{"last_report": "…"}` is what the model
            says where it is asked what it has done; other requests pass over it.
        size: characters of a delta.
        usage: what every answer claims to have consumed.
    """

    provider = "scripted"
    model = "scripted"

    def __init__(self, answers: Answers, *, size: int = 12, usage: Usage | None = None) -> None:
        lists = answers.items() if isinstance(answers, Mapping) else [("", answers)]
        known = {key: list(texts) for key, texts in lists}
        self._answers = {key: [each for each in texts if not _is_report(each)] for key, texts in known.items()}
        self._reports = {key: [each for each in texts if _is_report(each)] for key, texts in known.items()}
        self._given = dict.fromkeys(self._answers, 0)
        self._size = size
        self._usage = usage
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the next answer. Raises ProviderError when there is none."""
        self.requests.append(request)
        text = self._next_report(request) if request.is_report else self._next(request)
        return stream_text(text, size=self._size, usage=self._usage)

    @property
    def has_report(self) -> bool:
        """Whether there is something left that it has to say of what it has done."""
        return any(self._reports.values())

    def pass_over(self, request: Request) -> None:
        """Count the next answer as given: it is known from an earlier part of the run."""
        if request.is_report:
            self._next_report(request)
            return
        self._given[self._key_for(request)] += 1

    async def aclose(self) -> None:
        """Nothing is held."""

    def _next(self, request: Request) -> str:
        key = self._key_for(request)
        given, answers = self._given[key], self._answers[key]
        if given >= len(answers):
            place = f" for `{key}`" if key else ""
            raise ProviderError(
                f"answer {given + 1}{place} was asked for and the script has {len(answers)}{_why(request)}",
                help="Add answers to the script, or end the playbook earlier.",
            )
        self._given[key] = given + 1
        answer = answers[given]
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)

    def _next_report(self, request: Request) -> str:
        text = "\n".join((request.system, *(message.text for message in request.messages)))
        for key, reports in self._reports.items():
            if key in text and reports:
                return str(reports.pop(0)[REPORT])
        raise ProviderError("the script holds no report")

    def _key_for(self, request: Request) -> str:
        text = f"{request.system}\n{request.task.playbook if request.task else ''}"
        for key in self._answers:
            if key in text:
                return key
        known = ", ".join(f"`{key}`" for key in self._answers)
        raise ProviderError(
            "the script has no answers for this request", help=f"Its playbook contains none of these: {known}."
        )


def _is_report(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.keys() == {REPORT}


def _why(request: Request) -> str:
    """The reason why another answer is asked for: the last refusal of the one before."""
    last = request.messages[-1].text if request.messages else ""
    refused = " ".join(line for line in last.split("\n") if line.startswith(REFUSALS))
    shown = refused if len(refused) <= MAX_SHOWN else f"{refused[:MAX_SHOWN]}…"
    return f", after the model was told: {shown.removesuffix('.')}" if refused else ""


def scripted_model(answers: Answers) -> ScriptedModel:
    """A model that gives these answers in order."""
    return ScriptedModel(answers)


def read_answers(path: Path) -> Answers:
    """The answers in a file: `.jsonl` with one a line, else a JSON list or an object of lists.

    Raises:
        SettingsError: the file cannot be read or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        lines = [line for line in text.splitlines() if line.strip()]
        answers = [json.loads(line) for line in lines] if path.suffix == ".jsonl" else json.loads(text)
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise SettingsError(f"cannot read the answers in `{path}`: {why}") from error
    return require_answers(answers, str(path))


def require_answers(value: Any, name: str) -> Answers:
    """A value as answers; `name` is what messages call it. Raises SettingsError when it is something else."""
    if _is_script(value):
        return value
    raise SettingsError(
        f"`{name}` is not a list of answers",
        help="Write a JSON list, or an object with lists by a text of the playbook they are for.",
    )


def _is_script(answers: Any) -> TypeGuard[Answers]:
    if isinstance(answers, dict):
        return all(isinstance(texts, list) for texts in answers.values())
    return isinstance(answers, list)
