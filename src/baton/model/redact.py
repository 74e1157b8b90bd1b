"""Masking of secrets: what is one gets a tag in its place, the same for the same secret.

Precise rather than complete: known forms of keys, and values under names that say what they
are. Hashes, ids and ordinary words stay. All patterns are bounded, so that the time taken
grows with the length of the text and no faster.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import msgspec

from .content import Content
from .trace import Dispatch, Said, ToolCall, Trace

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----))*"
    r"(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY-----)?"
)
_KEY = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"sk-(?=[A-Za-z0-9_-]{0,200}[0-9A-Z])[A-Za-z0-9_-]{20,512}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,128}"
    r"|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}|glpat-[A-Za-z0-9_-]{20,64}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,255}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,512}|hf_[A-Za-z0-9]{30,64}"
    r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,512}|gsk_[A-Za-z0-9]{40,64}"
    r"|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}|dop_v1_[a-f0-9]{64}|shpat_[a-f0-9]{32}"
    r"|eyJ[A-Za-z0-9_-]{10,2048}\.eyJ[A-Za-z0-9_-]{10,4096}\.[A-Za-z0-9_-]{10,1024}"
    r")"
)
_BEARER = re.compile(
    r"\b(bearer|basic)[ \t]{1,3}(?=[A-Za-z0-9._~+/=-]{0,200}[0-9=])([A-Za-z0-9._~+/=-]{16,4096})",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(://[^\s:/@\"']{0,200}):([^\s/@\"']{1,300})@")
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b"
)
_NAMED = re.compile(
    r"(?:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|access[_-]?key|private[_-]?key|token"
    r"|passwd|password|passphrase)"
    r"(?P<sep>\\{0,2}[\"']?[ \t]{0,3}(?:=|:(?!:))[ \t]{0,3})"
    r"(?P<open>\\{0,2}[\"'])?(?P<value>[^\s\"'`,;&\\(){}\[\]<>|]{4,512})",
    re.IGNORECASE,
)
_SCHEMES, _NAMES = ("bearer", "basic"), ("key", "secret", "token", "pass")
"""Words that the patterns for these need: looking for a word is far faster than for a pattern."""
_SECRET_NAME = re.compile(
    r"(?:^|[_.-]|(?<=[a-z])(?=[A-Z]))(?:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?"
    r"|access[_-]?key|private[_-]?key|token|passwd|password|passphrase)$",
    re.IGNORECASE,
)
_PAGING = re.compile(r"(?:page|next|continuation|sync|cursor|max|num)[_-]?token$", re.IGNORECASE)
_EMPTY = re.compile(
    r"(?:none|null|nil|true|false|undefined|string|str|bytes|secret|password|token|required|optional"
    r"|example|redacted|changeme|x{3,}|\.{3,}|[*#_-]{3,}|your[-_].{0,60})\Z",
    re.IGNORECASE,
)
_TAG = re.compile(r"\[[a-z]+:[0-9a-f]{4}\]")
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]{0,60}\Z")


def redact(text: str, *, emails: bool = False) -> str:
    """Put a tag in the place of each secret: ``[key:9c1b]``, its kind and 4 digits of SHA-256.

    Masked are private keys, keys of known forms, bearer tokens, passwords in addresses, and
    values under names such as ``API_KEY``; with ``emails`` mail addresses as well.
    """
    text = _PRIVATE_KEY.sub(lambda m: tag("key", m[0]), text)
    text = _KEY.sub(lambda m: tag("key", m[0]), text)
    folded = text.casefold()
    if any(scheme in folded for scheme in _SCHEMES):
        text = _BEARER.sub(lambda m: f"{m[1]} {tag('token', m[2])}", text)
    text = _IN_URL.sub(_url, text)
    if any(name in folded for name in _NAMES):
        text = _NAMED.sub(_named, text)
    return _EMAIL.sub(lambda m: tag("email", m[0]), text) if emails else text


def redact_value(value: Any, *, emails: bool = False) -> Any:
    """Redact all texts of JSON-like data; one under a secret's name is masked whole."""
    if isinstance(value, str):
        return redact(value, emails=emails)
    if isinstance(value, list):
        return [redact_value(item, emails=emails) for item in value]
    if isinstance(value, dict):
        return {key: _field(key, item, emails) for key, item in value.items()}
    return value


def redact_content(content: Content | None, *, emails: bool = False) -> Content | None:
    """Return the content without its secrets; attachments stay as they are."""
    if content is None:
        return None
    text = None if content.text is None else redact(content.text, emails=emails)
    data = redact_value(content.data, emails=emails)
    return msgspec.structs.replace(content, text=text, data=data)


def redact_trace(trace: Trace, *, emails: bool = False) -> Trace:
    """Mask the secrets in all that was said, asked, returned or told of an error, in place."""
    for turn in trace.turns:
        turn.input = redact_content(turn.input, emails=emails)
        turn.output = redact_content(turn.output, emails=emails)
        turn.error = redact_value(turn.error, emails=emails)
        for run in turn.runs:
            run.input = redact_content(run.input, emails=emails)
            run.output = redact_content(run.output, emails=emails)
            run.error = redact_value(run.error, emails=emails)
            for step in run.steps:
                if isinstance(step, Said):
                    step.content = redact_content(step.content, emails=emails) or step.content
                elif isinstance(step, ToolCall):
                    _redact_call(step, emails)
        for dispatch in turn.dispatches:
            _redact_dispatch(dispatch, emails)
    for dropped in trace.dropped:
        dropped.example = redact_value(dropped.example, emails=emails)
    return trace


def tag(kind: str, secret: str) -> str:
    """Return what stands for a secret."""
    return f"[{kind}:{sha256(secret.encode('utf-8', 'surrogatepass')).hexdigest()[:4]}]"


def _redact_call(call: ToolCall, emails: bool) -> None:
    call.arguments = redact_value(call.arguments, emails=emails)
    call.result = redact_content(call.result, emails=emails)
    call.error = redact_value(call.error, emails=emails)


def _redact_dispatch(dispatch: Dispatch, emails: bool) -> None:
    dispatch.prompt = redact_content(dispatch.prompt, emails=emails)
    dispatch.result = redact_content(dispatch.result, emails=emails)
    dispatch.description = redact_value(dispatch.description, emails=emails)
    dispatch.error = redact_value(dispatch.error, emails=emails)
    dispatch.context = redact_value(dispatch.context, emails=emails)


def _field(key: Any, value: Any, emails: bool) -> Any:
    if isinstance(value, str) and isinstance(key, str) and _is_secret_name(key):
        if not _says_nothing(value) and not any(letter.isspace() for letter in value):
            return tag("key", value)
    return redact_value(value, emails=emails)


def _url(found: re.Match[str]) -> str:
    before, secret = found.groups()
    return found[0] if _says_nothing(secret) else f"{before}:{tag('password', secret)}@"


def _named(found: re.Match[str]) -> str:
    """Mask the value of a name, if the name is a secret's and the value may be one."""
    word = found[0][: found.start("sep") - found.start()]
    before = _NAME_BEFORE.search(found.string, max(0, found.start() - 60), found.start())
    name = (before[0] if before else "") + word
    value = found["value"]
    loud = name.isupper() and "=" in found["sep"]
    quoted = found["open"] is not None
    if not _is_secret_name(name) or _says_nothing(value):
        return found[0]
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    if not (loud or quoted or (mixed and len(value) >= 6 and "." not in value)):
        return found[0]
    return found[0][: found.start("value") - found.start()] + tag("key", value)


def _is_secret_name(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None and _PAGING.search(name) is None


def _says_nothing(value: str) -> bool:
    """Tell a placeholder, a variable, or what is masked already."""
    return (
        len(value) < 4
        or value[0] in "$<{%*[#"
        or _EMPTY.match(value) is not None
        or _TAG.match(value) is not None
    )
