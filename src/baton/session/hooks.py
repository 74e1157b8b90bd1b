"""Hooks of Claude Code: a line in its settings that makes it run a command of ours.

The settings belong to the user: changes are shown first, a copy of the file is kept, and everything
else in it is unchanged.
"""

from __future__ import annotations

import difflib
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from baton.formats.document import Document, read_bytes
from baton.formats.own_files import write_whole
from baton.guard.claude import EVENTS as EVENTS_OF_GUARD
from baton.guard.policy import load_policy
from baton.http.credentials import plain_address
from baton.model import InputError, Problem
from baton.model.option_spelling import option
from baton.plugins.user_code import load_module

EVENTS = ("Stop", "SessionEnd")
"""Claude Code stops after each answer, so the session is sent as it grows. Its end is not an
answer."""
# Claude Code waits for a hook: a hook that hangs must not stop the session for longer.
_SECONDS = 60
Kind = Literal["push", "guard"]


def _mark(kind: Kind) -> tuple[str, ...]:
    """Return the words of a command by which a hook is recognised as ours."""
    return ("hook", "claude", kind, "--run")


class SettingsChange(NamedTuple):
    """The settings before (``None``: there is no such file) and after, as text."""

    file: Path
    before: str | None
    after: str

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.after != (self.before or "")

    def diff(self) -> str:
        """Return the lines that change, as `diff -u` shows them."""
        name = str(self.file)
        lines = ((self.before or "").splitlines(), self.after.splitlines())
        return "\n".join(difflib.unified_diff(*lines, name, name, lineterm=""))

    def apply(self, now: float | None = None) -> Path | None:
        """Write the settings; returns the copy of what was there before.

        Raises:
            InputError: the file has changed since it was read.
        """
        if _text_of(self.file) != self.before:
            raise InputError(f"another program changed {self.file}: nothing was written")
        copy: Path | None = None
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self.before is not None:
            stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now))
            copy = self.file.with_name(f"{self.file.name}.{stamp}.backup")
            shutil.copy2(self.file, copy)
        file = self.file.resolve()  # settings are often a link into a repository of dotfiles
        write_whole(file, self.after.encode())
        if copy is not None:
            shutil.copymode(copy, file)
        return copy


def settings_file(*, user: bool) -> Path:
    """Return where Claude Code keeps settings: of the user, or of one person in this project."""
    home = Path.home() / ".claude" / "settings.json"
    return home if user else Path(".claude") / "settings.local.json"


def add_hook(file: Path, server: str | None = None, project: str | None = None) -> SettingsChange:
    """Prepare settings that send a session to a server whenever Claude Code stops.

    No key is written: the hook takes it from the environment, as `baton push` does.

    Raises:
        InputError: the settings are not the JSON that Claude Code reads, or the server's address
            is none.
    """
    words = [*_program(), *_mark("push")]
    if server is not None:
        words += ["--server", plain_address(server, option("server"), "BATON_API_KEY")]
    words += ["--project", project] if project else []
    return _added(file, "push", words, dict.fromkeys(EVENTS))


def add_guard(
    file: Path,
    policy: Path,
    store: Path | str,
    project: str | None = None,
    functions: str | None = None,
) -> SettingsChange:
    """Prepare settings with which a policy decides tools, dispatches and answers of sub-agents.

    Args:
        file: the settings.
        policy: the file of the policy, which is read here to see that it is one.
        store: the file of the state of trees, which all sessions share, or the address of a server,
            whose key is taken from the environment.
        project: that of the state on a server.
        functions: a module, or its file, with functions that the policy names; it is run, here to
            see that it can be, and by the hook.

    Raises:
        InputError: the settings are not the JSON that Claude Code reads, the policy has errors,
            there is no such module, or the server's address is none.
    """
    load_policy(policy)
    if functions is not None:
        load_module(f"{functions}:", Path())
    words = [*_program(), *_mark("guard")]
    words += ["--policy", str(policy.resolve()), "--store"]
    if isinstance(store, Path):
        words.append(str(store.resolve()))
    else:
        words.append(plain_address(store, option("store"), "BATON_API_KEY"))
    words += ["--project", project] if project else []
    if functions is not None:
        named = str(Path(functions).resolve()) if functions.endswith(".py") else functions
        words += ["--functions", named]
    return _added(file, "guard", words, EVENTS_OF_GUARD)


def _added(
    file: Path, kind: Kind, words: list[str], events: Mapping[str, str | None]
) -> SettingsChange:
    hook = {"type": "command", "command": shlex.join(words), "timeout": _SECONDS}
    before, settings = _read(file)
    _take_out(settings, kind)
    for event, matcher in events.items():
        group = {"hooks": [hook]} if matcher is None else {"matcher": matcher, "hooks": [hook]}
        settings.setdefault("hooks", {}).setdefault(event, []).append(group)
    return _changed(file, before, settings)


def remove_hook(file: Path, kind: Kind = "push") -> SettingsChange:
    """Prepare settings without our hooks; other hooks are kept.

    Raises:
        InputError: the settings are not the JSON that Claude Code reads.
    """
    before, settings = _read(file)
    if not _take_out(settings, kind):
        return SettingsChange(file, before, before or "")
    return _changed(file, before, settings)


def _program() -> list[str]:
    """Return how to start Baton from a shell that knows no virtual environment."""
    return [sys.executable, "-m", "baton"]


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text("utf-8") if file.exists() else None
    except UnicodeDecodeError:
        raise InputError(Problem(file=str(file), message="is not text in UTF-8")) from None


def _read(file: Path) -> tuple[str | None, dict[str, Any]]:
    before = _text_of(file)
    if before is None or not before.strip():
        return before, {}
    document = Document(str(file), read_bytes(file), "json")
    settings = document.value()
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(settings, dict) or not isinstance(hooks, dict):
        raise InputError(
            document.problem("settings of Claude Code are an object, and so is `hooks`")
        )
    for event, groups in hooks.items():
        if not isinstance(groups, list) or not all(isinstance(each, dict) for each in groups):
            raise InputError(document.problem(f"`hooks.{event}` is not a list of objects"))
    return before, settings


def _changed(file: Path, before: str | None, settings: dict[str, Any]) -> SettingsChange:
    text = msgspec.json.format(msgspec.json.encode(settings), indent=2).decode()
    return SettingsChange(file, before, f"{text}\n")


def _take_out(settings: dict[str, Any], kind: Kind) -> bool:
    """Remove our hooks, and lists that are then empty; return whether there were any."""
    hooks = settings.get("hooks", {})
    any_ours = False
    for event, groups in list(hooks.items()):
        before = len(groups)
        for group in list(groups):
            ours = [each for each in _hooks_of(group) if _is_ours(each, kind)]
            if not ours:
                continue
            any_ours = True
            group["hooks"] = [each for each in group["hooks"] if each not in ours]
            if not group["hooks"]:
                groups.remove(group)
        if before and not groups:
            del hooks[event]
    if any_ours and not hooks:
        del settings["hooks"]
    return any_ours


def _hooks_of(group: dict[str, Any]) -> Iterator[dict[str, Any]]:
    hooks = group.get("hooks")
    for each in hooks if isinstance(hooks, list) else ():
        if isinstance(each, dict):
            yield each


def _is_ours(hook: dict[str, Any], kind: Kind) -> bool:
    command = hook.get("command")
    return isinstance(command, str) and " ".join(_mark(kind)) in command


class HookEvent(msgspec.Struct):
    """What Claude Code sends a hook on its standard input, as far as it is used here."""

    session_id: str
    transcript_path: str
    hook_event_name: str = ""


def read_event(text: bytes) -> HookEvent:
    """Read what Claude Code sends a hook.

    Raises:
        InputError: it is not such an event.
    """
    try:
        return msgspec.json.decode(text, type=HookEvent)
    except msgspec.DecodeError as error:
        raise InputError(f"standard input is not an event of Claude Code: {error}") from None
