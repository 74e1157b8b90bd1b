"""Components of an agent system: its changeable texts, and changes to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from baton import components as rules
from baton.changed_texts import changes_of
from baton.config.trust import Trust, trust_of
from baton.model import ChangedText, InputError, suggestion, text_hash
from baton.model.option_spelling import option
from baton.providers.base_provider import ConfiguredProvider
from baton.providers.prompt_delivery import read_text
from baton.readers import load_catalog
from baton.replays.replay import texts_of
from baton.runner.loop import run_anywhere

from .agent_under_test import Target, build_agent, find_target, variant_names, variants_of
from .prepare import PathLike, TrustLike


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """The current text of a component; ``provider`` names its provider, if there are several.

    ``hash`` are the first 12 hex digits of the text's sha256.
    """

    name: str
    hash: str
    text: str
    provider: str | None = None


def list_components(
    target: PathLike | Mapping[str, Any] | None = None,
    *,
    app: str | None = None,
    variant: str | None = None,
    agents: PathLike | None = None,
    trust: TrustLike = (),
) -> list[Component]:
    """Return the changeable texts of agents.

    Args:
        target: a config or an agent, as `baton eval` takes it, or the spec of a provider;
            ``baton.yaml`` when left out.
        app: the app of an ADK server.
        variant: one of a config's providers; all of them when left out.
        agents: agent definitions.
        trust: folders whose ``baton.yaml`` may name code, though it was only found.

    Raises:
        InputError: no such agent, or it has no texts that can be changed; with what to do.
    """
    if isinstance(target, Mapping):
        resolved = Target(None, dict(target), [])
    else:
        words = [] if target is None else [str(target)]
        trusted = trust if isinstance(trust, Trust) else trust_of(trust)
        resolved = find_target(words, trusted, app, instead="an agent, as in `app.py:agent`")
    config = resolved.config
    definitions = agents or (config.agents if config is not None else None)
    catalog = load_catalog(definitions) if definitions is not None else {}
    places = variants_of(config if resolved.provider is None else None, variant)
    several = config is not None and resolved.provider is None and len(config.providers) > 1
    names = variant_names(config) if config is not None and several else []
    listed = []
    for place in places:
        provider = build_agent(config, resolved.provider, place, catalog)
        texts, _ = run_anywhere(texts_of(provider))
        listed += [
            Component(
                name=name,
                hash=text_hash(text),
                text=text,
                provider=names[place] if several else None,
            )
            for name, text in sorted(texts.items(), key=lambda each: _order(each[0]))
        ]
    return listed


def _order(name: str) -> tuple[int, str]:
    kind, _, of = name.partition(":")
    return rules.KINDS.index(kind) if kind in rules.KINDS else len(rules.KINDS), of


def component(listed: Sequence[Component], name: str) -> Component:
    """Return the component of a name; raises InputError with similar names."""
    for each in listed:
        if each.name == name:
            return each
    raise InputError(f"no component `{name}`; {suggestion(name, {each.name for each in listed})}")


def changes_in(words: Sequence[str]) -> dict[str, str]:
    """Read changes as the command line has them: ``NAME=FILE``, with the new text in the file.

    For examples it is ``examples:NAME=FILE`` or ``examples:NAME=FILE:case1,case2``.

    Raises:
        InputError: it is not one, no such file, or a name that is not a component's or is given
            twice.
    """
    texts: dict[str, str] = {}
    for word in words:
        name, equals, file = word.partition("=")
        if not equals or not file:
            raise InputError(f"`{word}` changes nothing: write {option('with')} agent:NAME=FILE")
        rules.check_name(name)
        if name in texts:
            raise InputError(f"{option('with')}: `{name}` is given twice")
        texts[name] = read_text(name, file)
    return texts


async def checked(
    provider: ConfiguredProvider[Any], changed: Mapping[str, str]
) -> list[ChangedText]:
    """Check changes with what a provider has, before anything is played.

    Args:
        provider: the unchanged one, not entered yet.
        changed: the new texts by name.

    Raises:
        InputError: there is no such component, or a text breaks something.
    """
    texts, tools = await texts_of(provider)
    return changes_of(texts, changed, tools)
