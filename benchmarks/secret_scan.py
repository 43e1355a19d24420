"""How many secrets are found, and how many texts without any are said to have one?

    python -m benchmarks.secret_scan                  # recall, false positives, time
    python -m benchmarks.secret_scan --false          # and every text of the labelled sets that has a finding

The secrets are made up here, of the shapes that their issuers document, with right checksums. Where the package
detect-secrets is installed, it is asked the same.
"""

from __future__ import annotations

import argparse
import atexit
import base64
import gzip
import json
import random
import shutil
import string
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from nacre.analysis.secrets import find_secrets
from nacre.analysis.tokenizer import tokenise

SHORT_CHARS = 200
_RANDOM = random.Random(20)
_ALNUM = string.ascii_letters + string.digits
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def _chars(count: int, alphabet: str = _ALNUM) -> str:
    return "".join(_RANDOM.choices(alphabet, k=count))


def _with_checksum(prefix: str) -> str:
    body = _chars(30)
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return prefix + body + digits


def _jwt() -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": _chars(8), "exp": 1_900_000_000})
    encoded = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts]
    return ".".join([*encoded, _chars(43)])


def _pem(kind: str) -> str:
    lines = "\n".join(_chars(64, _ALNUM + "+/") for _ in range(6))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


def samples() -> Iterator[tuple[str, str, str]]:
    """(what it is, a text, the value in it)."""
    hexes = string.hexdigits[:16]
    keys = {
        "AWS access key": "AKIA" + _chars(16, string.ascii_uppercase + "234567"),
        "AWS session key": "ASIA" + _chars(16, string.ascii_uppercase + "234567"),
        "GitHub token": _with_checksum("ghp_"),
        "GitHub app token": _with_checksum("ghs_"),
        "GitHub fine-grained token": f"github_pat_{_chars(22)}_{_chars(59)}",
        "GitLab token": "glpat-" + _chars(20),
        "Slack bot token": f"xoxb-{_chars(12, string.digits)}-{_chars(12, string.digits)}-{_chars(24)}",
        "Slack app token": f"xapp-1-A{_chars(10)}-{_chars(13, string.digits)}-{_chars(64, hexes)}",
        "Slack webhook": f"https://hooks.slack.com/services/T{_chars(8)}/B{_chars(8)}/{_chars(24)}",
        "Stripe live key": "sk_live_" + _chars(24),
        "Stripe restricted key": "rk_live_" + _chars(24),
        "Google API key": "AIza" + _chars(35),
        "Google OAuth secret": "GOCSPX-" + _chars(28),
        "OpenAI key": "sk-proj-" + _chars(48),
        "Anthropic key": "sk-ant-api03-" + _chars(80),
        "Hugging Face token": "hf_" + _chars(34, string.ascii_letters),
        "npm token": _with_checksum("npm_"),
        "PyPI token": "pypi-AgEIcHlwaS5vcmc" + _chars(80),
        "SendGrid key": f"SG.{_chars(22)}.{_chars(43)}",
        "DigitalOcean token": "dop_v1_" + _chars(64, hexes),
        "Shopify token": "shpat_" + _chars(32, hexes),
        "Databricks token": "dapi" + _chars(32, hexes),
        "Twilio key": "SK" + _chars(32, hexes),
        "Telegram bot token": f"{_chars(9, string.digits[1:])}:AA{_chars(33)}",
        "JWT": _jwt(),
        "card": "4111 1111 1111 1111",
        "card without spaces": "5500005555555559",
        "American Express card": "378282246310005",
        "card with hyphens": "6011-1111-1111-1117",
        "IBAN": "DE89 3704 0044 0532 0130 00",
        "IBAN without spaces": "GB82WEST12345698765432",
        "French IBAN": "FR14 2004 1010 0505 0001 3M02 606",
        "RSA key": _pem("RSA "),
        "OpenSSH key": _pem("OPENSSH "),
        "PKCS8 key": _pem(""),
    }
    for what, value in keys.items():
        for text in (value, f"The one for the deployment is {value}, keep it.", f'export VALUE="{value}"\n'):
            yield what, text, value
    yield from _named_samples(hexes)


def _named_samples(hexes: str) -> Iterator[tuple[str, str, str]]:
    """Secrets without a shape, by the words before them."""
    yield "password", 'password = "letmein"', "letmein"
    passwords = ("hunter2", "Tr0ub4dor&3", "correct-Horse9", "s3cr3t!", "Zx9$kLm2", "p@ssw0rd", "qwerty123", "19840211")
    phrases = (
        "password: {}",
        "password = {}",
        'DB_PASSWORD="{}"',
        "the wifi password is {}",
        "My password for the router is {}.",
        "login: admin, password: {}",
        '{{"user": "ada", "password": "{}"}}',
        "passwd={}",
        "root pwd: {}",
        "Das Passwort lautet {}",
        "Das Passwort für den Server ist {}",
        "la contraseña es {}",
        "le mot de passe est {}",
        "mysql --user root --password={}",
        "пароль: {}",
        "密码：{}",
        "postgres://app:{}@db.internal:5432/shop",
        "curl https://ada:{}@example.org/feed",
    )
    for at, phrase in enumerate(phrases):
        for password in (passwords[at % len(passwords)], passwords[(at + 3) % len(passwords)]):
            yield "password", phrase.format(password), password
    aws = _chars(40, _ALNUM + "/+")
    yield "AWS secret key", f"aws_secret_access_key = {aws}", aws
    for phrase in (
        "api_key = '{}'",
        "API key: {}",
        "my api key is {}",
        "client_secret: {}",
        "ACCESS_TOKEN={}",
        "Authorization: Bearer {}",
        '"token": "{}"',
        "secret = {}",
        "webhook secret: {}",
        "export SECRET_KEY={}",
    ):
        for value in (_chars(32, hexes), _chars(40), f"{_chars(8)}-{_chars(16)}_{_chars(8)}"):
            yield "key by its name", phrase.format(value), value
    basic = base64.b64encode(b"ada:hunter2xyz").decode()
    yield "basic authentication", f"Authorization: Basic {basic}", basic
    yield "PIN", "The PIN of my card is 4711", "4711"
    yield "PIN", "pin: 083211", "083211"
    yield "CVV", "CVV: 123", "123"
    yield "account number", "account number: 12345678", "12345678"
    yield "account number", "Kontonummer 532013000", "532013000"


def corpora(folder: Path) -> Iterator[tuple[str, str]]:
    """(set, text) of all labelled sets."""
    for corpus in sorted(folder.glob("*/corpus.jsonl.gz")):
        with gzip.open(corpus, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield corpus.parent.name, json.loads(line)["text"]


def _spans(text: str) -> list[tuple[int, int]]:
    return [(each.start, each.end) for each in find_secrets(text)]


def _detect_secrets() -> Callable[[str], list[tuple[int, int]]] | None:
    try:
        from detect_secrets import SecretsCollection  # type: ignore[import-not-found]
        from detect_secrets.settings import default_settings  # type: ignore[import-not-found]
    except ImportError:
        return None

    folder = tempfile.mkdtemp()  # it scans files, with more care than single lines
    file = Path(folder, "text.txt")
    atexit.register(shutil.rmtree, folder)

    def spans(text: str) -> list[tuple[int, int]]:
        file.write_text(text, "utf-8")
        with default_settings():
            secrets = SecretsCollection()
            secrets.scan_file(str(file))
        values = [secret.secret_value or "" for _, secret in secrets]
        starts = [(text.find(value), value) for value in values]
        return [(start, start + len(value)) for start, value in starts if start >= 0 and value]

    return spans


def recall(spans: Callable[[str], list[tuple[int, int]]]) -> tuple[int, int, list[str]]:
    """How many samples are found with their whole value, of how many, and what was missed."""
    listed, missed = list(samples()), []
    for what, text, value in listed:
        start = text.index(value)
        covered = {at for first, end in spans(text) for at in range(first, end)}
        secret = range(start, start + len(value))
        if what == "Slack webhook":  # its host is no secret
            secret = range(start + value.index("/T"), start + len(value))
        if len(covered.intersection(secret)) < 0.9 * len(secret):
            missed.append(f"{what}: {text.splitlines()[0]}")
    return len(listed) - len(missed), len(listed), missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/eval"))
    parser.add_argument("--false", action="store_true", help="print the texts with a finding")
    parser.add_argument("--detect-secrets", action="store_true", help="ask detect-secrets, too; it takes minutes")
    options = parser.parse_args()
    finders: dict[str, Callable[[str], list[tuple[int, int]]]] = {"nacre": _spans}
    other = _detect_secrets() if options.detect_secrets else None
    if other is not None:
        finders["detect-secrets"] = other
    texts = list(corpora(options.data))
    for name, spans in finders.items():
        right, of, missed = recall(spans)
        sys.stdout.write(f"{name}: {right} of {of} secrets found\n")
        sys.stdout.writelines(f"  missed {each}\n" for each in missed)
        flagged = [(where, text, found) for where, text in texts if (found := spans(text))]
        rate = 1000 * len(flagged) / max(1, len(texts))
        sys.stdout.write(f"  {len(flagged)} of {len(texts):,} texts without secrets flagged ({rate:.2f} in 1,000)\n")
        for where in sorted({where for where, _, _ in flagged}):
            own = sum(each == where for each, _, _ in flagged)
            sys.stdout.write(f"    {where}: {own} of {sum(each == where for each, _ in texts):,}\n")
        if options.false:
            for where, text, several in flagged:
                for start, end in several:
                    sys.stdout.write(f"  {where}: {text[max(0, start - 50) : start]!r} >>{text[start:end]!r}\n")
    short = [text for _, text in texts if len(text) < SHORT_CHARS]
    for name, timed in (("all texts", [text for _, text in texts]), (f"under {SHORT_CHARS} characters", short)):
        times = [_microseconds(run, timed) for run in (find_secrets, tokenise)]
        chars = sum(map(len, timed)) / max(1, len(timed))
        sys.stdout.write(
            f"{name} ({chars:.0f} on average): scan {times[0]:.1f} µs, tokenise {times[1]:.1f} µs a text\n"
        )


def _microseconds(run: Callable[[str], object], texts: list[str]) -> float:
    """Of processor time a text."""
    begun = time.process_time()
    for text in texts:
        run(text)
    return 1e6 * (time.process_time() - begun) / max(1, len(texts))


if __name__ == "__main__":
    main()
