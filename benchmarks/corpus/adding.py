"""Additions to a corpus: recorded streams with their present readings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.corpus.replaying import read_again
from koi_lang.errors import CorpusError, reason
from koi_lang.llm.recorded_stream import CorpusStream, read_entry, write_entry
from koi_lang.llm.stream_recording import Redact, without_secrets


async def add_stream(source: Path, target: Path, redact: Redact) -> None:
    """Write a stream into a new folder, with its present reading for the person to check.

    Args:
        redact: takes secrets out of a text.

    Raises:
        CorpusError: it cannot be read or written, the folder is there, or there is a secret in what is read of it.
    """
    stream = without_secrets(read_entry(source), redact)
    expected = await read_again(stream)
    expected_text = json.dumps(expected, ensure_ascii=False)
    said = [expected.get(name, "") for name in ("text", "thoughts", "fault")]
    if any(redact(text) != text for text in (expected_text, *said)):
        raise CorpusError("there is a secret in what is read of it")
    _write_new(target, stream, expected)


def _write_new(target: Path, stream: CorpusStream, expected: Mapping[str, Any]) -> None:
    try:
        target.mkdir(parents=True)
        write_entry(target, stream, expected)
    except FileExistsError as error:
        raise CorpusError("it is there already") from error
    except OSError as error:
        raise CorpusError(f"it cannot be written: {reason(error)}") from error
