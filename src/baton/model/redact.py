"""Redaction: secrets and, on request, personal data in recordings are replaced by tags.

The same text gets the same tag everywhere (``[key:9c1b]``), so that texts can still be compared.
Precise rather than complete: known forms of keys, and values under the names of secrets; hashes,
ids, placeholders and ordinary words stay. All patterns are bounded, so that the time is linear in
the length of the text.

Most traces contain no secret. One search of their encoded form, by a linear-time engine, shows this
without visiting single texts.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from .case import Case, Location
from .errors import InputError, Problem, suggestion
from .mask_known_secrets import knows_secrets, mask
from .trace import Source, Trace

if TYPE_CHECKING:
    import re2

T = TypeVar("T")
_NAMES_OF_CASES: dict[type, tuple[str, ...]] = {Trace: ("case",), Case: ("id", "evaluators")}
"""Fields that are not redacted: a case's name, which identifies its results, and options that are
not texts.
"""
_ENCODE = msgspec.msgpack.Encoder().encode

SECRETS = ("api_keys", "private_keys", "tokens", "cookies", "passwords")
PERSONAL = ("email", "phone", "card", "iban")
KINDS = (*SECRETS, *PERSONAL)
TAG_KEY = "BATON_REDACT_KEY"
"""An environment variable. If it is set, it is the key of the tags' hashes, so that others cannot
test guesses of a short password against a tag.
"""
_MOST_PATTERNS, _LONGEST_PATTERN, _PATTERN_MEMORY = 50, 1000, 2 << 20
"""The most custom patterns, characters of one, and bytes for matching one: hand-written
ones are smaller, and an untrusted folder, which states its redaction, must not fill the memory.
"""
_SPREADS = 8
"""The least length of a secret, found by its name, that is also searched in all other texts of its
trace. Shorter ones (`{"password": "1234"}`) are replaced only in place: `1234` elsewhere is likely
something else.
"""
_MOST_SPREAD = 200
"""The most secrets of one trace that are searched in all its other texts: every text is compared
with each of them, and a trace that consists of keys must not take forever.
"""

# A key starts at a word boundary, also after an escape: `\nghp_...` in JSON, `%20ghp_...` in a URL.
_START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u00[0-9a-fA-F]{2}))"
_VENDORS = (
    # OpenAI, Anthropic, OpenRouter, DeepSeek: a run of 16 letters and digits distinguishes keys
    # from words such as `sk-learn-compatible-estimators`.
    (r"sk-", (r"(?=(?:[A-Za-z0-9]{1,12}[-_]){0,4}[A-Za-z0-9]{16})(?=[A-Za-z0-9_-]{0,200}[0-9A-Z])"
              r"[A-Za-z0-9_-]{16,512}")),
    (r"[sp]k-lf-", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),  # Langfuse
    (r"lsv2_(?:pt|sk)_", r"[a-f0-9]{32}_[a-f0-9]{10}"),  # LangSmith
    (r"(?:sk|rk|pk)_(?:live|test)_", r"[A-Za-z0-9]{16,128}"),  # Stripe
    (r"whsec_", r"[A-Za-z0-9+/=]{24,128}"),
    (r"gh[pousr]_", r"[A-Za-z0-9]{36,255}"),  # GitHub
    (r"github_pat_", r"[A-Za-z0-9_]{22,255}"),
    (r"gl(?:pat|dt|rt|ptt|soat|ft|imt|cbt|agent|oas)-", r"[A-Za-z0-9_-]{20,64}"),  # GitLab
    (r"xox[abceoprs]-", r"(?:[A-Za-z0-9]{1,8}-)?[A-Za-z0-9-]{10,255}"),  # Slack
    (r"xapp-", r"[0-9]-[A-Z0-9]{8,16}-[0-9]{8,16}-[a-f0-9]{32,80}"),
    (r"(?:AKIA|ASIA)", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),  # AWS
    (r"AIza", r"[A-Za-z0-9_-]{35}"),  # Google
    (r"ya29\.", r"[A-Za-z0-9_-]{20,512}"),
    (r"GOCSPX-", r"[A-Za-z0-9_-]{20,64}"),
    (r"hf_", r"[A-Za-z0-9]{30,64}"),  # Hugging Face
    (r"gsk_", r"[A-Za-z0-9]{40,64}"),  # Groq
    (r"xai-", r"[A-Za-z0-9]{40,128}"),
    (r"pplx-", r"[A-Za-z0-9]{40,64}"),
    (r"nvapi-", r"[A-Za-z0-9_-]{40,128}"),
    (r"r8_", r"[A-Za-z0-9]{30,50}"),  # Replicate
    (r"tvly-", r"(?:dev-|prod-)?[A-Za-z0-9]{20,64}"),  # Tavily
    (r"npm_", r"[A-Za-z0-9]{36}"),
    (r"pypi-", r"[A-Za-z0-9_-]{50,512}"),
    (r"rubygems_", r"[a-f0-9]{48}"),
    (r"dckr_(?:pat|oat)_", r"[A-Za-z0-9_-]{20,64}"),  # Docker
    (r"SG\.", r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),  # SendGrid
    (r"xkeysib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),  # Brevo
    (r"do[opr]_v1_", r"[a-f0-9]{64}"),  # DigitalOcean
    (r"shp(?:at|ca|pa|ss)_", r"[a-fA-F0-9]{32}"),  # Shopify
    (r"sq0(?:atp|csp)-", r"[A-Za-z0-9_-]{22,50}"),  # Square
    (r"lin_api_", r"[A-Za-z0-9]{32,64}"),  # Linear
    (r"ntn_", r"[A-Za-z0-9]{40,64}"),  # Notion
    (r"fig[dou]_", r"[A-Za-z0-9_-]{30,128}"),  # Figma
    (r"dapi", r"[a-f0-9]{32}(?![A-Za-z0-9])"),  # Databricks
    (r"hv[sbr]\.", r"[A-Za-z0-9_-]{24,300}"),  # Vault
    (r"dt0[a-z][0-9]{2}\.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),  # Dynatrace
    (r"gl(?:c|sa)_", r"[A-Za-z0-9_+/=]{32,400}"),  # Grafana
    (r"NRAK-", r"[A-Z0-9]{27}"),  # New Relic
    (r"sntry[su]_", r"[A-Za-z0-9_+/=]{40,400}"),  # Sentry
    (r"sbp_", r"[a-f0-9]{40}"),  # Supabase
    (r"pul-", r"[a-f0-9]{40}"),  # Pulumi
    (r"PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),  # Postman
    (r"ATATT3", r"[A-Za-z0-9_=-]{60,400}"),  # Atlassian
    (r"pscale_(?:tkn|pw)_", r"[A-Za-z0-9_=.-]{32,64}"),  # PlanetScale
    (r"dp\.(?:pt|st|ct)\.", r"[A-Za-z0-9._-]{40,60}"),  # Doppler
    (r"HRKU-", r"[A-Za-z0-9_-]{36,64}"),  # Heroku
    (r"AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
)  # fmt: skip
"""The start of each known vendor's keys, and the rest."""
_KEY = (
    _START + "(?:" + "|".join(stem + body for stem, body in _VENDORS) + ")"
    # Keys of Telegram's and Discord's bots, and addresses of Slack's hooks, have no fixed start.
    r"|(?<![A-Za-z0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"
    r"|(?<![A-Za-z0-9])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"
    r"|(?<=hooks\.slack\.com/services/)T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{16,40}"
)
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*"
    r"(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)
_JWT = _START + r"eyJ[A-Za-z0-9_-]{10,2048}\.eyJ[A-Za-z0-9_-]{10,4096}\.[A-Za-z0-9_-]{10,1024}"
_BEARER = (
    r"(?i)\b(?:bearer|basic)[ \t]{1,3}(?=[A-Za-z0-9._~+/=-]{0,200}[0-9=])"
    r"(?P<secret>[A-Za-z0-9._~+/=-]{16,4096})"
)
_AUTHORIZATION = (
    r"(?i)\bauthorization(?:\\{0,2}[\"'])?[ \t]{0,3}[:=][ \t]{0,3}(?:\\{0,2}[\"'])?"
    r"(?:[A-Za-z-]{2,20}[ \t]{1,3})?(?=[A-Za-z0-9._~+/=:-]{0,200}[0-9])"
    r"(?P<secret>[A-Za-z0-9._~+/=:-]{8,4096})"
)
_SIGNED = (
    r"(?i)[?&;](?:key|sig|signature|x-amz-signature|x-goog-signature)="
    r"(?=[^&\s\"'<>\\]{0,200}[0-9])(?P<secret>[A-Za-z0-9%+/=_-]{16,1024})"
)
_COOKIE = (
    r"(?i)\b(?:set-)?cookie(?:\\{0,2}[\"'])?[ \t]{0,3}[:=][ \t]{0,3}(?:\\{0,2}[\"'])?"
    r"(?P<secret>[A-Za-z0-9_.-]{1,64}=[^\s\"'\\;,]{8,4096}"
    r"(?:;[ ]?[A-Za-z0-9_.-]{1,64}(?:=[^\s\"'\\;]{0,4096})?){0,50})"
)
_IN_URL = r"://[^\s:/@\"']{0,200}:(?P<secret>[^\s/@\"']{1,300})@"
_NAMED = (
    r"(?i)(?:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|access[_-]?key|account[_-]?key"
    r"|private[_-]?key|token|passwd|password|passphrase|pwd)"
    r"(?P<sep>\\{0,2}[\"']?[ \t]{0,3}(?:=|:(?!:))[ \t]{0,3})"
    r"(?P<open>\\{0,2}[\"'])?(?P<secret>[^\s\"'`,;&\\(){}\[\]<>|]{4,512})"
)
_SECRET_NAME = (
    r"(?i)(?:^|[_.-]|(?<=[a-z])(?=[A-Z]))(?:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?"
    r"|access[_-]?key|account[_-]?key|private[_-]?key|token|passwd|password|passphrase|pwd"
    r"|authorization|(?:set-)?cookie)$"
)
_PAGING = r"(?i)(?:page|next|continuation|sync|cursor|max|num)[_-]?token$"
_EMPTY = (
    r"(?i)(?:none|null|nil|true|false|undefined|string|str|bytes|secret|password|token|required|optional"
    r"|example|redacted|changeme|x{3,}|\.{3,}|[*#_-]{3,}|your[-_].{0,60})\Z"
)
_PLACEHOLDER = (
    r"(?i)x{6,}|\*{3,}|\.{3,}|0{8,}|1{8,}|a{8,}|placeholder|redacted|changeme"
    r"|(?<![A-Za-z0-9])(?:your|insert|dummy)(?![A-Za-z0-9])"
)
"""Parts that no real key contains: `sk-xxxxxxxxxxxxxxxx1234`,
`sk-your-key-here-0123456789abcdef`.
"""
_TAG = re.compile(r"\[[a-z_][a-z0-9_]*:[0-9a-f]{4}\]")
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]{0,60}\Z")
_EMAIL = (
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"
)
_PHONE = (
    r"(?<![\w+.-])(?:\+[1-9][0-9]{0,2}(?:[ .-]?\(?[0-9]{1,5}\)?){2,6}"
    r"|\([0-9]{3}\) ?[0-9]{3}[ -][0-9]{4}|[0-9]{3}[-.][0-9]{3}[-.][0-9]{4})(?![\w-])"
)
_CARD = r"(?<![\w.-])[3-6](?:[ -]?[0-9]){12,18}(?![\w-])"
_IBAN = r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"
_LOOKS = {
    "api_keys": "(?:" + "|".join(stem for stem, _ in _VENDORS) + r")[A-Za-z0-9_+/=.-]{8}"
    r"|[0-9]:AA[A-Za-z0-9_-]{33}|\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}"
    r"|hooks\.slack\.com/services/T",
    "private_keys": r"PRIVATE KEY",
    "tokens": r"eyJ[A-Za-z0-9_-]{10}|(?i:bearer|basic)[ \t]{1,3}[A-Za-z0-9._~+/=-]{16}"
    r"|(?i:authorization|[?&;](?:key|sig|signature|x-amz-signature|x-goog-signature)=)",
    "cookies": r"(?i:cookie)",
    # Up to the `@`: each live recording has an address with a port, such as `http://localhost:8000`.
    "passwords": r"://[^\s:/@\"']{0,64}:[^\s/@\"']+@|://[^\s:/@\"']{64}"
    r"|(?i:api[_-]?key|secret|(?:access|account|private)[_-]?key|token(?:[^s]|$)|passw|passphrase|pwd)",
    "email": r"@[A-Za-z0-9-]+\.",
    "phone": r"[+(][0-9]|[0-9]{3}[-.][0-9]{3}[-.][0-9]",
    "card": r"[3-6](?:[ -]?[0-9]){12}",
    "iban": r"[A-Z]{2}[0-9]{2} ?[A-Z0-9]{4}",
}  # fmt: skip
"""A necessary condition for each kind, in the syntax of the linear-time engine; other texts may
match as well. Every secret that the patterns above find has to match one of these. None starts with
a repeated class such as `[a-z]{15}`: the engine would count along every word of every text, with
many more states.
"""


class Redaction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data to redact: kinds of secrets and of personal data, and patterns by name.

    Only personal data and custom patterns show their kind in the tag, so that a key has the same
    tag whether it was found by its form or by its name.
    """

    kinds: tuple[str, ...] = SECRETS
    patterns: tuple[tuple[str, str], ...] = ()

    @property
    def is_on(self) -> bool:
        """Whether anything is redacted."""
        return bool(self.kinds or self.patterns)

    @property
    def as_config(self) -> str | dict[str, Any]:
        """Plain data for storing, which :func:`redaction_of` reads again."""
        if self == ON or not self.is_on:
            return "on" if self.is_on else "off"
        return {"kinds": list(self.kinds), "patterns": dict(self.patterns)}

    def text(self, text: str) -> str:
        """Return a redacted text."""
        return self.value(text)

    def value(self, value: T) -> T:
        """Return JSON-like data or a record with tags; the same object when nothing changes."""
        redacted: T = self.together(value)[0]
        return redacted

    def trace(self, trace: Trace) -> Trace:
        """Return a trace with tags in all its fields; the same object when nothing changes."""
        return self.value(trace)

    def trace_and_case(self, trace: Trace, case: Case | None) -> tuple[Trace, Case | None]:
        """Redact a trace and its case in the same way, so that they can still be compared."""
        if case is None:
            return self.trace(trace), None
        redacted, its_case = self.together(trace, case)
        return redacted, its_case

    def together(self, *values: Any) -> tuple[Any, ...]:
        """Redact several values together; a secret found in one is redacted in all.

        The first value decides: if it cannot contain a secret, nothing is changed.
        """
        if not self._may_change(values[0]):
            return values
        finder = _finder(self)
        tags: dict[str, str] = {}
        for value in values:
            for text in _texts(value, finder, tags):
                finder.collect(text, tags)
        replaced = _Replacer(finder, dict(list(tags.items())[:_MOST_SPREAD]))
        done = tuple(replaced(value) for value in values)
        return done if replaced.changed else values

    def _may_change(self, value: Any) -> bool:
        if not self.is_on and not knows_secrets():
            return False
        try:
            data = value.encode() if isinstance(value, str) else _ENCODE(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return True  # a program's own data, which has to be walked
        if knows_secrets():
            text = data.decode("utf-8", "replace")
            if mask(text) != text:
                return True
        return self.may_hold(data)

    def may_hold(self, data: bytes) -> bool:
        """Tell whether encoded texts may contain something to redact; "no" is certain."""
        return self.is_on and _finder(self).may_hold(data)


ON = Redaction()
OFF = Redaction(kinds=())
RedactLike = Redaction | bool | str | Sequence[str] | Mapping[str, Any] | None


class _Spec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    kinds: list[str] | None = None
    patterns: dict[str, str] = {}


def redaction_of(value: RedactLike, path: str = "redact") -> Redaction:
    """Read the redaction from a config, an option or a function's argument.

    Args:
        value: ``True`` or ``"on"`` (secrets), ``False`` or ``"off"``; kinds to redact beside
            the secrets; or a mapping with ``kinds`` and ``patterns`` (name to regular expression).
        path: the path that problems name.

    Raises:
        InputError: unknown kinds, or patterns that are not valid.
    """
    if isinstance(value, Redaction):
        return value
    if value is None or value is True or value == "on":
        return ON
    if value is False or value == "off":
        return OFF
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Mapping):
        return Redaction(kinds=_kinds(list(value), path))
    unknown = [name for name in value if name not in ("kinds", "patterns")]
    if unknown:
        message = f"unknown key `{unknown[0]}`: `kinds` and `patterns` are known"
        raise InputError(Problem(path=path, message=message))
    try:
        spec = msgspec.convert(dict(value), _Spec)
    except msgspec.ValidationError as error:
        raise InputError(Problem(path=path, message=str(error))) from None
    made = Redaction(
        kinds=_kinds(spec.kinds or [], f"{path}.kinds"), patterns=tuple(spec.patterns.items())
    )
    _check_patterns(made.patterns, path)
    return made


def _kinds(names: list[Any], path: str) -> tuple[str, ...]:
    """Return the secrets and the other named kinds, in a fixed order."""
    return kinds_named([*SECRETS, *names], path)


def kinds_named(names: Sequence[Any], path: str) -> tuple[str, ...]:
    """Return the named kinds, also by `secrets`, `personal` or `all`, in a fixed order.

    Raises:
        InputError: there is no such kind; suggests a similar name.
    """
    groups = {"secrets": SECRETS, "personal": PERSONAL, "all": KINDS}
    wanted: set[str] = set()
    for name in names:
        if name not in KINDS and name not in groups:
            hint = suggestion(str(name), [*KINDS, *groups])
            raise InputError(Problem(path=path, message=f"there is no kind `{name}`; {hint}"))
        wanted |= set(groups.get(name, (name,)))
    return tuple(kind for kind in KINDS if kind in wanted)


def _check_patterns(patterns: Sequence[tuple[str, str]], path: str) -> None:
    import re2

    if len(patterns) > _MOST_PATTERNS:
        message = f"has {len(patterns)} patterns; at most {_MOST_PATTERNS} are allowed"
        raise InputError(Problem(path=f"{path}.patterns", message=message))
    for name, pattern in patterns:
        at = f"{path}.patterns.{name}"
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,30}", name):
            message = (
                "the name of a pattern has up to 31 characters: lower-case letters, digits and `_`"
            )
            raise InputError(Problem(path=at, message=message))
        if len(pattern) > _LONGEST_PATTERN:
            message = f"is longer than {_LONGEST_PATTERN} characters"
            raise InputError(Problem(path=at, message=message))
        try:
            matches_nothing = _own(pattern).search(b"") is not None
        except re2.error as error:
            words = error.args[0] if error.args else error
            shown = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
            message = f"is not a valid pattern (RE2, without look-around): {shown}"
            raise InputError(Problem(path=at, message=message)) from None
        if matches_nothing:
            raise InputError(
                Problem(path=at, message="matches an empty text: require at least one character")
            )


def tag(kind: str, secret: str) -> str:
    """Return the tag of a secret: its kind and 16 bits of its hash.

    So few bits distinguish the secrets of an evaluation, but do not identify them: an attacker can
    rule out all but 1 in 65,536 guesses at a key, which does not help with 2^128 candidates. It
    does help with short passwords and personal data: ``BATON_REDACT_KEY`` makes the hash a keyed
    one.
    """
    data = secret.encode("utf-8", "surrogatepass")
    key = os.environ.get(TAG_KEY, "")
    if key:
        keyed = blake2b(data, key=sha256(key.encode()).digest(), digest_size=2)
        return f"[{kind}:{keyed.hexdigest()}]"
    return f"[{kind}:{sha256(data).hexdigest()[:4]}]"


def redaction_in(value: Any) -> Redaction | None:
    """Return the redaction that left tags in a value; ``None`` if it has no tag.

    ``baton convert`` writes cases with tags. What they expect equals what a recording holds only if
    that is redacted in the same way, whatever is redacted besides.
    """
    text = msgspec.json.encode(value).decode()
    kinds = {tag[1:-6] for tag in _TAG.findall(text)}
    secrets = SECRETS if "key" in kinds else ()
    named = (*secrets, *(kind for kind in PERSONAL if kind in kinds))
    return Redaction(kinds=named) if named else None


def is_redacted(text: str) -> bool:
    """Tell whether a text contains a tag."""
    return _TAG.search(text) is not None


class _Found(msgspec.Struct, frozen=True):
    start: int
    end: int
    kind: str


class _Finder:
    """Finds what to redact, in one text at a time."""

    def __init__(self, redaction: Redaction) -> None:
        import re2  # takes 6 ms, and only commands that read recordings need it

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.never_capture = True
        looks = "|".join(f"(?:{_LOOKS[kind]})" for kind in redaction.kinds) or r"[^\x00-\xff]"
        self._looks = re2.compile(looks.encode(), options)
        self._own = [(name, _own(pattern)) for name, pattern in redaction.patterns]
        self._rules = [rule for kind in redaction.kinds for rule in _RULES[kind]]
        self.by_name = "passwords" in redaction.kinds

    def may_hold(self, data: bytes) -> bool:
        return bool(self._own) or self._looks.search(data) is not None

    def find(self, text: str) -> Iterator[_Found]:
        """Yield the matches in a text; they may overlap."""
        data = text.encode("utf-8", "surrogatepass")
        # A pattern such as `[0-9]+` must not match inside existing tags.
        tags = [(m.start(), m.end()) for m in _TAG.finditer(text)] if self._own else []
        for name, pattern in self._own:
            # Counted from the last match: a text may contain 100,000 of them.
            at = start = 0
            for match in pattern.finditer(data):
                start += _letters(data[at : match.start()])
                at = match.start()
                length = _letters(data[at : match.end()])
                last = bisect_right(tags, (start, len(text))) - 1
                if length and (last < 0 or start + length > tags[last][1]):
                    yield _Found(start, start + length, name)
        if self._looks.search(data) is not None:
            for kind, rule in self._rules:
                for start, end in rule(text):
                    yield _Found(start, end, kind)

    def collect(self, text: str, tags: dict[str, str]) -> None:
        """Record the secrets in a text, with their tags, if they may occur elsewhere, too."""
        for secret_at in self.find(text):
            secret = text[secret_at.start : secret_at.end]
            if secret_at.kind != "key" or spreads(secret):
                tags.setdefault(secret, tag(secret_at.kind, secret))

    def replace(self, text: str) -> str:
        """Put tags into a text; of overlapping matches the first one, then the longest, wins."""
        pieces, at = [], 0
        for secret_at in sorted(self.find(text), key=lambda each: (each.start, -each.end)):
            if secret_at.start >= at:
                pieces += [
                    text[at : secret_at.start],
                    tag(secret_at.kind, text[secret_at.start : secret_at.end]),
                ]
                at = secret_at.end
        return "".join([*pieces, text[at:]]) if pieces else text


_FOLLOWING = bytes(range(0x80, 0xC0))
"""Continuation bytes of UTF-8."""


def _letters(data: bytes) -> int:
    """Count characters; data may start or end inside one, as RE2 accepts no lone surrogates."""
    return len(data.translate(None, _FOLLOWING))


@lru_cache(maxsize=64)
def _finder(redaction: Redaction) -> _Finder:
    return _Finder(redaction)


def _own(pattern: str) -> re2._Regexp:
    """Compile a user's pattern with a linear-time engine."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY
    return re2.compile(pattern, options)


def spreads(secret: str) -> bool:
    """Tell whether a secret is long and mixed enough to be searched in other texts."""
    mixed = any(c.isdigit() for c in secret) and any(c.isalpha() for c in secret)
    return len(secret) >= 2 * _SPREADS or (len(secret) >= _SPREADS and mixed)


class _Replacer:
    """Puts tags into values of any depth: first for known secrets, then for found ones."""

    def __init__(self, finder: _Finder, tags: Mapping[str, str]) -> None:
        self._finder, self._tags = finder, tags
        longest_first = sorted(tags, key=len, reverse=True)
        self._known = re.compile("|".join(map(_bounded, longest_first))) if tags else None
        self.changed = False

    def text(self, text: str) -> str:
        """Return a text with tags, and record whether there are new ones."""
        new = mask(text)
        if self._known is not None:
            new = self._known.sub(lambda match: self._tags[match[0]], new)
        new = self._finder.replace(new)
        self.changed = self.changed or new != text
        return new

    def __call__(self, value: Any) -> Any:
        """Return a copy; it uses an explicit stack, as data may be nested deeply."""
        root = [value]
        todo: list[tuple[Any, Any]] = [(root, 0)]
        while todo:
            holder, key = todo.pop()
            item = getattr(holder, key) if isinstance(holder, msgspec.Struct) else holder[key]
            if isinstance(item, str):
                self._put(holder, key, self.text(item))
            elif isinstance(item, dict):
                copy: dict[Any, Any] = {}
                secret = _attribute_secret(item) if self._finder.by_name else None
                if secret is not None:
                    held = {"stringValue": self._tags.get(secret) or tag("key", secret)}
                    self._put(holder, key, {**item, "value": held})
                    self.changed = True
                    continue
                for name, inner in item.items():
                    new = self.text(name) if isinstance(name, str) else name
                    if self._finder.by_name and is_named_secret(name, inner):
                        copy[new] = self._tags.get(inner) or tag("key", inner)
                        self.changed = True
                    else:
                        copy[new] = inner
                        todo.append((copy, new))
                self._put(holder, key, copy)
            elif isinstance(item, tuple) and not hasattr(item, "_fields"):
                self._put(holder, key, tuple(self(inner) for inner in item))
            elif isinstance(item, list):
                items = list(item)
                self._put(holder, key, items)
                todo += [(items, place) for place in range(len(items))]
            elif isinstance(item, msgspec.Struct) and not isinstance(item, Source | Location):
                bare = msgspec.structs.replace(item)
                self._put(holder, key, bare)
                if not item.__struct_config__.frozen:
                    names = _NAMES_OF_CASES.get(type(item), ())
                    todo += [(bare, each) for each in item.__struct_fields__ if each not in names]
        return root[0]

    @staticmethod
    def _put(holder: Any, key: Any, item: Any) -> None:
        if isinstance(holder, msgspec.Struct):
            setattr(holder, key, item)
        else:
            holder[key] = item


def _texts(value: Any, finder: _Finder, tags: dict[str, str]) -> Iterator[str]:
    """Yield all texts of a value; record those under a secret's name as secret as a whole."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            secret = _attribute_secret(item) if finder.by_name else None
            if secret is not None and spreads(secret):
                tags.setdefault(secret, tag("key", secret))
            for name, inner in item.items():
                if isinstance(name, str):
                    yield name
                if finder.by_name and is_named_secret(name, inner) and spreads(inner):
                    tags.setdefault(inner, tag("key", inner))
                todo.append(inner)
        elif isinstance(item, list | tuple):
            todo += item
        elif isinstance(item, msgspec.Struct) and not isinstance(item, Source | Location):
            todo += [getattr(item, field) for field in item.__struct_fields__]


def is_named_secret(name: Any, value: Any) -> bool:
    """Tell whether a text is stored under a name such as `password`."""
    return (
        isinstance(value, str)
        and isinstance(name, str)
        and _is_secret_name(name)
        and not _is_placeholder(value)
        and (not any(letter.isspace() for letter in value) or name.lower().endswith("cookie"))
    )


def _attribute_secret(item: dict[Any, Any]) -> str | None:
    """Return the text of an OTLP JSON attribute that is named like a secret.

    ``{"key": "api_key", "value": {"stringValue": "..."}}``: the name is next to the value.
    """
    value = item.get("value")
    if not isinstance(value, dict) or len(value) != 1:
        return None
    text = value.get("stringValue")
    return text if is_named_secret(item.get("key"), text) else None


def _bounded(secret: str) -> str:
    """Return the pattern for a secret; a short one matches only as a whole word."""
    escaped = re.escape(secret)
    if len(secret) >= 2 * _SPREADS:
        return escaped
    return rf"(?<![A-Za-z0-9]){escaped}(?![A-Za-z0-9])"


Rule = Callable[[str], Iterable[tuple[int, int]]]
_compiled = lru_cache(maxsize=None)(re.compile)
"""Compiles a pattern on first use: all of them take 10 ms, and most runs need none."""


def _whole(pattern: str, check: Callable[[str], bool] = lambda _: True) -> Rule:
    """Return a rule that redacts what a pattern matches, or its group `secret`."""
    group = "secret" if "(?P<secret>" in pattern else 0

    def rule(text: str) -> Iterator[tuple[int, int]]:
        return (m.span(group) for m in _compiled(pattern).finditer(text) if check(m[group]))

    return rule


def _named(text: str) -> Iterator[tuple[int, int]]:
    """Yield values after names, if the name is a secret's and the value may be one."""
    for match in _compiled(_NAMED).finditer(text):
        word = match[0][: match.start("sep") - match.start()]
        before = _NAME_BEFORE.search(text, max(0, match.start() - 60), match.start())
        name = (before[0] if before else "") + word
        quoted = match["open"] is not None
        # A sentence may end after a value: `PASSWORD=hunter2-x9.`
        value = match["secret"] if quoted else match["secret"].rstrip(".:!?")
        loud = name.isupper() and "=" in match["sep"]
        if not _is_secret_name(name) or _is_placeholder(value):
            continue
        mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
        if loud or quoted or (mixed and len(value) >= 6 and "." not in value):
            yield match.start("secret"), match.start("secret") + len(value)


def _is_secret_name(name: str) -> bool:
    return (
        _compiled(_SECRET_NAME).search(name) is not None and _compiled(_PAGING).search(name) is None
    )


def _is_placeholder(value: str) -> bool:
    """Tell whether a value is a placeholder, a variable, or already has a tag."""
    return (
        len(value) < 4
        or value[0] in "$<{%*[#"
        or _compiled(_EMPTY).match(value) is not None
        or is_redacted(value)
    )


def _is_real(secret: str) -> bool:
    return _compiled(_PLACEHOLDER).search(secret) is None


def _luhn(number: str) -> bool:
    """Tell whether it is a card number by its check digit: 9 of 10 such numbers are not."""
    digits = [int(c) for c in reversed(number) if c.isdecimal()]
    doubled = [d if place % 2 == 0 else sum(divmod(2 * d, 10)) for place, d in enumerate(digits)]
    return 13 <= len(digits) <= 19 and sum(doubled) % 10 == 0 and len(set(digits)) > 1


def _is_iban(text: str) -> bool:
    """Tell whether it is an IBAN by its check digits (ISO 13616: the number modulo 97 is 1)."""
    bare = text.replace(" ", "")
    if not 15 <= len(bare) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


def _is_phone(text: str) -> bool:
    return 8 <= sum(c.isdigit() for c in text) <= 15


_RULES: dict[str, tuple[tuple[str, Rule], ...]] = {
    "api_keys": (("key", _whole(_KEY, _is_real)),),
    "private_keys": (("key", _whole(_PRIVATE_KEY)),),
    "tokens": tuple(
        ("key", _whole(pattern, _is_real)) for pattern in (_JWT, _BEARER, _AUTHORIZATION, _SIGNED)
    ),
    "cookies": (("key", _whole(_COOKIE, _is_real)),),
    "passwords": (
        ("key", _whole(_IN_URL, lambda value: not _is_placeholder(value))),
        ("key", _named),
    ),
    "email": (("email", _whole(_EMAIL)),),
    "phone": (("phone", _whole(_PHONE, _is_phone)),),
    "card": (("card", _whole(_CARD, _luhn)),),
    "iban": (("iban", _whole(_IBAN, _is_iban)),),
}
"""The tag and the rules of each kind; all secrets have one tag, see :class:`Redaction`."""
