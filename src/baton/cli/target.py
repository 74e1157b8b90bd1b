"""What ``baton eval`` is asked to evaluate: a config, or an agent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from baton.config import Config, load_config
from baton.config.load import load_found
from baton.config.providers import agent_spec, configured, variant_names
from baton.config.trust import Trust
from baton.model import InputError, Problem, suggestion
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.providers.make import make_provider
from baton.readers import load_catalog

from .kinds import given_as
from .notes import say

DEFAULT_CONFIG = Path("baton.yaml")
_CONFIG_SUFFIXES = (".yaml", ".yml", ".json")


class Target(NamedTuple):
    """A config or the spec of a provider; ``datasets`` is what else was named."""

    config: Config | None
    provider: dict[str, Any] | None
    datasets: list[str]


def trust_in(folders: Sequence[Path]) -> Trust:
    """Return the trust in files that are found; a person at a terminal is asked."""
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    return Trust(folders, ask=_ask if asked else None)


def _ask(question: str) -> bool:
    *lines, last = question.splitlines()
    for line in lines:
        say(line)
    sys.stderr.write(last)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def find_target(
    words: tuple[str, ...], trust: Trust, app: str | None = None, *, own_code: bool = True
) -> Target:
    """Tell a config from an agent by the first word; without any, ``baton.yaml`` is the config.

    ``trust`` is for a config that is found, ``app`` is the app of a server. Without ``own_code``
    nothing of the user's is imported.

    Raises:
        InputError: the first word is neither, or is not a server that has apps; or the config
            that was found is not trusted.
    """
    found = _find(words, trust, own_code)
    if app is not None:
        if found.provider is None or found.provider["type"] != "adk_http":
            message = "--app goes with the address of an ADK server; a config has `app_name`"
            raise InputError(message)
        found.provider["app_name"] = app
    return found


def _find(words: tuple[str, ...], trust: Trust, own_code: bool) -> Target:
    if not words:
        if not DEFAULT_CONFIG.is_file():
            raise InputError(
                f"no {DEFAULT_CONFIG} here: name a config, or an agent and its datasets"
            )
        return Target(load_found(DEFAULT_CONFIG, trust, own_code=own_code), None, [])
    first, rest = words[0], list(words[1:])
    provider = agent_spec(first)
    if provider is not None:
        return Target(None, provider, rest)
    path = Path(first)
    if path.suffix in _CONFIG_SUFFIXES:
        return Target(_config(path, own_code), None, rest)
    if path.suffix == ".py" and path.is_file():
        raise InputError(Problem(file=first, message=f"name the function: {first}:FUNCTION"))
    message = (
        "is neither a config (YAML) nor an agent: a folder with agent.py, the address of an ADK "
        "server (http://...), or module:function"
    )
    raise InputError(Problem(file=first, message=message))


def _config(path: Path, own_code: bool) -> Config:
    message = "is a dataset, not a config: name the agent first, baton eval AGENT DATASET"
    swapped = given_as([path], "dataset", message)
    if swapped:
        raise InputError(swapped)
    return load_config(path, own_code=own_code)


def variants_of(target: Target, wanted: str | None) -> list[int]:
    """Return the places of the providers to evaluate, one after the other.

    Raises:
        InputError: there is none of the name ``wanted``, or none at all.
    """
    config = target.config
    if config is None:
        if wanted is not None:
            raise InputError("--variant goes with a config that has several `providers`")
        return [0]
    names = variant_names(config)
    if not names:
        message = "names 0 providers: there is no agent to evaluate"
        raise InputError(Problem(file=config.file, path="providers", message=message))
    if wanted is None:
        return list(range(len(names)))
    if wanted not in names:
        raise InputError(f"no variant `{wanted}`; {suggestion(wanted, names)}")
    return [names.index(wanted)]


def provider_of(target: Target, agents: Path | None, place: int) -> ConfiguredProvider[Any]:
    """Build the provider at a place; paths in a config start in its folder.

    Raises:
        InputError: the provider refuses its options.
    """
    config, spec, _ = target
    definitions = agents or (config.agents if config else None)
    catalog = load_catalog(definitions) if definitions is not None else {}
    if spec is not None:
        return make_provider(spec, Surroundings(Path(), catalog))
    if config is None:
        raise InputError("no agent to evaluate")
    return configured(config, place, catalog)
