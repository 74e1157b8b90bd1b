"""Who plays the cases: providers of a config, and agents that are named in one word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from baton.model import InputError, Problem
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.providers.make import build_provider
from baton.readers import Catalog

from .load import Config

_URL = re.compile(r"https?://", re.IGNORECASE)
_FUNCTION = re.compile(r"(?P<module>[\w./-]+):(?P<name>[A-Za-z_][\w.]*)")
_AGENT_FILES = ("agent.py", "__init__.py", "root_agent.yaml")


def agent_spec(word: str, folder: Path | None = None) -> dict[str, Any] | None:
    """Return the spec of the provider that plays an agent; ``None`` for what names none.

    An address is a server of ADK, a folder with ``agent.py`` one of ADK agents, and
    ``module:function`` a function of Python. Relative paths start in ``folder``.
    """
    if _URL.match(word):
        return {"type": "adk_http", "endpoint_url": word}
    path = (folder or Path()) / word
    if path.name in _AGENT_FILES[:2] and path.is_file():
        return {"type": "adk_local", "path": str(Path(word).parent)}
    if path.is_dir() and any((path / name).is_file() for name in _AGENT_FILES):
        return {"type": "adk_local", "path": word}
    if _FUNCTION.fullmatch(word) and not path.exists():
        return {"type": "python", "target": word}
    return None


def only_provider(config: Config, catalog: Catalog) -> ConfiguredProvider[Any]:
    """Build the one provider of a config; paths start in its folder.

    Raises:
        InputError: it names none or several, or the provider refuses its options.
    """
    if len(config.providers) != 1:
        message = f"names {len(config.providers)} providers; `baton eval` needs exactly one"
        raise InputError(Problem(file=config.file, path="providers", message=message))
    return configured(config, 0, catalog)


def variant_names(config: Config) -> list[str]:
    """Name the providers of a config: by ``agent_id``, else by type; each name stands once."""
    names: list[str] = []
    for options in config.providers:
        plain = options.agent_id or options.type
        name, number = plain, 1
        while name in names:
            number += 1
            name = f"{plain}-{number}"
        names.append(name)
    return names


def configured(config: Config, index: int, catalog: Catalog) -> ConfiguredProvider[Any]:
    """Build one of a config's providers; raises InputError when it refuses its options."""
    try:
        return build_provider(config.providers[index], Surroundings(config.folder, catalog))
    except InputError as error:
        raise InputError(
            Problem(
                file=config.file,
                path=".".join(part for part in (f"providers[{index}]", problem.path) if part),
                message=problem.message,
            )
            for problem in error.problems
        ) from None
