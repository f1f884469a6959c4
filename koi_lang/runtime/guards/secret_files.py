"""Names of files that hold secrets, in one list; closed to all requests of models."""

from __future__ import annotations

import re
from collections.abc import Sequence

from koi_lang.runtime.guards.code_files import readings_of

# Whole names of files.
NAMES = frozenset(
    ".envrc .npmrc .pypirc .netrc _netrc .pgpass .htpasswd .git-credentials .dockercfg .dockerconfigjson "
    ".s3cfg .boto .my.cnf .vault-token .terraformrc credentials terraform.tfstate".split()
)
# Folders in which everything is closed.
FOLDERS = frozenset(".ssh .aws .gnupg .kube .azure .gcloud .docker .password-store".split())
ENDINGS = tuple(".pem .key .p12 .pfx .jks .keystore .kdbx .ppk .asc .gpg .age .tfstate .tfvars".split())
# `.env` and its kin hold values, those for people to copy hold none.
VARIABLES = re.compile(r"\.env(?:\..+)?|.+\.env")
TEMPLATES = re.compile(r".*\.(?:example|sample|template|dist|defaults?)(?:\..+)?")
SSH_KEYS = re.compile(r"id_(?:rsa|dsa|ecdsa|ed25519)(?:[._-].*)?")
# Data that is called after what it holds; code of that name is code.
DATA = re.compile(r"(?:.*[._-])?(?:credentials?|secrets?|service[._-]?account|passwords?)(?:[._-].*)?")
DATA_ENDINGS = frozenset(["", *"json yaml yml toml ini cfg conf txt xml csv properties env enc plist".split()])
PUBLIC_KEY = ".pub"


def is_secret(parts: Sequence[str]) -> bool:
    """Whether a path leads to a file that holds secrets, by the names in it, as any system reads them."""
    return bool(parts) and any(_holds_secrets(folders, name) for *folders, name in readings_of(parts))


def _holds_secrets(folders: Sequence[str], name: str) -> bool:
    if any(folder in FOLDERS for folder in (*folders, name)):
        return True
    if TEMPLATES.fullmatch(name) or name.endswith(PUBLIC_KEY):
        return False
    if name in NAMES or name.endswith(ENDINGS) or VARIABLES.fullmatch(name) or SSH_KEYS.fullmatch(name):
        return True
    ending = name.rpartition(".")[2] if "." in name else ""
    return bool(DATA.fullmatch(name)) and ending in DATA_ENDINGS
