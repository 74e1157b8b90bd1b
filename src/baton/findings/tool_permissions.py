"""Which calls a permission or a ban of a tool covers: ``Bash(git:*)``, ``mcp__jira``, ``Read``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from baton.model import ToolCall

from .lazy_patterns import regex
from .shell_commands import commands

# The rules of Claude Code's permissions: `Bash(git:*)`, `WebFetch(domain:example.com)`.
_SPECIFIED = regex(r"(?<![^()])(?P<name>[^()]+)\((?P<what>.*)\)\Z", re.DOTALL)


# `GIT_PAGER=cat git log` runs git with a variable set that a permission may not cover.
_SET_BEFORE = regex(r"\A(?:[A-Za-z_]\w*=\S*\s+)+")


# The old and new name of one tool.
# Claude Code renamed `Task` to `Agent`. Old and new definitions are used with old and new traces.
_SAME = {"task": "agent"}


def meant_by(call: ToolCall, patterns: Iterable[str], *, every_part: bool) -> bool | None:
    """Return whether one of the patterns matches a call, or ``None`` if unknown arguments decide.

    A pattern is a name (``Read``), a name with wildcards (``mcp__github__*``), a server
    (``mcp__github``), or a name with a limit: ``Bash(git:*)`` covers commands that start with
    ``git``, ``Bash(git log *)`` has wildcards, ``WebFetch(domain:example.com)`` has a host and its
    subdomains, ``Agent(helper)`` has a target. Limits on paths are not decided. Names are compared
    without regard to case, and blanks, ``-`` and ``_`` are equal. With ``every_part``, as in a
    permission, a shell command matches if each of its parts matches any of the patterns. Without
    it, as in a ban, one matching part is enough.
    """
    patterns = [pattern.strip() for pattern in patterns]
    line = call.arguments.get("command") if isinstance(call.arguments, dict) else None
    if not isinstance(line, str):
        return _any(_means(pattern, call, None) for pattern in patterns)
    # A pattern can be the whole line: `Bash(make && make test)`.
    if _any(_means(pattern, call, line) for pattern in patterns if f"({line.strip()})" in pattern):
        return True
    parts = commands(line)
    if parts is None:
        return _any(_means(pattern, call, None) for pattern in patterns)
    answers = [_any(_means(pattern, call, part) for pattern in patterns) for part in parts or [""]]
    if not every_part:
        return _any(answers)
    return False if False in answers else None if None in answers else True


def _any(answers: Iterable[bool | None]) -> bool | None:
    undecided = False
    for each in answers:
        if each:
            return True
        undecided |= each is None
    return None if undecided else False


def _means(pattern: str, call: ToolCall, command: str | None) -> bool | None:
    limited = _SPECIFIED.match(pattern)
    if limited is None:
        return _named(pattern, call.name)
    if not _named(limited["name"], call.name):
        return False
    what = limited["what"].strip()
    return True if what in ("", "*") else _limited(what, call, command)


def _named(pattern: str, name: str) -> bool | None:
    wanted, actual = _fold(pattern), _fold(name)
    if not wanted.startswith("mcp__"):
        return _matches(wanted, actual)
    server, _, tool = wanted.removeprefix("mcp__").partition("__")
    if actual.startswith("mcp__"):
        # `mcp__github` allows the whole server, so every tool `mcp__github__...`. A wildcard may
        # stand for servers as well: `mcp__*`.
        return _matches(wanted, actual) or (not tool and _matches(f"mcp__{server}__*", actual))
    # Some recordings omit the server: `search` for `mcp__docs__search`, or for another server's.
    # Claude's own export may even omit the tool. It names Claude's built-in tools in capitals
    # (`Read`, `WebFetch`), and tools of servers hardly ever have such names.
    if actual in (tool, "mcp_tool"):
        return None
    return None if not name[:1].isupper() and _matches(tool or "*", actual) else False


def _matches(pattern: str, name: str) -> bool:
    # Only `*` and `?` are wildcards in permissions. In `fnmatch` a bracket would start a set.
    return fnmatchcase(name, re.sub(r"\[", "[[]", pattern))


def _fold(name: str) -> str:
    folded = name.strip().casefold().replace(" ", "_").replace("-", "_")
    return _SAME.get(folded, folded)


def _limited(what: str, call: ToolCall, command: str | None) -> bool | None:
    arguments = call.arguments
    if not isinstance(arguments, dict):
        return None
    url = arguments.get("url")
    if command is not None:
        bare = _SET_BEFORE.sub("", command, count=1) if _SET_BEFORE.match(command) else command
        is_meant = _command(what, command)
        return is_meant if is_meant or bare == command or not _command(what, bare) else None
    if isinstance(url, str) and what.startswith("domain:"):
        host, domain = urlsplit(url).hostname or "", what.removeprefix("domain:")
        # `notexample.com` ends in `example.com` but is another site.
        return host == domain or host.endswith(f".{domain}")
    target = arguments.get("subagent_type")
    return target == what if isinstance(target, str) else None


def _command(what: str, command: str) -> bool:
    if what.endswith(":*"):
        begins = what.removesuffix(":*")
        return command == begins or command.startswith(f"{begins} ")
    return fnmatchcase(command, re.sub(r"\[", "[[]", what))
