"""What is hidden wherever something is shown or written, and what is not: secrets of every kind, innocent texts."""

from __future__ import annotations

import base64
import json
import string
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from koi_lang.redaction.names import secrecy_of
from koi_lang.redaction.redactor import HIDDEN, redactor
from koi_lang.redaction.shapes import is_random
from koi_lang.runtime.journal.entries import json_line, plain
from koi_lang.service.users import new_token
from koi_lang.system import resources
from tests.projects import Project

REDACT = redactor()
TELLING = [
    "password", "passwd", "PASSWORD", "newPassword", "user_password", "db-password", "passphrase", "apiKey", "api_key",
    "API-KEY", "x-api-key", "X-Goog-Api-Key", "client_secret", "clientSecret", "client-secret", "SECRET_KEY_BASE",
    "secretAccessKey", "aws_access_key_id", "privateKey", "ssh_private_key", "access_token", "refreshToken", "id_token",
    "bot-token", "credentials", "webhook_secret", "encryptionKey", "smtp_pass", "mysql_pwd", "api_key_2", "jwt",
]  # fmt: skip
OTHERS = [
    "name", "key", "keys", "tokens", "max_tokens", "input_tokens", "tokenizer", "nextToken", "next_page_token",
    "author", "GIT_AUTHOR_NAME", "authority", "SSH_AUTH_SOCK", "primaryKey", "publicKey", "public_key", "cacheKey",
    "keyboard", "monkey", "secretary", "secretName", "passwordPolicy", "password_min_length", "passed", "compass",
    "bypass", "passenger", "tokenCount", "keyName", "issueKey", "idempotency_key", "cookieConsentEnabled", "pat",
]  # fmt: skip
INNOCENT = [
    "key-performance-indicators-2026", "sk-learn-tutorial-for-beginners", "pk-transactions-by-customer-id-2025",
    "a task-list and sk-1", "hf_transformers_model_card_template", "4c04c0017d0b3f6a9f3f1b1f5c1d8a7be6f0c2d1",
    "commit 3ca0d2a\nAuthor: Ada Lovelace <ada@example.org>", "550e8400-e29b-41d4-a716-446655440000", "Bearer bonds",
    "the bearer certificates are in the safe", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85",
    "https://example.org:8080/a?page=2&sort=key", "git@github.com:koi/koi.git", "ssh://git@example.org/x.git",
    "node_modules/.pnpm/lodash@4.17.21/index.js", "2026-01-01T12:00:00Z", "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkq",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJRTES",
    "The password must have eight characters.", "Enter password: ", "password: required", "password: str = ''",
    "self.password = password", "token = get_token()", "const token = await auth.token()", "def login(password: str):",
    "if not password: raise", "getpass.getpass('password: ')", "--token TOKEN   the token", "--password=${PASSWORD}",
    "curl -H \"Authorization: Bearer $TOKEN\" https://example.org", "api_key=os.environ['API_KEY']", "API_KEY=$OTHER",
    "tokens: 1200 in, 300 out", '{"input_tokens": 1200, "max_tokens": 20000}', '{"key": "user:1", "value": 7}',
    '{"properties": {"password": {"type": "string", "description": "at least 8"}}}', "the token is a word",
    'Token: "#dddddd"', "Cookie: chocolate chip", "authorization: required", "basic arithmetic for beginners",
    "secret santa", "keyboard-interactive", "AUTHORS", "eyJustAWord", "The key: be kind.", "data:image/png;base64,iVBO",
]  # fmt: skip

# ---------------------------------------------------------------- names


@pytest.mark.parametrize("name", TELLING)
def test_a_field_with_a_telling_name_is_hidden(name: str) -> None:
    """Whole words count, however they are joined; the value may be any text."""
    assert secrecy_of(name) in ("always", "text")
    assert plain({"a": [{name: "opensesame"}]}, REDACT) == {"a": [{name: HIDDEN}]}
    assert REDACT(f'say {{"{name}": "opensesame"}}') == f'say {{"{name}": "{HIDDEN}"}}'


@pytest.mark.parametrize("name", OTHERS)
def test_a_field_with_another_name_is_shown(name: str) -> None:
    """A part of a word does not count, nor what is only said about a secret."""
    assert secrecy_of(name) == ""
    assert plain({name: "opensesame 2 x9"}, REDACT) == {name: "opensesame 2 x9"}


@pytest.mark.parametrize("name", ["token", "auth", "Authorization", "cookie", "pass"])
def test_a_name_with_two_meanings_hides_what_looks_like_a_credential(name: str) -> None:
    """A word of a text that was cut into tokens is no secret, a token of an account is one."""
    assert plain({name: "hello"}, REDACT) == {name: "hello"}
    assert plain({name: "a81b2c99d04e"}, REDACT) == {name: HIDDEN}


def test_numbers_are_hidden_where_people_choose_them_as_passwords() -> None:
    """A password may consist of digits, a token or a secret is a text; true, false and nothing are no secrets."""
    given = {"password": 12345678, "secret": 42, "token": 7, "passphrase": None, "hasPassword": True, "passcode": 1.5}

    assert plain(given, REDACT) == given | {"password": HIDDEN, "passcode": HIDDEN}
    assert json.loads(REDACT(json.dumps(given))) == given | {"password": HIDDEN, "passcode": HIDDEN}


def test_fields_of_a_payload_count_by_the_names_of_fields() -> None:
    """`key` is a field like any other in a payload, and the name of a secret among variables."""
    redact = redactor({"KEY": "opensesame"}, fields={"key": "user:12345", "password": "correcthorse"})

    assert redact("opensesame user:12345 correcthorse") == f"{HIDDEN} user:12345 {HIDDEN}"


def test_a_value_that_is_a_common_word_counts_as_a_whole_word() -> None:
    """A weak password hides itself, and not every word that contains it."""
    assert redactor({"DB_PASSWORD": "postgres"})("postgres, postgresql") == f"{HIDDEN}, postgresql"


# ---------------------------------------------------------------- secrets

LETTERS = string.ascii_letters + string.digits
RANDOM = st.text(LETTERS, min_size=24, max_size=48).filter(is_random)
PASSWORDS = st.one_of(
    RANDOM,
    st.text(LETTERS + "!*+^~", min_size=8, max_size=20).filter(lambda t: any(map(str.isdigit, t)) and t[0].isalpha()),
)
MARKS = ["sk-", "sk-ant-api03-", "sk_live_", "ghp_", "hf_", "AIza", "github_pat_", "glpat-", "xoxb-", "gsk_", "npm_"]
TOKENS = st.one_of(
    st.builds(str.__add__, st.sampled_from(MARKS), RANDOM),
    st.text(string.ascii_uppercase + string.digits, min_size=16, max_size=16).map(lambda body: f"AKIA{body}"),
    st.binary(min_size=20, max_size=40).map(
        lambda data: "eyJhbGciOiJIUzI1NiJ9." + ".".join([base64.urlsafe_b64encode(data).decode().rstrip("=")] * 2)
    ),
)
KEYS = st.binary(min_size=96, max_size=400).map(lambda data: base64.encodebytes(data).decode().strip())
PLACES: dict[str, Callable[[str], str]] = {
    "JSON": lambda s: f'{{"user": "ada", "password": "{s}", "n": 1}}',
    "JSON in a text of JSON": lambda s: json.dumps({"body": json.dumps({"a": {"clientSecret": s}})}),
    "twice in JSON": lambda s: json.dumps(json.dumps({"body": json.dumps({"api_key": s})})),
    "Python": lambda s: f"{{'user': 'ada', 'api_key': '{s}'}}",
    "code": lambda s: f'client = Client(api_key="{s}", retries=2)',
    "JavaScript": lambda s: f"const options = {{ apiKey: '{s}', retries: 2 }}",
    "index": lambda s: f'headers["X-Api-Key"] = "{s}"',
    "query": lambda s: f"https://example.org/v1/items?page=2&api_key={s}&sort=up",
    "address": lambda s: f"postgres://ada:{s}@db.example.org:5432/shop",
    "header": lambda s: f"GET / HTTP/1.1\r\nX-Api-Key: {s}\r\nAccept: */*",
    "bearer": lambda s: f"Authorization: Bearer {s}",
    "curl": lambda s: f"curl -sS -H 'Authorization: Bearer {s}' https://example.org",
    "option": lambda s: f"mysqldump --password={s} shop > dump.sql",
    "option with a blank": lambda s: f"deploy --token {s} --force",
    "quoted option": lambda s: f'deploy --api-key "{s}" --force',
    "variable": lambda s: f"API_TOKEN={s} ./deploy.sh",
    "export": lambda s: f"export DB_PASSWORD={s}\nexport HOME=/root",
    ".env": lambda s: f"NAME=shop\nSECRET_KEY={s}\nDEBUG=1\n",
    "YAML": lambda s: f"db:\n  user: ada\n  password: {s}\n  port: 5432\n",
    "INI": lambda s: f"[db]\nuser = ada\npassword = {s}\n",
    "connection": lambda s: f"Server=db;User=ada;Password={s};Database=shop",
    "arguments": lambda s: json.dumps(["deploy", "--password", s, "--force"]),
    "name and value": lambda s: json.dumps([{"name": "DB_PASSWORD", "value": s}, {"name": "LEVEL", "value": "info"}]),
    "arrow": lambda s: f"'password' => '{s}',",
    "element": lambda s: f"<user>ada</user><password>{s}</password>",
    "attribute": lambda s: f'<add user="ada" password="{s}"/>',
    "cookies": lambda s: f"Cookie: theme=1; session={s}",
    "SQL": lambda s: f"CREATE USER ada IDENTIFIED BY '{s}'; ALTER USER ada WITH PASSWORD '{s}';",
    "netrc": lambda s: f"machine example.org login ada password {s}",
    "curl with a user": lambda s: f"curl -sS -u ada:{s} https://example.org",
    "short options": lambda s: f"sshpass -p {s} ssh a@b; mysql -u ada -p{s} shop; docker login -u ada -p {s}",
    "list": lambda s: json.dumps({"passwords": ["other1234", s]}),
    "object": lambda s: json.dumps({"credentials": {"user": "ada", "value": s}}),
}


def everywhere(text: str) -> list[str]:
    """What is written and shown of a text: in a journal, a message of rpc, a line of `--json`, on stderr."""
    event = {"result": {"deep": [text]}, "fields": {"text": text}}
    lines = [json_line(event, REDACT).decode(), REDACT(json.dumps(event, ensure_ascii=False)), REDACT(text)]
    assert all(json.loads(line) for line in lines[:2])
    return [*lines, REDACT(repr(text))]


def spellings(secret: str) -> set[str]:
    """A secret as it may be spelt in JSON, and in JSON in JSON."""
    once = json.dumps(secret)[1:-1]
    return {secret, once, json.dumps(once)[1:-1]}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("place", PLACES)
@given(secret=PASSWORDS)
@settings(max_examples=60, deadline=None)
def test_a_named_secret_is_hidden_wherever_it_stands(place: str, secret: str) -> None:
    """Objects, JSON in texts, code, addresses, headers, command lines, files of settings: what is named is hidden."""
    for shown in everywhere(PLACES[place](secret)):
        assert not [spelt for spelt in spellings(secret) if spelt in shown], shown


@given(secret=TOKENS, around=st.sampled_from(["{}", "see {} here", "({})", "a\n{}\nb", 'x="{}"', "\\n{}", "{},{}"]))
@settings(max_examples=100, deadline=None)
def test_a_token_is_hidden_without_a_name(secret: str, around: str) -> None:
    """Tokens of known kinds, JSON web tokens among them, are hidden wherever they stand."""
    for shown in everywhere(around.replace("{}", secret)):
        assert secret not in shown


@given(key=KEYS, kind=st.sampled_from(["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "]), cut=st.booleans())
@settings(max_examples=100, deadline=None)
def test_private_keys_are_hidden_over_all_their_lines(key: str, kind: str, cut: bool) -> None:
    """Also where the key is cut off; what stands around it stays."""
    end = "" if cut else f"\n-----END {kind}PRIVATE KEY-----\nand so on"
    text = f"key.pem:\n-----BEGIN {kind}PRIVATE KEY-----\n{key}{end}"

    for shown in everywhere(text):
        assert not [line for line in key.split("\n") if len(line) > 20 and line in shown], shown
        assert cut or "and so on" in shown


@pytest.mark.parametrize(
    "text",
    ["deploy --password {} --force", 'deploy --password "{}"', '["deploy", "--password", "{}"]', "db.password={}\n",
     "curl -H 'Authorization: Bearer {}' https://example.org", "> X-Api-Key: {}7#b\r\n> Accept: */*"],
)  # fmt: skip
def test_a_word_is_hidden_where_only_a_secret_can_stand(text: str) -> None:
    """Behind options, in files of settings and in headers even letters alone are a secret."""
    for shown in everywhere(text.replace("{}", "opensesame")):
        assert "opensesame" not in shown


# ---------------------------------------------------------------- innocent texts


@pytest.mark.parametrize("text", INNOCENT)
def test_innocent_texts_stay_as_they_are(text: str) -> None:
    """Identifiers, hashes, names of files, code and prose are no secrets, however much they are about them."""
    assert REDACT(text) == text
    assert json.loads(json_line({"text": text}, REDACT)) == {"text": text}


HEX, WORDS = (
    "0123456789abcdef",
    st.sampled_from("key token list of users per page report summary author 2026 v2".split()),
)
NAMED = st.one_of(
    st.text(HEX, min_size=40, max_size=40),
    st.uuids().map(str),
    st.lists(WORDS, min_size=2, max_size=6).map("-".join),
    st.lists(WORDS, min_size=2, max_size=6).map("_".join),
    st.lists(WORDS, min_size=2, max_size=5).map(lambda words: "/".join(words) + ".md"),
    st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    st.binary(min_size=30, max_size=300).map(lambda data: base64.b64encode(data).decode()),
    st.integers().map(str),
)


@given(st.lists(NAMED, min_size=1, max_size=4).map(" ".join))
@settings(max_examples=100, deadline=None)
def test_what_only_looks_drawn_stays(text: str) -> None:
    """Hashes of git, UUIDs, names, dates, data in base64: without a telling name nothing is hidden."""
    assert REDACT(text) == text


def test_our_own_files_stay() -> None:
    """Texts about secrets, and code that handles them, are read as they are: of 2 MB no line is hidden."""
    files = [*resources.PACKAGE.rglob("*.py"), *resources.standard_skills().glob("*")]
    texts = {str(file): file.read_text("utf-8") for file in files if file.is_file()}

    assert [] == [name for name, text in texts.items() if REDACT(text) != text]


IN_PROGRAMS = """
    registry_set("token", "{}")
    await registry.set('db_password', '{}')
    registry_set(
      `session_token`,
      `{}`,
    )
    callAction("registry_set", { key: "token", value: "{}" })
    new Map([["token", "{}"]])
    state { token: string = "{}" }
    const apiKey = `{}`
    const mine: string = "{}"
    registry_set("token", mine)
    """


def test_a_program_hides_what_its_run_hides() -> None:
    """Literals that stand beside a telling name in any form of the language, and no line is added or taken away."""
    redact = redactor()

    assert IN_PROGRAMS.replace("{}", HIDDEN) == redact.source(IN_PROGRAMS.replace("{}", "Rt5Yu6Io7Pa8Sd9F"))
    assert f"say {HIDDEN}" == redact("say Rt5Yu6Io7Pa8Sd9F")


def test_our_own_programs_stay() -> None:
    """Nothing is hidden in programs without secrets: neither a question for a password, nor a list of names."""
    files = [*resources.standard_skills().rglob("*.koi"), *(Path(__file__).parents[1] / "examples").rglob("*.koi")]
    texts = [file.read_text("utf-8") for file in files]
    texts += ['ask("password", "Enter your password")', '["token", "secret"]', 'registry_set("token", args.token)']

    assert len(texts) > 20
    assert [] == [text for text in texts if redactor().source(text) != text]


# ---------------------------------------------------------------- any values

TEXTS = st.lists(
    st.sampled_from(
        [
            "password",
            "token",
            "api_key",
            "API_KEY",
            "Authorization",
            "secret",
            "hunter2",
            "abcDEF123456",
            " ",
            ": ",
            "=",
            '"',
            "'",
            "\\",
            "\n",
            "\t",
            "--",
            "?",
            "&",
            ",",
            "{",
            "}",
            "[",
            "]",
            "Bearer ",
            "https://u:p4ss@h",
            "é",
        ]
    ),
    max_size=14,
).map("".join)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from([*TELLING, *OTHERS, "token", "auth"]), TEXTS), inner, max_size=4),
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["result", "fields", "password", "apiKey"]), VALUES, max_size=3))
@settings(max_examples=100, deadline=None)
def test_a_line_holds_what_the_values_hold(value: dict[str, Any]) -> None:
    """A line that is written at once hides no less than one whose values are looked at one by one."""
    assert json.loads(json_line(value, REDACT)) == plain(value, REDACT)


@given(VALUES)
@example(["'password': ", None, {"password": None}])
@settings(max_examples=100, deadline=None)
def test_json_stays_json(value: Any) -> None:
    """A line of JSON without its secrets can be read, and so can JSON in its texts."""
    inner = json.dumps(value)

    json.loads(REDACT(inner))
    json.loads(json.loads(REDACT(json.dumps({"text": inner})))["text"])


@pytest.mark.parametrize("depth", [100, 400, 600, 900, 5000])
def test_deep_json_is_redacted(depth: int) -> None:
    """However deep a tool nests its answer, nothing is raised, and its secrets are hidden."""
    inside = f'{{"password": "{HIDDEN}"}}'

    assert f"{'[' * depth}{inside}{']' * depth}" == REDACT(
        f"{'[' * depth}{inside.replace(HIDDEN, 'hunter2x99')}{']' * depth}"
    )


HOSTILE = [
    "pass:", "token=", 'password="', "key", "\\", '"password":[', '"passwords":["a",', "sk-", "eyJ", "eyJaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----", "://a:b", "Bearer ", "cookie: a=", "--token ", "password:'\"", '"password\\":\\"',
    "curl -u a:", "mysql -pa ", " login a password ", "<password>", "password => '", "API key ", '"--password","',
    "\npassword: ", '"secrets":{"a":"b",', "password:\\\\\\\"", '("token", ', "key:   ", "token: a | b", "(`",
]  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_time_that_grows_with_them(piece: str) -> None:
    """Nothing that a tool may answer holds the run up: twice the text takes about twice the time."""

    def seconds(size: int) -> float:
        text, before = piece * (size // len(piece)), time.process_time()
        redactor().source(text)
        return time.process_time() - before

    small = min(seconds(30_000) for _ in range(3))

    assert min(seconds(240_000) for _ in range(2)) < 8 * 4 * max(small, 0.002)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_about_a_second_for_a_megabyte(piece: str) -> None:
    """Measured against a plain loop over the same text, which takes some 20 ms a megabyte; alone up to 50 times it."""

    def seconds(work: Callable[[], object]) -> float:
        before = time.process_time()
        work()
        return time.process_time() - before

    text = piece * (200_000 // len(piece))
    loop = min(seconds(lambda: sum(map(str.isalpha, text))) for _ in range(5))

    assert min(seconds(lambda: redactor()(text)) for _ in range(3)) < 100 * loop


# ---------------------------------------------------------------- where it is used

TOOL = """
    def login():
        return {"user": "ada", "clientSecret": "swordfish1", "token": "a81b2c99d04e", "note": "password: swordfish2"}
    """
PROGRAM = """
    import tool from "./tool.py"
    role W { can execute, can registry }
    agent A : W {
      on go(args: Json) {
        const found = tool.login()
        await this.callAction("registry_set", { key: "key-performance-indicators-2026", value: args })
        return Object.keys(found).length
      }
    }
    run A.go({ apiKey: "swordfish3", author: "Ada" })
    """


def test_a_secret_that_was_found_is_known_without_its_name(project: Project) -> None:
    """A key out of a result, a payload or a text is hidden where it stands alone, in the same entry also before it."""
    project.write("tool.py", 'def login():\n    return {"note": "it is Zk93hfQpL02m", "apiKey": "Zk93hfQpL02m"}\n')
    project.write(
        "main.koi",
        """
        import tool from "./tool.py"
        role W { can execute, can registry }
        agent A : W {
          on go(args: Json) {
            const key = tool.login().apiKey
            console.log(key)
            await this.callAction("registry_set", { key: "k", value: [args.clientSecret, `as ${key}`] })
            throw new Error(`no ${key} for ${args.clientSecret}`)
          }
        }
        run A.go({ clientSecret: "hQ4mW81xKz7p" })
        """,
    )

    shown = [project.koi("run", "main.koi", *words) for words in (["--json"], ["--debug"], ["--verbose"], [])]
    journals = [path.read_text() for path in (project.folder / ".koi" / "runs").glob("*.jsonl")]

    texts = [shown[0].stdout, *(outcome.stderr for outcome in shown), *journals]
    assert [1] * 4 == [outcome.returncode for outcome in shown]
    assert len(texts) == 9
    assert [] == [text for text in texts if "Zk93hfQpL02m" in text or "hQ4mW81xKz7p" in text]


def test_what_was_found_is_one_value_and_no_word() -> None:
    """What stands for nothing but itself is looked for; words, numbers and names that are a password are not."""
    redact = redactor()
    words = "opensesame swordfish3 postgres 1234567890 user-2026 required1".split()
    for value in [*words, "xK9mP2qTv4", "Summer2026!"]:
        assert redact(f'{{"password": "{value}"}}') == f'{{"password": "{HIDDEN}"}}'

    assert redact(" ".join(words)) == " ".join(words)
    assert redact("(xK9mP2qTv4) or Summer2026!") == f"({HIDDEN}) or {HIDDEN}"


def test_of_what_was_found_the_latest_counts() -> None:
    """A server that names thousands of secrets makes nothing slow: the last thousand are looked for."""
    redact = redactor()
    tokens = [f"{number:04}xKqPvT{number:04}" for number in range(2000)]
    for token in tokens:
        redact(f"password: {token}")

    assert redact(tokens[0]) == tokens[0]
    assert redact(tokens[-1]) == redact(tokens[-1000]) == HIDDEN


RESUMED = """
    import tool from "./tool.py"
    role W { can execute, can registry }
    agent A : W {
      on go(args: Json) {
        const key = tool.login().apiKey
        tool.use(`x ${args.clientSecret}`)
        tool.use(`x ${key}`)
        tool.stop()
        console.log("after", key, args.clientSecret)
        tool.use(key)
      }
    }
    run A.go({ clientSecret: "hQ4mW81xKz7p" })
    """
STOPPING = """
    import os
    def login():
        return {"apiKey": "Zk93hfQpL02m"}
    def use(key):
        open("used", "a").write(key + ";")
    def stop():
        if not os.path.exists("go"):
            os.kill(os.getpid(), 9)
    """


def test_a_run_that_goes_on_has_what_was_found_again(project: Project) -> None:
    """Effects that were given a found secret are recognized, and those that follow are given the secret."""
    project.write("tool.py", STOPPING)
    project.write("main.koi", RESUMED)

    project.koi("run", "main.koi")
    project.write("go", "")
    outcome = project.koi("resume", "--on-doubt", "retry")

    assert outcome.stdout == "after Zk93hfQpL02m hQ4mW81xKz7p\n"
    assert (project.folder / "used").read_text() == "x hQ4mW81xKz7p;x Zk93hfQpL02m;Zk93hfQpL02m;"


def test_one_table_counts_everywhere(project: Project) -> None:
    """Journal, `--json`, `--verbose` and `--debug` hide the same fields and texts, and show the same others."""
    project.write("tool.py", TOOL)
    project.write("main.koi", PROGRAM)

    shown = [project.koi("run", "main.koi", "--json"), project.koi("run", "main.koi", "--debug")]
    journals = [path.read_text() for path in (project.folder / ".koi" / "runs").glob("*.jsonl")]

    texts = [*(f"{outcome.stdout}{outcome.stderr}" for outcome in shown), *journals]
    assert [outcome.returncode for outcome in shown] == [0, 0]
    assert len(texts) == 4
    for text in texts:
        assert "swordfish" not in text
        assert "a81b2c99d04e" not in text
        assert "key-performance-indicators-2026" in text
        assert HIDDEN in text


def test_tokens_of_services_are_secrets() -> None:
    """What `koi service token` makes is hidden wherever it stands; names that begin like it are none."""
    hide, name = redactor({}), f"koi_{'lang_' * 8}abc"

    assert {f"echo {HIDDEN} | cat"} == {hide(f"echo {new_token()} | cat") for _ in range(50)}
    assert name == hide(name)
