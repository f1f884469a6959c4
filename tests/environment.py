"""The environment of the suite, without what the shell that starts it says to programs."""

from __future__ import annotations

import re
from collections.abc import MutableMapping

# Variables by which a person, a desktop or a CI service sets up programs: terminals, colours, sizes, editors, proxies,
# keys and addresses of models, and Koi itself. Those of tests begin with `KOI_TEST`; `KOI_SCREENS` is where walks keep
# pictures.
SETTINGS = re.compile(
    r"CI|GITHUB_\w+|(COLOR)?TERM|TERM_\w+|(NO|FORCE)_COLOR|CLICOLOR\w*|COLUMNS|LINES|EDITOR|VISUAL|PAGER|BROWSER|TZ"
    r"|OTEL_\w+"
    r"|GIT_(?!SSL|CONFIG)\w+|XDG_(CONFIG|DATA|STATE)_\w+|PYTHON(WARNINGS|OPTIMIZE|DONTWRITEBYTECODE)|(?i:\w+_proxy)"
    r"|\w+_(API_KEY|BASE_URL)|OLLAMA_HOST|KOI_(?!TEST|SCREENS)\w+"
)


def drop_settings(environment: MutableMapping[str, str]) -> None:
    """Remove all variables that tests are not to see unless they set them."""
    for name in [name for name in environment if SETTINGS.fullmatch(name)]:
        del environment[name]
