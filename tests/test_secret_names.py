"""Which variables are secrets: they are hidden, and programs that a model starts do not get them."""

from __future__ import annotations

import pytest

from koi_lang.redaction.names import is_secret_variable
from koi_lang.redaction.redactor import HIDDEN, redactor


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "MY_KEY", "KEY", "GITHUB_TOKEN", "GHTOKEN", "TOKEN_OF_CI", "DB_PASS", "PGPASSWORD", "MYSQL_PWD",
     "SSHPASS", "GITHUB_PAT", "NPM_CONFIG__AUTH", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "SECRET_KEY_BASE",
     "GOOGLE_APPLICATION_CREDENTIALS", "OPENAIKEY", "api_key"],
)  # fmt: skip
def test_variables_with_telling_names_are_secrets(name: str) -> None:
    """Programs that a model starts do not get them, and their values are hidden wherever they stand."""
    assert is_secret_variable(name)
    assert redactor({name: "opensesame7"})("it is opensesame7") == f"it is {HIDDEN}"


@pytest.mark.parametrize(
    "name",
    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "SSH_AUTH_SOCK", "SSH_ASKPASS", "GIT_ASKPASS",
     "XAUTHORITY", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "MAX_OUTPUT_TOKENS", "KEYBOARD", "PASSWORD_STORE_DIR",
     "PGPASSFILE", "PUBLIC_KEY", "AUTH_TYPE", "MONKEY", "HOME", "GNUPGHOME"],
)  # fmt: skip
def test_variables_of_people_sockets_and_folders_are_none(name: str) -> None:
    """Tools get them, and a name of a person stays readable."""
    assert not is_secret_variable(name)
    assert redactor({name: "Ada Lovelace"})("by Ada Lovelace") == "by Ada Lovelace"
