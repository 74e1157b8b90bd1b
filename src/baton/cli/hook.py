"""``baton hook``."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from baton.guard.state import is_server
from baton.model import InputError
from baton.model.visible import exception_line

from .options import Flag
from .usage_messages import note, say


def hook_command(
    tool: Literal["claude"],  # noqa: ARG001 - there is one of each by now
    action: Literal["push", "guard"],
    /,
    *,
    server: str | None = None,
    project: str | None = None,
    policy: Path | None = None,
    store: str | None = None,
    functions: str | None = None,
    user: Flag = False,
    settings: Path | None = None,
    uninstall: Flag = False,
    yes: Annotated[Flag, Parameter(name=["--yes", "-y"])] = False,
    run: Annotated[bool, Parameter(show=False, negative="")] = False,
) -> int:
    """Have Claude Code send each session to a server, or ask a policy before it acts.

    Shows what would change in the settings of Claude Code, asks, and keeps a copy of them.

    Parameters
    ----------
    tool
        `claude`: Claude Code.
    action
        `push`: send the session to `baton serve` when it stops. `guard`: ask a policy before tools
        and sub-agents run, and before answers of sub-agents are read.
    server
        For `push`: the address of the server; `BATON_SERVER`, or http://localhost:4318, by default.
    project
        For `push`: the project to send to; for `guard`: the project of the state on a server.
    policy
        For `guard`: the file of the policy.
    store
        For `guard`: the file of the state, `.baton/guard.db` by default, or the address of a server
        (http://HOST:4318), which machines share; its key is in `BATON_API_KEY`.
    functions
        For `guard`: your module, or its file, with functions that the policy names; the hook runs
        it.
    user
        Change the settings of the user, instead of those in this folder.
    settings
        The file of settings to change.
    uninstall
        Remove the hook.
    yes
        Do not ask.
    run
        What the hook itself runs: reads the event from standard input.
    """
    if action == "guard":
        if server is not None:
            raise InputError(
                "`--server` is for `baton hook claude push`; give a server's address as --store"
            )
        if project is not None and not is_server(store):
            raise InputError("`--project` needs a server: give its address as --store")
        if policy is None and not uninstall:
            raise InputError("name the policy: --policy FILE")
    elif policy is not None or store is not None or functions is not None:
        raise InputError(
            "`--policy`, `--store` and `--functions` belong to `baton hook claude guard`"
        )
    usual = (Path.home() if user else Path()) / ".baton" / "guard.db"
    state = store if store is not None and is_server(store) else Path(store or usual)
    if run and policy is not None:
        return _guard(policy, state, project, functions)
    from baton.session.hooks import add_guard, add_hook, read_event, remove_hook, settings_file

    if run:
        from .push import push_command

        event = read_event(sys.stdin.buffer.read())
        return push_command(event.transcript_path, server=server, project=project)
    file = settings or settings_file(user=user)
    if uninstall:
        change = remove_hook(file, action)
    elif policy is not None:
        change = add_guard(file, policy, state, project, functions)
    else:
        change = add_hook(file, server, project)
    if not change.changes:
        note(f"{file}: nothing to change")
        return 0
    print(change.diff())
    if not yes and not _agreed(file):
        say("nothing was changed")
        return 0
    copy = change.apply()
    note(f"wrote {file}" + (f"; the old settings are in {copy}" if copy else ""))
    return 0


def _guard(policy: Path, store: Path | str, project: str | None, functions: str | None) -> int:
    """Answer an event of Claude Code. Exit code 2 makes Claude Code refuse the action.

    Each tool call waits for this, so nothing is imported that only other commands need.
    """
    from baton.guard.claude import answer

    try:
        if functions is not None:
            from baton.session.guard import run_functions

            with redirect_stdout(sys.stderr):  # what the module prints is not the answer
                run_functions(functions)
        reply = answer(policy, store, sys.stdin.buffer.read(), project)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - with any other code Claude Code goes on
        say(f"the guard failed, so nothing passes: {exception_line(error)}")
        return 2
    if reply is not None:
        print(json.dumps(reply))
    return 0


def _agreed(file: Path) -> bool:
    if not sys.stdin.isatty():
        raise InputError("give --yes: there is no terminal to ask on")
    sys.stderr.write(f"Change {file}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
