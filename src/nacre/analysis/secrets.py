"""Finds keys, tokens, passwords, private keys, card and account numbers in a text, and takes them out.

Each kind has a shape that its issuer documents, and a checksum where there is one: a number of sixteen digits is a
card number only if it begins like one and its last digit is right. Passwords have no shape, so they are found by the
words before them, as in `password: …`. A text without any of the trigger words is not looked at further.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

PASSWORD = "password"  # noqa: S105  # the name of a kind
REDACTED = "[redacted: "
VALUE_CHARS_MIN = 6  # of a secret whose other occurrences are redacted, too; shorter ones occur by chance

_LONG_CHARS = 12  # of a word: all secrets that have a shape have more, and words of a language seldom do
_ACCOUNT_DIGITS = 10  # in all, of a text with a card or account number
_CODE_DIGITS = 3
_KEY_CHARS_MIN = 16
_KEY_BITS_MIN = 3.0  # of entropy a character: hexadecimal keys have 3.3 and more, words joined by hyphens have words
_PEM_CHARS_MIN = 40
_PEM_CHARS_MAX = 20_000
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Secret(NamedTuple):
    """A secret in a text: its kind, and its characters from `start` up to, not including, `end`."""

    kind: str
    start: int
    end: int


class _Shape(NamedTuple):
    """`triggers`: one of these is in every text that has such a secret. The group `value`, if any, is the secret."""

    kind: str
    triggers: tuple[str, ...]
    pattern: str
    check: Callable[[str], bool] | None = None


class _Named(NamedTuple):
    """A secret that is known by the words before it. `check` is given the value, and whether it is quoted."""

    kind: str
    pattern: str
    check: Callable[[str, bool], bool]


def find_secrets(text: str) -> list[Secret]:
    """The secrets in a text, in order, none overlapping another."""
    found: list[Secret] = []
    long = " ".join([word for word in text.split() if len(word) >= _LONG_CHARS])
    if long:  # in prose no word is
        shapes = {at for trigger, at in _BY_TRIGGER if trigger in long}
        found += [each for at in shapes for each in _matches(_SHAPES[at], text)]
    digits = sum(map(text.count, "0123456789"))
    if digits >= _ACCOUNT_DIGITS:
        found += _matches(_CARD, text)
        found += _ibans(text)
    if "PRIVATE KEY" in text:
        found += _private_keys(text)
    found += _named(text, text.lower(), has_long=_re(r"\d").search(long) is not None, has_digits=digits >= _CODE_DIGITS)
    if len(found) < 2:
        return found
    found.sort(key=lambda each: (each.start, -each.end))
    apart = found[:1]
    for each in found[1:]:
        if each.start >= apart[-1].end:
            apart.append(each)
    return apart


def find_value_secrets(name: str, value: str) -> list[Secret]:
    """The secrets in a value by the name that it has: a key of metadata, the predicate of a fact."""
    named = _re(_SECRET_NAME).fullmatch(name.strip().lower())
    if named is None:
        return []
    before = f'{named["what"]}: "'
    found = find_secrets(f'{before}{value}"')
    inside = [each for each in found if each.start >= len(before) and each.end <= len(before) + len(value)]
    return [Secret(each.kind, each.start - len(before), each.end - len(before)) for each in inside]


def replace_secrets(text: str, secrets: Sequence[Secret]) -> str:
    """The text with these secrets, which are in order, replaced by their kinds."""
    parts: list[str] = []
    at = 0
    for each in secrets:
        parts += text[at : each.start], placeholder(each.kind)
        at = each.end
    return "".join((*parts, text[at:])) if parts else text


def placeholder(kind: str) -> str:
    return f"{REDACTED}{kind}]"


def names_secret(name: str) -> bool:
    """Whether a name, such as a key of metadata or the predicate of a fact, says that its value is secret."""
    return _re(_SECRET_NAME).fullmatch(name.strip().lower()) is not None


def names_password(name: str) -> bool:
    """Whether a name says that its value is a password, which may have any shape."""
    named = _re(_SECRET_NAME).fullmatch(name.strip().lower())
    return named is not None and _re(_PASSWORDS).fullmatch(named["what"]) is not None


# ---------------------------------------------------------------- checks


def _entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _is_random(value: str) -> bool:
    """Whether a long string is a key rather than words, a path or a number."""
    body = value.rstrip("=")
    mixed = any(map(str.isdigit, body)) and any(map(str.isalpha, body))
    if not mixed or len(body) < _KEY_CHARS_MIN or _entropy(body) < _KEY_BITS_MIN or _is_placeholder(value):
        return False
    parts = _re(r"[-_./+=]").split(body)
    return not all(part.isalpha() or (part.isdigit() and len(part) <= 4) or not part for part in parts)


def _varied(value: str) -> bool:
    """Whether what follows a prefix that only keys have is no placeholder such as xxxx."""
    return _entropy(value) > 2.5 and not _is_placeholder(value)


def _github(value: str) -> bool:
    """The last six characters of a classic token are the checksum of the others."""
    body, checksum = value[4:-6], value[-6:]
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits == checksum


def _jwt(value: str) -> bool:
    """The first part is a JSON object that names an algorithm."""
    head = value.split(".")[0]
    try:
        return "alg" in json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, TypeError):
        return False


def _basic(value: str) -> bool:
    """Of HTTP authentication: the name and the password, encoded."""
    try:
        plain = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return False
    return ":" in plain and plain.isprintable()


# By the digits that a card number begins with: how many digits it has.
_CARDS = (
    (r"4", (13, 16, 19)),
    (r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720", (16,)),
    (r"3[47]", (15,)),
    (r"6011|64[4-9]|65", (16, 19)),
    (r"30[0-5]|309|36|3[89]", (14, 16)),
    (r"352[89]|35[3-8]", (16,)),
    (r"62", (16, 17, 18, 19)),
)


def _card(value: str) -> bool:
    digits = [int(each) for each in value if each.isdigit()]
    plain = "".join(map(str, digits))
    if len(set(plain)) < 2 or not any(len(plain) in sizes and _re(start).match(plain) for start, sizes in _CARDS):
        return False
    doubled = [sum(divmod(2 * each, 10)) for each in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_IBAN_CHARS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
    "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SD": 18,
    "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22,
    "VG": 24, "XK": 20,
}  # fmt: skip


def _iban_chars(value: str) -> int:
    """How many characters of this text an IBAN takes that it begins with; 0 if it begins with none."""
    wanted, at = _IBAN_CHARS.get(value[:2], 0), 0
    plain = ""
    while at < len(value) and len(plain) < wanted:
        plain += value[at] if value[at] != " " else ""
        at += 1
    if not wanted or len(plain) < wanted or value[at : at + 1].isalnum() or not (plain.isascii() and plain.isalnum()):
        return 0
    number = int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4]))
    return at if number % 97 == 1 else 0


# ---------------------------------------------------------------- by their shape

_SHAPES = (
    _Shape("AWS access key", ("AKIA", "ASIA"), r"\bA[KS]IA[A-Z2-7]{16}\b", _varied),
    _Shape("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{36}\b", _github),
    _Shape("GitHub token", ("ghs_",), r"\bghs_[A-Za-z0-9._-]{60,}", _varied),
    _Shape("GitHub token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b", _varied),
    _Shape("GitLab token", ("glpat-", "glptt-", "gldt-", "glrt-"), r"\bgl(?:pat|ptt|dt|rt)-[\w-]{20,}", _varied),
    _Shape("Slack token", ("xox", "xapp-"), r"\bx(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}", _varied),
    _Shape("Slack webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/services/(?P<value>T\w+/B\w+/\w{12,})"),
    _Shape("Stripe key", ("k_live_", "k_test_"), r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}", _varied),
    _Shape("Stripe webhook secret", ("whsec_",), r"\bwhsec_[A-Za-z0-9+/=]{24,}", _varied),
    _Shape("Google API key", ("AIza",), r"\bAIza[\w-]{35}(?![\w-])", _varied),
    _Shape("Google OAuth secret", ("GOCSPX-",), r"\bGOCSPX-[\w-]{28}(?![\w-])", _varied),
    _Shape("Google OAuth token", ("ya29.",), r"\bya29\.[\w-]{20,}", _varied),
    _Shape("Anthropic API key", ("sk-ant-",), r"\bsk-ant-[\w-]{20,}", _varied),
    _Shape("OpenAI API key", ("sk-",), r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-)?(?=[\w-]*\d)[\w-]{32,}", _varied),
    _Shape("Hugging Face token", ("hf_",), r"\bhf_[A-Za-z]{30,}\b", _varied),
    _Shape("npm token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}\b", _github),
    _Shape("PyPI token", ("pypi-",), r"\bpypi-[\w-]{50,}", _varied),
    _Shape("SendGrid key", ("SG.",), r"\bSG\.[\w-]{22}\.[\w-]{43}(?![\w-])", _varied),
    _Shape("DigitalOcean token", ("_v1_",), r"\bdo[opr]_v1_[0-9a-f]{64}\b", _varied),
    _Shape("Shopify token", ("shp",), r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b", _varied),
    _Shape("Databricks token", ("dapi",), r"\bdapi[0-9a-f]{32}\b", _varied),
    _Shape("Twilio key", ("SK",), r"\bSK[0-9a-f]{32}\b", _varied),
    _Shape("Telegram bot token", (":AA",), r"(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])", _varied),
    _Shape("Discord webhook", ("/webhooks/",), r"discord(?:app)?\.com/api/webhooks/\d+/(?P<value>[\w-]{40,})"),
    _Shape("Azure storage key", ("AccountKey=",), r"AccountKey=(?P<value>[A-Za-z0-9+/]{86}==)"),
    _Shape("age secret key", ("AGE-SECRET-KEY-1",), r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
    _Shape("Nacre token", ("nacre_",), r"\bnacre_[0-9a-z]{16}_[\w-]{43}(?![\w-])", _varied),
    _Shape("JWT", ("eyJ",), r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}", _jwt),
    _Shape(
        "password in a URL",
        ("://",),
        r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\"<>]*:(?P<value>[^\s/@'\"<>]{3,})@[\w.\[-]",
        lambda value: not _is_placeholder(value),
    ),
)
_BY_TRIGGER = tuple((trigger, at) for at, shape in enumerate(_SHAPES) for trigger in shape.triggers)
_CARD = _Shape(
    "card number",
    (),
    r"(?<![\w.,+:/-])(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -]?)\d{6}\2\d{4,5})(?![\w-])",
    _card,
)
_IBAN_START = r"(?<![\w-])[A-Z]{2}\d{2} ?[A-Z0-9]{4} ?[A-Z0-9]"


def _matches(shape: _Shape, text: str) -> Iterator[Secret]:
    pattern = _re(shape.pattern)
    group: str | int = "value" if "value" in pattern.groupindex else 0
    for found in pattern.finditer(text):
        if shape.check is None or shape.check(found[group]):
            yield Secret(shape.kind, *found.span(group))


def _ibans(text: str) -> Iterator[Secret]:
    for found in _re(_IBAN_START).finditer(text):
        start = found.start()
        if size := _iban_chars(text[start : start + 48]):
            yield Secret("IBAN", start, start + size)


def _private_keys(text: str) -> Iterator[Secret]:
    """Blocks from the first line to the last, or as far as the key goes where the last line is missing."""
    at = 0
    while found := _re(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----").search(text, at):
        closing = _re(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----").search(text, found.end())
        end = closing.end() if closing is not None and closing.end() - found.end() < _PEM_CHARS_MAX else None
        if end is None:
            body = _re(r"[A-Za-z0-9+/=\s\\:,.-]*").match(text, found.end())
            end = found.end() if body is None else body.end()
        if end - found.end() >= _PEM_CHARS_MIN:
            yield Secret("private key", found.start(), end)
        at = end


# ---------------------------------------------------------------- by the words before them

_PASSWORDS = (
    r"pass(?:word|wd|phrase|code)|passwort|kennwort|pwd|contraseña|mot de passe|senha|wachtwoord|пароль|密码|密碼|"
    r"パスワード|비밀번호"
)
_KEYS = (
    r"(?:api|access|secret|auth|account|master|signing|encryption|private|service|admin|storage|app)"
    r"[ _-]?(?:access[ _-]?)?keys?(?:[ _-]?id)?|(?:client|app|webhook|shared|signing|consumer|jwt)[ _-]?secret|"
    r"(?:api|auth|access|refresh|bearer|session|bot|id|personal[ _-]access|deploy|csrf)[ _-]?tokens?|"
    r"tokens?|secrets?|credentials?"
)
_CODES = r"pin(?:[ -]?code|[ -]?number)?|cvv2?|cvc2?"
_ACCOUNTS = (
    r"(?:bank[ -])?acc(?:oun)?t(?:[ _-](?:number|no\.?|nr\.?|#))|kontonummer|kontonr\.?|numéro de compte|"
    r"número de cuenta"
)
_SECRET_NAME = (
    rf"(?:.*[\W_])?(?P<what>{_PASSWORDS}|{_KEYS}|{_CODES}|{_ACCOUNTS}|card number|iban)s?"
    r"(?:[ _-]?(?:\d{1,2}|prod|production|dev|test|staging|live))?(?: (?:is|was|ist|lautet|es|est))?"
)
_PASSWORD_TRIGGERS = ("passw", "passp", "passc", "de passe", "pwd", "kennwort", "contrase", "senha", "wachtwoord")
_PASSWORD_TRIGGERS_BEYOND_ASCII = ("пароль", "密码", "密碼", "パスワード", "비밀번호")
_KEY_TRIGGERS = ("key", "secret", "token", "credential", "bearer", "basic")  # before a long word
_CODE_TRIGGERS = ("pin", "cvv", "cvc", "account", "acct", "konto", "cuenta", "compte")  # before digits
_SUFFIX = r"s?(?:[_-]?(?:\d{1,2}|prod|production|dev|test|staging|live|root|admin|db|old|new))?"
_WHOSE = r"(?: (?:for|of|to|on|at|für|von|vom|zum|de|del|du|pour|para|do|da) [^\n:=,;!?]{1,40}?)?"
_JOIN = (
    r"(?:[\"'`\])]*\s{0,3}(?::=|=>|==?|:|：|は|是)|"
    r"(?<=[a-zñé\d])\s(?:is|was|are|ist|lautet|war|es|est|é|is now|has been changed to)(?= ))"
)
_QUOTED = r"\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|`[^`\n]{1,200}`|“[^”\n]{1,200}”|„[^“\n]{1,200}“"


def _named_pattern(names: str, value: str) -> str:
    return (
        rf"(?i:(?<![a-z])(?:{names}){_SUFFIX}(?![a-z]){_WHOSE}{_JOIN})\s{{0,3}}(?:[furbFURB](?=[\"']))?"
        rf"(?P<value>{_QUOTED}|{value})"
    )


def _named(text: str, lower: str, *, has_long: bool, has_digits: bool) -> Iterator[Secret]:
    patterns: list[_Named] = []
    if any(word in lower for word in _PASSWORD_TRIGGERS) or (
        not text.isascii() and any(word in lower for word in _PASSWORD_TRIGGERS_BEYOND_ASCII)
    ):
        patterns.append(_PASSWORD)
    if has_long and any(word in lower for word in _KEY_TRIGGERS):
        patterns += _LONG_NAMED
    if has_digits and any(word in lower for word in _CODE_TRIGGERS):
        patterns += _CODES_NAMED
    for kind, pattern, check in patterns:
        for found in _re(pattern).finditer(text):
            value, start = found["value"], found.start("value")
            quoted = len(value) > 1 and value[0] in "\"'`“„" and value[-1] in "\"'`”“"
            if quoted:
                value, start = value[1:-1], start + 1
            else:
                value = value.rstrip(".,;:)]}\"'`")
            if value and check(value, quoted):
                yield Secret(kind, start, start + len(value))


_PLACEHOLDERS = frozenset(
    (
        "password", "passwd", "pwd", "passphrase", "secret", "token", "key", "apikey", "none", "null", "nil",
        "undefined", "true", "false", "string", "str", "text", "bytes", "int", "bool", "required", "optional", "empty",
        "blank", "hidden", "changeme", "change_me", "redacted", "unknown", "default", "value", "placeholder", "foobar",
        "username", "user", "root", "admin", "test", "testing", "todo",
    )
)  # fmt: skip


def _is_placeholder(value: str) -> bool:
    """Whether a value stands for another: a variable, a call, a mask, or a word that says what belongs there."""
    lower = value.lower()
    if lower in _PLACEHOLDERS or REDACTED.strip() in lower or len(set(value)) < 3:
        return True
    marks = (
        "${",
        "{{",
        "}}",
        "%(",
        "%s",
        "{}",
        "***",
        "xxxx",
        "....",
        "••",
        "…",
        "<",
        "your_",
        "your-",
        "my_",
        "example",
    )
    return any(mark in lower for mark in marks) or lower.startswith(("$", "{", "%", "env.", "env:", "os.environ"))


def _is_password(value: str, quoted: bool) -> bool:
    """A password has digits or signs among its letters; a word alone is one only as a quoted string."""
    if len(value) < 4 or _is_placeholder(value) or any(map(str.isspace, value)):
        return False
    if not quoted and _re(r"[\w.\[\]]*[(\[].*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\\\w").match(value) is not None:
        return False  # code: a call, an item, an attribute
    letters, digits = sum(map(str.isalpha, value)), sum(map(str.isdigit, value))
    signs = len(value) - letters - digits
    if digits:
        return letters + signs > 0 or digits >= 4
    if quoted and signs == 0 and len(value) >= VALUE_CHARS_MIN:
        return True
    return signs > 0 and letters > 0 and _re(r"[a-z]+(?:[-_/'.’:][a-z]+)*", re.IGNORECASE).fullmatch(value) is None


def _is_key_value(value: str, _quoted: bool) -> bool:
    return _re(r"[A-Za-z0-9+/=_.~:-]+").fullmatch(value) is not None and _is_random(value)


_PASSWORD = _Named(PASSWORD, _named_pattern(_PASSWORDS, r"[^\s\"'`<>,;]{4,200}"), _is_password)
_LONG_NAMED = (
    _Named("secret key", _named_pattern(_KEYS, r"[A-Za-z0-9+/=_.~:-]{16,400}"), _is_key_value),
    _Named("bearer token", r"(?i:\bbearer\s+)(?P<value>[A-Za-z0-9._~+/-]{20,}=*)", lambda value, _: _is_random(value)),
    _Named(PASSWORD, r"(?i:\bbasic\s+)(?P<value>[A-Za-z0-9+/]{12,}={0,2})", lambda value, _: _basic(value)),
)
_CODES_NAMED = (
    _Named(
        "PIN",
        rf"(?i:(?<![a-z])(?:{_CODES})(?![a-z]){_WHOSE}{_JOIN})\s{{0,3}}(?P<value>\d{{3,8}})(?![\w.-])",
        lambda *_: True,
    ),
    _Named(
        "account number",
        rf"(?i:(?<![a-z])(?:{_ACCOUNTS})(?:{_JOIN})?)\s{{0,3}}(?P<value>\d[\d -]{{4,18}}\d)(?![\w.-])",
        lambda *_: True,
    ),
)


@cache
def _re(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compiled when first needed: most texts need few of them."""
    return re.compile(pattern, flags)
