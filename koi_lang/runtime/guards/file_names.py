"""What the name of a file says of it: closed to agents, full of secrets, or code that runs without an approval.

Code is what Python, Koi, a shell or git loads by itself. What a tool runs when somebody calls it, such as a Makefile,
is none.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from importlib.machinery import all_suffixes
from pathlib import Path

from koi_lang.system.open_folders import STATE_FOLDER

# Folders that hold journals, and the history with settings from which git runs commands.
CLOSED_FOLDERS = {STATE_FOLDER: "it holds the journals of runs", ".git": "it is the repository's own"}
# Whole names of files.
SECRET_NAMES = frozenset(
    ".envrc .npmrc .pypirc .netrc _netrc .pgpass .htpasswd .git-credentials .dockercfg .dockerconfigjson "
    ".s3cfg .boto .my.cnf .vault-token .terraformrc credentials terraform.tfstate".split()
)
# Folders in which everything is closed.
SECRET_FOLDERS = frozenset(".ssh .aws .gnupg .kube .azure .gcloud .docker .password-store".split())
SECRET_ENDINGS = tuple(".pem .key .p12 .pfx .jks .keystore .kdbx .ppk .asc .gpg .age .tfstate .tfvars".split())
# `.env` and its kin hold values, those for people to copy hold none.
VARIABLES = re.compile(r"\.env(?:\..+)?|.+\.env")
TEMPLATES = re.compile(r".*\.(?:example|sample|template|dist|defaults?)(?:\..+)?")
SSH_KEYS = re.compile(r"id_(?:rsa|dsa|ecdsa|ed25519)(?:[._-].*)?")
# Data that is called after what it holds; code of that name is code.
DATA = re.compile(r"(?:.*[._-])?(?:credentials?|secrets?|service[._-]?account|passwords?)(?:[._-].*)?")
DATA_ENDINGS = frozenset(["", *"json yaml yml toml ini cfg conf txt xml csv properties env enc plist".split()])
PUBLIC_KEY = ".pub"
# Endings of names, with who runs such a file.
CODE_ENDINGS = {
    **dict.fromkeys((*all_suffixes(), ".pyw", ".pyo", ".pyz", ".so", ".pyd", ".dylib", ".dll"), "Python imports"),
    **dict.fromkeys((".pth", "._pth", ".egg-link"), "Python reads when it starts"),
    ".koi": "Koi runs",
    **dict.fromkeys((".bat", ".cmd", ".ps1"), "Windows runs"),
}
# Whole names.
CODE_NAMES = {
    "pyvenv.cfg": "says which Python runs",
    "head": "makes a folder a repository, from whose settings git runs commands",
}
# Endings of folders: what packages of Python bring is loaded as their descriptions say.
CODE_FOLDERS = {
    **dict.fromkeys((".dist-info", ".egg-info", ".egg"), "tells Python and Koi what to load"),
    "__pycache__": "Python imports",
}


def is_closed(parts: Sequence[str]) -> str:
    """Why something below the project is closed to agents, as a clause; empty where it is open."""
    readings = readings_of(parts)
    if why := next((CLOSED_FOLDERS[part] for part in readings[0] if part in CLOSED_FOLDERS), ""):
        return why
    return "files of that name hold secrets" if any(map(_holds_secrets, readings)) else ""


def is_secret(parts: Sequence[str]) -> bool:
    """Whether a path leads to a file that holds secrets, by the names in it, as any system reads them."""
    return any(map(_holds_secrets, readings_of(parts)))


def _holds_secrets(parts: Sequence[str]) -> bool:
    if not SECRET_FOLDERS.isdisjoint(parts):
        return True
    name = parts[-1] if parts else ""
    if TEMPLATES.fullmatch(name) or name.endswith(PUBLIC_KEY):
        return False
    if name in SECRET_NAMES or name.endswith(SECRET_ENDINGS) or VARIABLES.fullmatch(name) or SSH_KEYS.fullmatch(name):
        return True
    ending = name.rpartition(".")[2] if "." in name else ""
    return bool(DATA.fullmatch(name)) and ending in DATA_ENDINGS


def runner_of(parts: Sequence[str], file: Path) -> str | None:
    """The program that runs a file without asking, as a clause; None for a file that is no code.

    Args:
        parts: of its path below the project, as it was given or with links resolved.
        file: the file, which need not exist.
    """
    reasons = (why for *folders, name in readings_of(parts) for why in _reasons(folders, name))
    return next(reasons, "a shell runs" if _is_script(file) else None)


def _reasons(folders: Sequence[str], name: str) -> Iterator[str]:
    yield from (why for ending, why in CODE_ENDINGS.items() if name.endswith(ending))
    yield from (why for whole, why in CODE_NAMES.items() if name == whole)
    yield from (why for folder in folders for ending, why in CODE_FOLDERS.items() if folder.endswith(ending))


def as_systems_see(name: str) -> str:
    """A name without the differences that some systems ignore: letter case, Unicode forms, streams, final dots."""
    return fold_name(name).partition(":")[0].rstrip(". ")


def fold_name(name: str) -> str:
    """The same, where a colon is a sign as others are."""
    folded = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
    return name.casefold() if "/" in folded else folded  # some signs are forms of several with a slash


def readings_of(parts: Sequence[str]) -> list[list[str]]:
    """The parts of a path as systems with streams see them, and as the others do where that is something else."""
    whole = [fold_name(part) for part in parts]
    if not any(":" in part for part in whole):
        return [whole]
    return [[part.partition(":")[0].rstrip(". ") for part in whole], whole]


def _is_script(file: Path) -> bool:
    """Whether a file is executable and has an interpreter line."""
    try:
        if not os.access(file, os.X_OK) or not stat.S_ISREG(file.stat().st_mode):
            return False
        with open(file, "rb") as opened:
            return opened.read(2) == b"#!"
    except OSError:
        return False
