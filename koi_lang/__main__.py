"""`python -m koi_lang` is the command `koi`."""

import sys

from koi_lang.cli import main

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder, whose `openai.py` may be anybody's; `koi` does not look there, either
main()
