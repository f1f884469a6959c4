"""Searches with regular expressions that others wrote: JavaScript's syntax and meaning, within a time limit."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from koi_lang.errors import PatternError
from koi_lang.js.regex_translation import Translation
from koi_lang.lazy import lazy_module

if TYPE_CHECKING:
    import regex
else:
    regex = lazy_module("regex")

MAX_PATTERN_CHARS = 1000
# The library writes counts out when it compiles: 10,000 take some 10 ms and 5 MB, a million a second and 400 MB.
MAX_COUNT = 10_000
LIMIT_S = 0.5


@dataclass(slots=True)
class SearchTime:
    """The processor time that searches which belong together may still take, in seconds."""

    left_s: float = LIMIT_S


class BoundedRegex:
    """A regular expression whose searches take a limited time, all together.

    A search that backtracks without end is stopped: who wrote the pattern or the text, such as a model or a server,
    can hold up nothing.
    """

    def __init__(self, pattern: str, flags: str = "", time_left: SearchTime | None = None) -> None:
        """Of the flags `i`, `m` and `s` matter.

        Args:
            pattern: in the syntax of JavaScript.
            flags: those of JavaScript.
            time_left: what is shared with other expressions; without it this one has half a second of its own.

        Raises:
            PatternError: the pattern is malformed or too large.
        """
        self.pattern = pattern
        self._compiled = compile_bounded(pattern, "".join(sorted(set(flags) & set("imsu"))))
        self._time = time_left or SearchTime()

    def is_in(self, text: str) -> bool:
        """Whether a text contains what the pattern describes. Raises PatternError when the time is over."""
        start_s = time.process_time()
        try:
            if self._time.left_s > 0:
                return bool(self._compiled.search(text, timeout=self._time.left_s))
        except TimeoutError:
            self._time.left_s = 0
        finally:
            self._time.left_s -= time.process_time() - start_s
        raise PatternError(
            f"the regular expression `{self.pattern}` takes too long: {LIMIT_S} s were not enough",
            help="Write it without repetitions inside repetitions, such as `(a+)+`.",
        )


@lru_cache(maxsize=128)
def compile_bounded(pattern: str, flags: str, syntax: type[Translation] = Translation) -> regex.Pattern[str]:
    """An expression of bounded size, whose searches take a `timeout`.

    Args:
        flags: of JavaScript.
        syntax: how the pattern is translated.

    Raises:
        PatternError: the pattern is malformed or too large.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(f"the regular expression `{pattern[:40]}…` is longer than {MAX_PATTERN_CHARS} characters")
    options = (regex.IGNORECASE if "i" in flags else 0) | (regex.DOTALL if "s" in flags else 0)
    translation = syntax(pattern, flags, captures=False)
    try:
        translated = translation.run()
        if translation.size > MAX_COUNT:
            raise PatternError(f"the regular expression `{pattern}` repeats too much", help="Lower its counts.")
        return regex.compile(translated, options | regex.VERSION0)
    except (re.error, regex.error, OverflowError) as error:
        raise _unusable(pattern, str(error)) from error
    except RecursionError as error:
        raise _unusable(pattern, "its groups are nested too deep") from error


def _unusable(pattern: str, reason: str) -> PatternError:
    return PatternError(
        f"the regular expression `{pattern}` cannot be used: {reason}",
        help="Correct the pattern; put a backslash before a sign that is meant literally.",
    )
