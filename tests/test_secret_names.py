"""Which variables are secrets: they are hidden, and programs that a model starts do not get them."""

from __future__ import annotations

import pytest

from koi_lang.redaction.names import is_secret_variable
from koi_lang.redaction.redactor import HIDDEN, is_secret, redactor


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


@pytest.mark.parametrize(
    "value",
    ["postgres://ada:opensesame@db.example.org/x", "redis://:opensesame@localhost:6379/0", "amqp://u:p@h",
     "https://0123456789abcdef0123456789abcdef@o1.ingest.example.org/1", "https://__token__:pw@pypi.example.org/simple",
     "jdbc:postgresql://h/d?user=a&password=opensesame", "Server=x;User Id=a;Password=opensesame;",
     "host=x password=opensesame user=a", "AccountName=a;AccountKey=Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4==",
     "https://h.example.org/c?sv=2020&sig=abcDEF123%2Bxyz456", "mongodb+srv://u:p%40ss@c.example.org/db",
     "-Djavax.net.password=opensesame", '{"private_key": "abcdefghijk1234"}', "http://u:pw@proxy:8080"],
)  # fmt: skip
def test_values_that_hold_keys_are_secrets(value: str) -> None:
    """Whatever the variable is called."""
    assert is_secret("SOME_URL", value)


@pytest.mark.parametrize(
    "value",
    ["postgres://db.example.org/x", "postgres://ada@db.example.org/x", "ssh://git@example.org/x.git", "",
     "git@example.org:x.git", "/usr/bin:/bin", "--max-old-space-size=4096 --token-limit=5", "a=1;b=2",
     "rs=0:di=01;34:ln=01;36:*.tar=01;31", "password=$PASSWORD", "http://localhost:8080", "en_US.UTF-8",
     "postgres://ada:$PASSWORD@db.example.org/x", "Ada Lovelace <ada@example.org>"],
)  # fmt: skip
def test_values_without_keys_are_none(value: str) -> None:
    """Programs get them."""
    assert not is_secret("SOME_URL", value)


def test_passwords_in_addresses_are_hidden_wherever_they_stand() -> None:
    """Unless they are words, which stand for other things, too."""
    hide = redactor({"DATABASE_URL": "postgres://a:x9%40Kq2vLw7@db", "TEST_URL": "postgres://postgres:postgres@db"})

    assert f"it is {HIDDEN} or {HIDDEN}, of postgres" == hide("it is x9%40Kq2vLw7 or x9@Kq2vLw7, of postgres")
