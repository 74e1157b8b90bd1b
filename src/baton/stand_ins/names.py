"""Compares the names in stand-ins with the existing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from baton.model import ProviderError, nearest
from baton.model.stand_ins import StandIns

_MISSPELT = 0.8
"""The least similarity of a misspelt name: `pay_bak` is, `pay_in` for `pay_out` is not."""


def check_names(
    ins: StandIns, tools: Callable[[], Iterable[str]], agents: Callable[[], Iterable[str]]
) -> None:
    """Raise ProviderError for a misspelt name: `pay_bak` mocked would let `pay_back` pay.

    Not all names are always known, such as those of an MCP server: only a name that is very similar
    to a known one is refused, unless the known one has its own stand-in.

    Args:
        ins: the stand-ins of a case.
        tools: returns the known names of tools; called if the case names one.
        agents: the same for agents.
    """
    own = [*ins.tools, *(tool for each in ins.agents.values() for tool in each.tools)]
    for kind, names, ask in (("tool", {*own} - {"*"}, tools), ("agent", {*ins.agents}, agents)):
        known = {*ask()} if names else set()
        for name in sorted(names - known):
            near = next(_meant(name, known), None)
            if near is not None and near not in names:
                raise ProviderError(
                    f"nothing was run: `stand_ins:` is for the unknown {kind} `{name}`; did you "
                    f"mean `{near}`? If both exist, also state what `{near}` does, as `mode: live`"
                )


def _meant(name: str, known: set[str]) -> Iterator[str]:
    """Yield the name that was probably intended.

    `pay` is `mcp__shop__pay`. The common prefix of a server's names does not make them similar:
    `mcp__shop__pay_in` is not `mcp__shop__pay_out`.
    """
    yield from sorted(each for each in known if each.endswith(f"__{name}"))
    server, mark, own = name.rpartition("__")
    beside = {each for each in known if mark and each.startswith(server + mark)}
    if beside:
        names = [each.removeprefix(server + mark) for each in beside]
        yield from (server + mark + each for each in _alike(own, names))
    else:
        yield from _alike(name, known)


def _alike(name: str, known: Iterable[str]) -> list[str]:
    """Return names with the same letters (`pya` and `pay`), else similar ones."""
    same = sorted(each for each in known if sorted(each) == sorted(name))
    return same or nearest(name, known, 1, _MISSPELT)
