"""``baton components``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from baton.components import are_examples, read_examples
from baton.model import counted
from baton.model.visible import visible_line
from baton.session.components import Component, component, list_components

from .options import Flag, Paths, trust_in
from .output import readers_may_leave

_SHOWN = 60
"""Characters of a text in a list."""


def components_command(
    target: str | None = None,
    *,
    show: Annotated[str | None, Parameter(name="--show")] = None,
    variant: str | None = None,
    app: str | None = None,
    agents: Path | None = None,
    json: Flag = False,
    trust: Paths = (),
) -> int:
    """List the texts of agents that may be changed: instructions, descriptions, tools, examples.

    `baton eval --with NAME=FILE` and `baton replay --with NAME=FILE` play with one of them changed.

    Parameters
    ----------
    target
        A config (by default `baton.yaml`) or an agent: module:function, a folder of ADK agents, or
        the address of an ADK server.
    show
        Print the whole text of this one, such as agent:desk.
    variant
        Which of a config's providers, by its agent_id or type.
    app
        The app of the server to talk to, if it has several.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    json
        Print them as JSON, with their texts.
    trust
        A folder whose baton.yaml may name code, although it was only found.
    """
    with redirect_stdout(sys.stderr):  # what a program prints on import is not part of the output
        listed = list_components(
            target, app=app, variant=variant, agents=agents, trust=trust_in(trust)
        )
    if show is not None:
        listed = [component(listed, show)]
    with readers_may_leave():
        if json:
            plain = msgspec.to_builtins(listed)
            print(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
        elif show is not None:
            print(listed[0].text)
        else:
            width = max(len(each.name) for each in listed)
            for each in listed:
                first = _in_a_line(each)
                first = first if len(first) <= _SHOWN else f"{first[: _SHOWN - 1]}…"
                of = f"  ({each.provider})" if each.provider is not None else ""
                print(visible_line(f"{each.name:<{width}}  {each.hash}  {first}{of}"))
    return 0


def _in_a_line(listed: Component) -> str:
    if are_examples(listed.name):
        ids = [each.id for each in read_examples(listed.text)]
        return f"{counted(len(ids), 'case')}: {', '.join(ids)}" if ids else "no cases"
    return " ".join(listed.text.split())
