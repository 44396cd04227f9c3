"""Secrets that have a form of their own, names that hold secrets, and texts that only look like secrets."""

import json
import time

import pytest

from rooda.base import secret_forms, secrets
from rooda.base.secret_forms import looks_secret
from tests.kit.workspace import Workspace

# Keys are made up, and put together here, so that no scanner takes them for real ones.
PEM = ("-----BEGIN {0}PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n" * 3
       + "q8a=\n-----END {0}PRIVATE KEY-----")  # fmt: skip
N = "123456789012"
HEX = "0123456789abcdef" * 2
R = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"  # 32 characters as random ones look

LONG = "A line of a log that is long enough to be searched word by word\n" * 100
# Text, and what must not be left of it.
SECRETS = {
    "openai": (f"key sk-{R}{R} set", R),
    "openai-project": (f"OPENAI=sk-proj-{R}_{R}-{R}", R),
    "anthropic": (f"sk-ant-api03-{R}-{R}_AA", R),
    "deepseek": (f"using sk-{HEX}.", HEX),
    "openrouter": (f"sk-or-v1-{HEX}{HEX}", HEX),
    "stripe": (f"sk_live_{R}", R),
    "stripe-restricted": (f"rk_test_{R}", R),
    "stripe-webhook": (f"whsec_{R}", R),
    "github-personal": (f"https://x:ghp_{R}abcd@github.com/o/r", R),
    "github-oauth": (f"gho_{R}abcd", R),
    "github-user": (f"ghu_{R}abcd", R),
    "github-server": (f"ghs_{R}abcd", R),
    "github-refresh": (f"ghr_{R}abcd", R),
    "github-fine": (f"github_pat_11ABCDEFG0{R}_{R}", R),
    "gitlab": (f"glpat-{R[:20]}", R[:20]),
    "aws": ("aws_access_key_id = AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
    "aws-session": ("id ASIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
    "aws-secret": ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    "aws-environment": ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    "slack-bot": (f"xoxb-{N}-{N}-{R}", R),
    "slack-user": (f"xoxp-{N}-{N}-{R}", N),
    "slack-app": (f"xapp-1-A0123-{R}", R),
    "slack-hook": (f"curl https://hooks.slack.com/services/T{N}/B{N}/{R}", R),
    "discord-hook": (f"https://discord.com/api/webhooks/{N}/{R}", R),
    "jwt": (f"eyJ{R}.eyJzdWIi{R}.{R}", "eyJzdWIi"),
    "azure-storage": (f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={R}{R}==;EndpointSuffix=x", R),
    "azure-bus": (f"Endpoint=sb://a/;SharedAccessKeyName=Root;SharedAccessKey={R}=", R),
    "google": (f"AIzaSy{R}a", R),
    "google-oauth": (f"ya29.{R}{R}", R),
    "npm": (f"//registry.npmjs.org/:_authToken=npm_{R}abcd", R),
    "huggingface": (f"hf_{R}ab", R),
    "groq": (f"gsk_{R}", R),
    "xai": (f"xai-{R}", R),
    "pypi": (f"pypi-AgEIcHlwaS5vcmc{R}", R),
    "sendgrid": (f"SG.{R[:22]}.{R}", R),
    "bearer": (f"Authorization: Bearer {R}", R),
    "bearer-lower": (f"authorization: bearer {R}", R),
    "bearer-json": (f'{{"authorization": "bearer {R}"}}', R),
    "basic": ("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "QWxhZGRpbjpvcGVu"),
    "basic-curl": ("curl -H 'authorization: basic YXBwOmh1bnRlcjI='", "YXBwOmh1bnRlcjI"),
    "header-token": (f"Authorization: token {HEX}01234567", HEX),
    "header-token-json": (f'{{"Authorization": "token {HEX}01234567"}}', HEX),
    "address-token": (f"git clone https://{HEX}01234567@github.com/o/r", HEX),
    "address-token-as-user": (f"https://{HEX}01234567:x-oauth-basic@github.com/o/r", HEX),
    "digitalocean": (f"dop_v1_{HEX}{HEX}", HEX),
    "digitalocean-oauth": (f"doo_v1_{HEX}{HEX}", HEX),
    "vault": (f"hvs.{R[:24]}", R[:24]),
    "vault-batch": (f"hvb.{R}{R}", R),
    "gitlab-runner": (f"glrt-{R[:20]}", R[:20]),
    "gitlab-trigger": (f"glptt-{HEX}01234567", HEX),
    "grafana": (f"glsa_{R}_0123abcd", R),
    "shopify": (f"shpat_{HEX}", HEX),
    "square": (f"sq0atp-{R[:22]}", R[:22]),
    "twilio": (f"SK{HEX}", HEX),
    "mailgun": (f"key-{HEX}", HEX),
    "databricks": (f"dapi{HEX}-2", HEX),
    "docker": (f"dckr_pat_{R}", R),
    "doppler": (f"dp.pt.{R}{R}", R),
    "planetscale": (f"pscale_tkn_{R}", R),
    "sentry": (f"sntrys_{R}{R}", R),
    "langsmith": (f"lsv2_pt_{HEX}_0123456789", HEX),
    "sonarqube": (f"squ_{HEX}01234567", HEX),
    "atlassian": (f"ATATT3xFfGF0{R}{R}=01234567", R),
    "google-client": (f"GOCSPX-{R[:28]}", R[:28]),
    "perplexity": (f"pplx-{R}{R}", R),
    "figma": (f"figd_{R}{R[:8]}", R),
    "postman": (f"PMAK-{HEX[:24]}-{HEX}", HEX),
    "newrelic": (f"NRAK-{R[:27].upper()}", R[:20].upper()),
    "heroku": (f"HRKU-AA{R}{R}", R),
    "linear": (f"lin_api_{R}{R[:8]}", R),
    "notion": (f"ntn_{R}{R[:14]}", R),
    "supabase": (f"sbp_{HEX}01234567", HEX),
    "rubygems": (f"rubygems_{HEX}0123456789abcdef", HEX),
    "replicate": (f"r8_{R}abcde", R),
    "age": (f"AGE-SECRET-KEY-1{R.upper()}{R.upper()}", R.upper()),
    "terraform": (f"abcdefghijklmn.atlasv1.{R}{R}", R),
    "alibaba": (f"LTAI{R[:20]}", R[:20]),
    "azure-sas": (f"https://a.blob.core.windows.net/c?sv=2024&sig={R}{R[:10]}%3D", R),
    "aws-signed": (f"https://b.s3.amazonaws.com/k?X-Amz-Signature={HEX}{HEX}", HEX),
    "pem": (PEM.format(""), "MIIEvQ"),
    "pem-rsa": ("x\n" + PEM.format("RSA "), "q8a="),
    "pem-openssh": (PEM.format("OPENSSH ") + "\nafter", "MIIEvQ"),
    "pem-ec": (PEM.format("EC "), "MIIEvQ"),
    "pem-in-json": (PEM.format("").replace("\n", "\\n"), "MIIEvQ"),
    "pem-indented": (PEM.format("").replace("\n", "\n    "), "MIIEvQ"),
    "pem-cut": (PEM.format("")[:150], "MIIEvQ"),
    "pem-in-json-in-json": (PEM.format("").replace("\n", "\\\\n"), "MIIEvQ"),
    "address": ("postgres://app:hunter2@db.internal:5432/x", "hunter2"),
    "address-redis": ("redis://:correcthorse@cache:6379", "correcthorse"),
    "address-mongo": ("mongodb+srv://u:p4ss%21word@c.mongodb.net", "p4ss"),
    "word": ("DB_PASSWORD=password", "=password"),
    "dotenv": (f'SECRET_KEY="{R}"', R),
    "dotenv-single": (f"export API_TOKEN='{R}'", R),
    "json": (f'{{"client_secret": "{R}"}}', R),
    "json-in-json": (f'{{\\"api_key\\": \\"{R}\\"}}', R),
    "yaml": (f"apiKey: {R}", R),
    "yaml-password": ("  password: correct1horse", "correct1horse"),
    "ini": (f"auth_token = {R}", R),
    "toml": (f'[x]\npassword = "{R}"', R),
    "datadog": (f"DD_API_KEY={HEX}", HEX),
    "django": (f"DJANGO_SECRET={HEX}", HEX),
    "mysql": ("MYSQL_PWD=correcthorse", "correcthorse"),
    "jwt-secret": ("JWT_SECRET=correcthorsebattery", "correcthorse"),
    "netrc-like": (f"machine x login y\nGITLAB_TOKEN={R}", R),
    "after-an-escaped-line-end": (f"\\nsk-{R}{R}\\nghp_{R}abcd", R),
    "private-key-env": (f"SSH_PRIVATE_KEY={R}", R),
    "dotted": (f"spring.datasource.password={R}", R),
    "npmrc": (f"_password={R}", R),
    "arrow": (f"'api_secret' => '{R}'", R),
    "twice": (f"ghp_{R}abcd ghp_{R}abcd", R),
}

HARMLESS = {
    "sha1": "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "uuid": "id 123e4567-e89b-12d3-a456-426614174000",
    "uuid-key": "idempotency_key=123e4567-e89b-12d3-a456-426614174000",
    "cache-key": "cache_key=3f786850e387550fdab836ed7e6dc881de23001b",
    "cache-key-env": "CACHE_KEY=3f786850e387550fdab836ed7e6dc881de23001b",
    "image": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kg==",
    "source-map": "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbImEuanMiXX0=",
    "integrity": "sha512-z3c3TQn0yXp1nQwVd7n0g3XH2m5w1nJ8nq0d1ZfTn2y3u4v5w6x7y8z9A0B1C2D3E4F5G6H7I8J9K0==",
    "sk-prose": "sk-learn and sk-image are short for scikit",
    "sk-css": "class sk-fading-circle-container-wrapper",
    "sk-css-number": "sk-chase-dot-2-wrapper-for-the-spinner",
    "task": "task-0123456789abcdefXYZ0 and disk-0123456789abcdefXYZ0",
    "risk": "risk-assessment-2026-report",
    "ghp-prose": "a token that begins with ghp_ is personal",
    "gh-command": "gh pr list; gho_st; ghs_",
    "pat-prose": "github_pat_ tokens",
    "akia-prose": "keys begin with AKIA or ASIA",
    "asia": "ASIAPACIFICREGIONALDATA",
    "asia-two": "ASIA2024",
    "xox": "xoxo and xoxb- tokens",
    "eyj": "a JWT begins with eyJ",
    "eyj-word": "eyJafjallajokull.com",
    "account": "AccountKey= is missing; AccountKey=...",
    "hooks": "see https://hooks.slack.com/services/ for it",
    "hooks-docs": "https://api.slack.com/messaging/webhooks",
    "pem-prose": "look for `-----BEGIN PRIVATE KEY-----` in the file",
    "pem-test": 'assert "-----BEGIN RSA PRIVATE KEY-----" not in text',
    "pem-public": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIB\n-----END CERTIFICATE-----",
    "ssh-public": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@host",
    "address": "https://example.org:8443/a@b",
    "address-user": "git@github.com:o/r.git and ssh://git@github.com/o/r",
    "address-variable": "postgres://app:$DB_PASS@db and https://u:${TOKEN}@x and ://u:<password>@x",
    "address-mail": "mailto:me@example.org http://x.org/?q=a:b@c",
    "variable": "DB_PASSWORD=$PASSWORD TOKEN=${GITHUB_TOKEN} SECRET={{secret}} API_KEY=<your-key> KEY=%KEY%",
    "github-actions": "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
    "code-call": "token = get_token(session1) ; password = getpass.getpass('x1')",
    "code-environ": 'api_key = os.environ["OPENAI_API_KEY"]; apiKey: process.env.API_KEY',
    "code-type": "def login(password: Optional[str1234], token: TokenType)",
    "code-word": "password: string; secret: required; token = iterator; api_key: str",
    "code-index": "secret = values[0123456789]",
    "limits": "max_tokens=100000 tokens: 1234567890 token_budget=100000",
    "usage": '{"input_tokens": 123456789, "output_tokens": 12}',
    "encoding": "token_encoding=o200k_base",
    "path": "SSH_KEY=/home/me/.ssh/id_ed25519 API_KEY_FILE=/run/secrets/key1234",
    "path-relative": "TLS_KEY=./certs/server1.pem PRIVATE_KEY=~/.ssh/key12345",
    "short": "PASSWORD=abc TOKEN=x1",
    "stars": "PASSWORD=********** TOKEN=***",
    "monkey": "MONKEY=bananas123456 keyboard=qwerty123456",
    "primary-key": "primary_key: user_id_12345678",
    "sort-key": "sort_key=created_at_2026",
    "key-prose": "press any key: continue1234",
    "password-prose": "The password: it must have 8 characters. Your secret is safe.",
    "token-prose": "token: the next word is unexpected1",
    "bearer-prose": "Bearer tokens are sent in a header; Bearer authentication-scheme-word",
    "npm-prose": "npm_config_registry npm_package_version_1234567890123456789012345",
    "hf-prose": "hf_hub_download and hf_transfer_enabled_by_default_0123456789",
    "branch": "rooda/build-1 refs/rooda/20260206T100000Z-build-4711/3-before",
    "run": "20261119T182416Z-build-13068",
    "date": "2026-11-19T18:24:16.715Z",
    "number": "12345678901234567890123456789012",
    "long-path": "/usr/lib/python3.11/site-packages/sklearn/linear_model/_logistic_1234567890.py",
    "go-sum": "github.com/pkg/errors v0.9.1 h1:FEBLx1zS214owpjy7qsBeixbURkuhQAwrK5UwLGTwt4=",
    "identifiers": "aVeryLongIdentifierInCamelCaseThatGoesOnAndOn1234567890",
    "fragment": "sk_test_ and sk_live_ are modes; risk_test_results_2026",
    "sg": "SG.com and SG. Some words",
    "base64-words": "QUtJQSBpcyBub3QgYSBrZXk= QVNJQQ==",
    "query": "?page=2&sort=asc&token_type=bearer12345678",
    "gate": "ruff check .; pytest -q -k test_password_reset_1234",
    "html": '<input type="password" id="password-field-12345678" name="password">',
    "version": "secretstorage==3.3.3 keyring==25.6.0 jwt==1.3.1.20260101",
}


@pytest.mark.parametrize("name", SECRETS)
def test_S_13_a_secret_is_known_by_its_form(name: str) -> None:
    """Whatever file an agent read it from; the look that each event gets does not miss it."""
    text, secret = SECRETS[name]
    assert secret in text and secret_forms.may_have(text) and secret_forms.line_may_have(text.encode())
    hidden = secrets.hide(f"before {text} after", ())
    assert secret not in hidden and secrets.HIDDEN in hidden
    assert hidden.startswith("before ") and hidden.endswith(" after")
    assert secrets.hide(f"{LONG}before {text} after", ()) == LONG + hidden
    assert secret not in json.dumps(secrets.hide_in({"a": [text], text: 1}, ()))


@pytest.mark.parametrize("name", HARMLESS)
def test_S_13_what_only_looks_like_one_stays(name: str) -> None:
    """Hashes, identifiers, images, code and prose about keys."""
    assert secrets.hide(HARMLESS[name], ()) == HARMLESS[name]
    assert secrets.hide(LONG + HARMLESS[name], ()) == LONG + HARMLESS[name]


def test_S_13_there_are_enough_of_both() -> None:
    """Each sign of the cheap look is part of a marker, and each marker has one."""
    assert min(len(SECRETS), len(HARMLESS), len(NAMES.split())) >= 60
    assert all(any(sign in marker for sign in secret_forms.SIGNS) for marker in secret_forms.MARKERS)


@pytest.mark.parametrize("name", SECRETS)
def test_S_13_a_secret_in_pieces(name: str) -> None:
    """Of a text that comes in any two pieces nothing of a secret is shown before all of it is there."""
    text, secret = SECRETS[name]
    text = f"before {text} after\n"
    whole = secrets.hide(text, ())
    for place in range(len(text)):
        first, rest = secrets.hide_piece(text[:place], ())
        assert secret[:6] not in first or secret[:6] in whole, place
        shown = first + secrets.hide(rest + text[place:], ())
        assert shown == whole, place


HOSTILE = (
    "sk-", "sk-a", "eyJa.", "eyJ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN A", "://a:", "://a@:", "a", "a=",
    "PASSWORD", "PASSWORD ", "PASSWORD=", "PASSWORD:  ", '_KEY="', "\\", '\\"PASSWORD\\"', "password   ", "\n", "AKIA",
    "xoxb-", "ghp_", "Bearer ", "-----BEGIN RSA PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA\n",
    "hooks.slack.com/services/", "a.b_KEY-", "=>PASSW",
)  # fmt: skip


@pytest.mark.parametrize("part", HOSTILE)
def test_S_13_no_text_is_slow(part: str) -> None:
    """Time grows with the length, not with its square: 256 kB take milliseconds; the bound only catches a hang."""
    text = f"PASSWORD=x {part * (262_144 // len(part))}"
    began = time.process_time()
    secrets.hide(text, ())
    secrets.hide_piece(text, ())
    assert time.process_time() - began < 5


NAMES = """
    SLACK_WEBHOOK_URL TEAMS_WEBHOOK DISCORD_WEBHOOK_URI GIT_HOOK_URL STRIPE_SK JWT USER_JWT TLS_CERT_PEM
    SSL_PEM AZURE_STORAGE_CONNECTION_STRING SERVICEBUS_CONNECTIONSTRING DB_CONN_STR COSMOS_CONNSTR
    SQL_CONN_STRING LDAP_BIND_PW WIFI_PSK AWS_CREDS GCP_CRED PASSWORD_SALT BLOB_SAS STORAGE_SAS_URL
    WEBHOOK_HMAC DOOR_PASSCODE API_BEARER WALLET_MNEMONIC GCP_SERVICE_ACCOUNT_JSON DB_PASSWORD PGPASSWORD
    MYSQL_PWD REDIS_PASS SMTP_PASSWD GPG_PASSPHRASE OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY
    AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_CLIENT_SECRET GITHUB_TOKEN GH_TOKEN
    GITLAB_PAT BITBUCKET_APP_PASSWORD NPM_TOKEN NPM_AUTH PYPI_TOKEN TWINE_PASSWORD CARGO_REGISTRY_TOKEN
    DOCKER_PASSWORD DOCKER_AUTH_CONFIG SENTRY_DSN SENTRY_AUTH_TOKEN DD_API_KEY NEW_RELIC_LICENSE_KEY
    TWILIO_AUTH_TOKEN SENDGRID_API_KEY MAILGUN_API_KEY STRIPE_SECRET_KEY DJANGO_SECRET_KEY SECRET_KEY_BASE
    RAILS_MASTER_KEY SESSION_SECRET COOKIE_SECRET ENCRYPTION_KEY SIGNING_KEY VAULT_TOKEN HTTP_AUTHORIZATION
    GOOGLE_APPLICATION_CREDENTIALS_JSON SNOWFLAKE_PRIVATE_KEY TF_VAR_db_password
"""
VALUE = "Zm9vYmFyLTEyMzQ1Njc4"
NO_NAMES = """
    WEBHOOK_PORT WEBHOOK_TIMEOUT JWT_ALGORITHM JWT_ISSUER HOOKS_DIR SALTSTACK_VERSION PEMBROKE CONNECTION_LIMIT TASK
    DISK RISK MASK_ID SKU_NAME PSKOV CREDITS SASS_PATH PWM MAX_TOKENS TOKENIZERS_PARALLELISM
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_S_13_a_secret_is_known_by_its_variable(name: str) -> None:
    """Names as they occur in .env files and in CI."""
    assert VALUE in secrets.forms({name: VALUE})


def test_S_13_names_that_hold_none() -> None:
    """A path of a certificate, and names that only contain the letters, are no secrets."""
    assert [name for name in NO_NAMES.split() if looks_secret(name)] == []
    assert secrets.forms({"TLS_CERT_PEM": "/etc/ssl/certs/server.pem"}) == ()


def test_S_13_no_reader_gets_a_key_that_an_agent_read_from_a_file(ws: Workspace) -> None:
    """Not in the events, on the screen, in the words of `rooda why` or of a hook, nor in the agent's output."""
    key = SECRETS["github-personal"][1] + "abcd"
    ws.procedure("build", gates={"keys": f"echo found ghp_{key}; exit 1"}, loop={"failure_threshold": 1})
    ws.config(ws.read("rooda.toml") + "[hooks]\nfailed = 'cat >got.json'\n")
    ws.out(1, f"I read ghp_{key}\n{SECRETS['pem'][0]}\n")
    ws.exits(1)
    ran = [ws.rooda("build", "-n", "1", "--verbose"), ws.rooda("why"), ws.rooda("logs", "--agent"), ws.rooda("events")]
    said = [each.both for each in ran]
    assert "I read ghp_***" in said[0] and "ghp_***" in said[2]
    hook = ws.read("got.json")
    for text in (*said, hook):
        assert key not in text and "MIIEvQ" not in text
    assert "ghp_***" in hook or "head" not in hook
