"""What a provider says about a rejected request to whether it rejects the form that the answer was to have."""

from __future__ import annotations

import re

from koi_lang.llm.stream_fields import field

# Local servers answer 500 where they cannot make a grammar of a form.
STATUSES = frozenset({400, 422, 500, 501})
SAYINGS = re.compile(
    r"response.?format|schema|json.?(object|mode|validate)|output.?(config|format)|structured.?output|grammar|guided"
    r"|failed to (generate|validate) json",
    re.IGNORECASE,
)
LONGEST_LOOK = 4000


def refuses_form(error: Exception) -> bool:
    """Whether what an SDK raised names the form of the answer, in whatever part of it."""
    body = getattr(error, "body", None)
    status = getattr(error, "status_code", None)
    if status is None or status < 400:  # it came inside of a stream
        status = field(body, "code")
    is_rejected = status in STATUSES or not isinstance(status, int)
    return is_rejected and SAYINGS.search(str(body)[:LONGEST_LOOK]) is not None
