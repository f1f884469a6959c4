"""The long outputs of a run: kept whole in files within bounds, told by reference, and the same again when it goes on.

A journal tells of a long text where it is, and how it begins and ends. So it stays small whatever a command writes, and
a run that goes on has the text all the same. What was told as a whole by earlier versions is told as a whole again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AgentError, JournalError, error_of, reason
from koi_lang.events import ActionEnded, CommandStarted
from koi_lang.js.tagged_json import from_fields
from koi_lang.runtime.guards.write_quota import count_bytes
from koi_lang.runtime.outputs import long_texts
from koi_lang.runtime.outputs.long_texts import KeptOutput, LongText
from koi_lang.runtime.outputs.output_files import OutputFiles, outputs_folder
from koi_lang.runtime.replay.policies import RESUME

if TYPE_CHECKING:
    from koi_lang.runtime.ports import OutputsPort, RunPort

# In bytes: of one output, and of all of a run. What is kept is in memory, too, while the program has it.
MAX_OUTPUT_BYTES = 10_000_000
MAX_RUN_BYTES = 100_000_000


class RunOutputs:
    """The outputs of a run; made when there is a long one, or when one is asked for."""

    def __init__(self, run: RunPort) -> None:
        self._run = run
        self._files = OutputFiles(run.folder, run.id)
        self._known: dict[str, KeptOutput] = {}
        self._told: dict[str, dict[int, KeptOutput]] = {}
        self._writing = asyncio.Lock()
        self._is_told = False
        sizes = self._files.sizes()
        self._last = max((*sizes, *_recorded_numbers(run)), default=0)
        self._room = MAX_RUN_BYTES - sum(sizes.values())
        if not sizes and not run.detailed:
            run.keep_until_end(lambda: asyncio.to_thread(self._files.delete))

    # ------------------------------------------------------------ room

    def take_room(self, size: int) -> int:
        """Reserve room for some bytes, or for as many of them as there is room for; gives how many that are."""
        taken = max(0, min(size, self._room))
        self._room -= taken
        return taken

    def give_back(self, size: int) -> None:
        """Release a reservation that is not needed, or is about to be used."""
        self._room += size

    # ------------------------------------------------------------ keeping

    def take_number(self) -> int:
        """The number of an output that is kept elsewhere."""
        self._last += 1
        return self._last

    async def keep(self, value: Any) -> None:
        """Store the long texts in a value; texts that cannot be stored stay in the value."""
        for text in long_texts.long_texts_in(value):
            await self.keep_text(text)

    async def keep_text(self, text: str) -> KeptOutput | None:
        """Keep a text, unless it is known; None where there is no room for it, or it cannot be written."""
        key = _key(text)
        async with self._writing:
            known = self._known.get(key)
            if known is not None or not self._run.recorded.policy.has_outside or len(text) > MAX_OUTPUT_BYTES:
                return known
            about, data = await asyncio.to_thread(_without_secrets, self._run, text)
            if len(data) > self._room or error_of(count_bytes, len(data), "a long output") is not None:
                return None
            kept = await self._write(about, data)
            if kept is not None:
                self._known[key] = kept
            return kept

    async def _write(self, about: KeptOutput, data: bytes) -> KeptOutput | None:
        """Make the next file; None where that cannot be."""
        self._room -= len(data)
        while True:
            self._last += 1
            try:
                await asyncio.to_thread(self._files.write, self._last, data)
            except FileExistsError:
                continue
            except OSError as error:
                self._room += len(data)
                if not self._is_told:
                    self._is_told = True
                    self._run.host.log(f"warning: long outputs are cut, since they cannot be kept: {reason(error)}")
                return None
            return replace(about, number=self._last)

    def know_as_before(self, value: Any) -> bool:
        """Register the long texts in the result of the current action by their earlier references.

        Returns:
            Whether anything was told of it before; then nothing else of it is kept.
        """
        before = self._run.recorded.recall(ActionEnded.journal_kind).entry
        if before is None:
            return False
        for text, kept in long_texts.references_in(value, from_fields(before.data)):
            self._know(text, kept)
        return True

    def _know(self, text: str, kept: KeptOutput) -> None:
        """Register a text that was stored before; it counts against the quota of an answer as it did then."""
        key = _key(text)
        if key not in self._known:
            error_of(count_bytes, kept.size, "a long output")
        self._known[key] = kept

    # ------------------------------------------------------------ telling

    def refer(self, value: Any) -> Any:
        """A value with references in place of the long texts that are kept."""
        return long_texts.replace_texts(value, self._reference) if self._known else value

    def mark(self, value: Any) -> Any:
        """A value with numbers in place of its long texts, for comparison with its journaled form."""
        return long_texts.replace_texts(value, self._mark) if self._known else value

    def _mark(self, text: Any) -> Any:
        known = self._known.get(_key(text)) if isinstance(text, str) else None
        return text if known is None else {"output": known.number, "digest": known.digest}

    def _reference(self, text: Any) -> Any:
        known = self._known.get(_key(text)) if isinstance(text, str) else None
        return text if known is None else LongText(known, text)

    def tell(self, agent: str, value: Any) -> None:
        """Have an agent know of the long texts in a value, so that it may read them."""
        for reference in long_texts.references(self.refer(value)):
            self._told.setdefault(agent, {})[reference.kept.number] = reference.kept

    def told_to(self, agent: str) -> Mapping[int, KeptOutput]:
        """The outputs that an agent knows of, by their numbers."""
        return self._told.get(agent, {})

    # ------------------------------------------------------------ reading

    async def text_of(self, kept: KeptOutput) -> str | None:
        """A text that was kept, without its secrets; None where it is not there as it was."""
        try:
            data = await asyncio.to_thread(OutputFiles(self._run.folder, kept.run).read, kept.number)
        except OSError:
            return None
        return long_texts.text_of(data) if long_texts.digest_of(data) == kept.digest else None

    async def restore(self, value: Any) -> Any:
        """A value from a journal with its long texts restored; of a missing one the stored ends.

        A run that is resumed ends there: it would not be the same any more.
        """
        found: dict[str, str] = {}
        for reference in long_texts.references(value):
            found[reference.kept.digest] = await self._restore(reference.kept)
        return long_texts.replace_texts(
            value, lambda each: found[each.kept.digest] if isinstance(each, LongText) else each
        )

    async def _restore(self, kept: KeptOutput) -> str:
        text = await self.text_of(kept)
        if text is not None:
            self._know(text, await self._adopt(kept, text))
            return text
        message = f"the output `{outputs_folder(self._run.folder, kept.run) / str(kept.number)}` is not there as it was"
        if self._run.recorded.policy is RESUME:
            help = "Put it back, or go on without it: `koi resume --branch`."
            self._run.halt(JournalError(message, help=help))
        self._run.host.log(f"warning: {message}")
        return f"{kept.begin}\n… (the rest of {kept.size:,} bytes is gone) …\n{kept.end}"

    async def _adopt(self, kept: KeptOutput, text: str) -> KeptOutput:
        """An output of the run that this one goes on from as one of its own, which lasts as long as it does."""
        if kept.run == self._run.id or not self._run.recorded.policy.has_outside:
            return kept
        with suppress(OSError):
            await asyncio.to_thread(self._files.write, kept.number, long_texts.data_of(text))
            return replace(kept, run=self._run.id)
        return kept


def require_told(outputs: OutputsPort, agent: str, number: int) -> KeptOutput:
    """An output that an agent knows of. Raises AgentError."""
    known = outputs.told_to(agent)
    if number not in known:
        listed = ", ".join(str(each) for each in known)
        help = f"There are the outputs {listed}." if known else "No result of yours was so long that it was kept."
        raise AgentError(f"there is no output {number} among the results of `{agent}`", help=help)
    return known[number]


def _without_secrets(run: RunPort, text: str) -> tuple[KeptOutput, bytes]:
    """A text as it is kept, with all but its number."""
    shown = run.redact(text)
    data = long_texts.data_of(shown)
    ends = shown[: long_texts.END], shown[-long_texts.END :]
    size = len(data)
    rows = long_texts.count_rows(shown)
    digest = long_texts.digest_of(data)
    return KeptOutput(0, run.id, size, rows, digest, *ends, lacks_secret=shown != text), data


def _key(text: str) -> str:
    return long_texts.digest_of(long_texts.data_of(text))


def _recorded_numbers(run: RunPort) -> Iterator[int]:
    """The numbers of all outputs that were told of before."""
    for entry in run.recorded.entries_of(ActionEnded.journal_kind):
        if entry.data.get("tagged"):
            yield from (reference.kept.number for reference in long_texts.references(from_fields(entry.data)))
    yield from (int(entry.data["command"]) for entry in run.recorded.entries_of(CommandStarted.type))
