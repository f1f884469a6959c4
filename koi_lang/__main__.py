"""`python -m koi_lang` is the command `koi`."""

from koi_lang.cli import main

main()
