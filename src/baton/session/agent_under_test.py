"""Finds what plays the cases: a config with providers, or an agent named by one word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from baton.config import Config
from baton.config.config import load_found
from baton.config.trust import Trust
from baton.formats.document import Document, read_bytes
from baton.http.credentials import with_scheme
from baton.model import InputError, Problem, counted, nearest, suggestion
from baton.model.option_spelling import option
from baton.providers.base_provider import ConfiguredProvider, Surroundings
from baton.providers.python import PythonOptions
from baton.providers.registry import build_provider, make_provider
from baton.readers import Catalog, load_catalog

from .file_kinds import IS_A_RECORDING, config_of, is_kind

DEFAULT_CONFIG = Path("baton.yaml")
_CONFIG_SUFFIXES = (".yaml", ".yml", ".json")
_URL = re.compile(r"https?://", re.IGNORECASE)
_FUNCTION = re.compile(r"(?P<module>[\w./-]+):(?P<name>[A-Za-z_][\w.]*)")
_AGENT_FILES = ("agent.py", "__init__.py", "root_agent.yaml")


NO_AGENT = (
    "is not an agent: name a folder with agent.py, the address of an ADK server, or module:function"
)


class Target(NamedTuple):
    """A config, the spec of a provider, or both; ``datasets`` are the other words."""

    config: Config | None
    provider: dict[str, Any] | None
    datasets: list[str]


def find_target(
    words: Sequence[str],
    trust: Trust,
    app: str | None = None,
    *,
    config: str | None = None,
    own_code: bool = True,
    instead: str = "an agent and its datasets",
) -> Target:
    """Distinguish a config from an agent by the first word; the default is ``baton.yaml``.

    ``trust`` is for a config that is found, ``app`` is the app of a server. ``config`` is one for
    the agent that the first word names, which plays in place of its `providers`. Without
    ``own_code`` none of the user's code is imported. ``instead`` says what may be named in place of
    a config, if there is none.

    Raises:
        InputError: the first word is neither, or is not a server that has apps; or the config
            that was found is not trusted.
    """
    target = _target(words, trust, own_code, instead)
    if config is not None:
        target = target._replace(config=config_of(config, own_code=own_code))
    if app is not None:
        if target.provider is None or target.provider["type"] != "adk_http":
            message = f"{option('app')} is only for the address of an ADK server; a config has "
            message += "`app_name`"
            raise InputError(message)
        target.provider["app_name"] = app
    return target


def _target(words: Sequence[str], trust: Trust, own_code: bool, instead: str) -> Target:
    if not words:
        if not DEFAULT_CONFIG.is_file():
            raise InputError(f"no {DEFAULT_CONFIG} here: name a config, or {instead}")
        return Target(load_found(DEFAULT_CONFIG, trust, own_code=own_code), None, [])
    first, rest = words[0], list(words[1:])
    provider = agent_spec(first)
    if provider is not None:
        if provider["type"] == "python":
            provider["instrument"] = "auto"
        return Target(None, provider, rest)
    path = Path(first)
    if path.suffix in _CONFIG_SUFFIXES and not path.exists() and path.parent.is_dir():
        there = [each.name for each in path.parent.iterdir() if each.suffix in _CONFIG_SUFFIXES]
        # The suffix alone makes names similar: `nowhere.yaml`, `keep.yaml`.
        if near := nearest(path.name, there, 1, 0.75):
            meant = f"no such file; did you mean `{path.with_name(near[0])}`?"
            raise InputError(Problem(file=first, message=meant))
    if path.suffix in _CONFIG_SUFFIXES:
        return Target(config_of(path, own_code=own_code), None, rest)
    if path.suffix == ".py" and path.is_file():
        raise InputError(Problem(file=first, message=f"name the function: {first}:FUNCTION"))
    module, dot, name = first.rpartition(".")
    if dot and Path(f"{module.replace('.', '/')}.py").is_file():
        meant = f"is not an agent; did you mean `{module}:{name}`?"
        raise InputError(Problem(file=first, message=meant))
    if is_kind(path, "traces"):
        raise InputError(Problem(file=first, message=IS_A_RECORDING))
    if meant_address := with_scheme(first):
        message = f"is not an agent; did you mean the address {meant_address}?"
        raise InputError(Problem(file=first, message=message))
    message = (
        "is neither a config (YAML) nor an agent: a folder with agent.py, the address of an ADK "
        "server (http://...), or module:function"
    )
    raise InputError(Problem(file=first, message=message))


def agent_spec(word: str, folder: Path | None = None) -> dict[str, Any] | None:
    """Return the spec of the provider for an agent; ``None`` if the word names none.

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


NO_TEXTS: Mapping[str, str] = MappingProxyType({})
"""No component is changed."""
AgentLike = dict[str, Any] | str
"""An agent that is known by a name: the spec of a provider, a word as `baton eval` takes it, or
``{"config": FILE, "provider": NAME}`` for a provider of a config (its only one without a name)."""


class Served(NamedTuple):
    """Agents by name, to talk to and to evaluate, and folders of cases."""

    agents: dict[str, AgentLike]
    datasets: list[str]


def served(place: Path) -> Served:
    """Return the agents of a folder or a config, and the folders of their cases.

    A folder is one of ADK agents, or contains such folders, as for `adk web`; eval sets are next to
    the agents. A config names providers, and may name a dataset. All paths are absolute, and no
    code is examined yet.

    Raises:
        InputError: there are none.
    """
    if place.is_dir():
        folder = place.resolve()
        if agent_spec(str(folder)) is not None:
            spec = {"type": "adk_local", "path": str(folder)}
            return Served({folder.name: spec}, [str(folder)])
        below = sorted(each for each in folder.iterdir() if not each.name.startswith((".", "_")))
        specs = {each.name: agent_spec(str(each)) for each in below if _is_agent(each)}
        agents: dict[str, AgentLike] = {name: spec for name, spec in specs.items() if spec}
        if not agents:
            message = "contains no agents: a folder of an ADK agent has agent.py or root_agent.yaml"
            raise InputError(Problem(file=str(place), message=message))
        return Served(agents, [str(folder)])
    config = config_of(place, own_code=False)
    if not config.providers:
        raise InputError(Problem(file=str(place), message="names no `providers:` to talk to"))
    file = str(place.resolve())
    paths = [
        Path(path.rpartition(":")[0] or path) if not Path(path).exists() else Path(path)
        for path in config.dataset or ()
    ]
    folders = [(path if path.is_dir() else path.parent).resolve() for path in paths]
    return Served(
        {name: {"config": file, "provider": name} for name in variant_names(config)},
        [str(folder) for folder in dict.fromkeys(folders) if folder.is_dir()],
    )


def _is_agent(folder: Path) -> bool:
    """Tell a folder of an agent from a package that agents share, which has `__init__.py` too."""
    if any((folder / name).is_file() for name in ("agent.py", "root_agent.yaml")):
        return True
    package = folder / "__init__.py"
    return package.is_file() and b"root_agent" in read_bytes(package)


def names_providers(file: Path) -> bool:
    """Tell a config with `providers:` from settings of a server; both are mappings in YAML."""
    try:
        value = Document(str(file), read_bytes(file), "yaml").value()
    except InputError:
        return False  # its reader reports the problem
    return isinstance(value, dict) and "providers" in value


def is_configured(agent: AgentLike) -> bool:
    """Tell whether an agent is a provider of a config, and not one named directly."""
    return isinstance(agent, dict) and "config" in agent and "type" not in agent


def make_agent(agent: AgentLike) -> ConfiguredProvider[Any]:
    """Build the provider of an agent; paths start here, or in the folder of its config.

    Raises:
        InputError: it is not one, or it refuses its options.
    """
    if isinstance(agent, dict) and is_configured(agent):
        config = config_of(Path(agent["config"]))
        (place,) = variants_of(config, agent.get("provider"))[:1]
        catalog = load_catalog(config.agents) if config.agents else {}
        return configured(config, place, catalog)
    spec = agent_spec(agent) if isinstance(agent, str) else agent
    if spec is None:
        raise InputError(Problem(file=str(agent), message=NO_AGENT))
    return make_provider(spec, Surroundings(Path()))


def in_own_process(
    config: Config | None, spec: dict[str, Any] | None, *, is_played: bool = True
) -> tuple[Config | None, dict[str, Any] | None]:
    """Have a program run in its own process.

    With changed texts it does so anyway, so that both compared plays run in the same way.
    If it is not played at all, nothing of it is loaded, not even to find out what records it.
    """
    changes: dict[str, Any] = {"workers": "process"}
    if not is_played:
        changes["instrument"] = False
    if spec is not None and spec.get("type") == "python":
        spec = {**spec, **changes}
    if config is not None:
        providers = [
            msgspec.structs.replace(each, **changes) if isinstance(each, PythonOptions) else each
            for each in config.providers
        ]
        config = msgspec.structs.replace(config, providers=providers)
    return config, spec


def variant_names(config: Config) -> list[str]:
    """Name the providers of a config by ``agent_id``, else by type; duplicates get a number."""
    names: list[str] = []
    for options in config.providers:
        plain = options.agent_id or options.type
        name, number = plain, 1
        while name in names:
            number += 1
            name = f"{plain}-{number}"
        names.append(name)
    return names


def variants_of(config: Config | None, wanted: str | None) -> list[int]:
    """Return which providers to evaluate, by their place in the config, from 0.

    Without a config there is one agent. ``wanted`` is the name of the only one to evaluate.

    Raises:
        InputError: there is no provider, or none of that name.
    """
    if config is None:
        if wanted is not None:
            message = "can only be used with a config that has several `providers`"
            raise InputError(f"{option('variant')} {message}")
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


def build_agent(
    config: Config | None,
    spec: dict[str, Any] | None,
    variant: int,
    catalog: Catalog,
    texts: Mapping[str, str] = NO_TEXTS,
) -> ConfiguredProvider[Any]:
    """Build the provider of a spec, else one of a config, by its place there from 0.

    Paths of a spec start in the current folder, those in a config in the folder of the config.
    ``texts`` are components that are changed.

    Raises:
        InputError: there is no such provider, or it refuses its options.
    """
    if spec is not None:
        return make_provider(spec, Surroundings(Path(), catalog, texts))
    if config is None or variant >= len(config.providers):
        raise InputError(f"there is no provider number {variant + 1} here")
    return configured(config, variant, catalog, texts)


def only_provider(
    config: Config, catalog: Catalog, texts: Mapping[str, str] = NO_TEXTS
) -> ConfiguredProvider[Any]:
    """Build the one provider of a config; paths start in its folder.

    Raises:
        InputError: it names none or several, or the provider refuses its options.
    """
    if len(config.providers) != 1:
        message = f"names {counted(len(config.providers), 'provider')}: exactly one is needed here"
        raise InputError(Problem(file=config.file, path="providers", message=message))
    return configured(config, 0, catalog, texts)


def configured(
    config: Config, index: int, catalog: Catalog, texts: Mapping[str, str] = NO_TEXTS
) -> ConfiguredProvider[Any]:
    """Build one of a config's providers; raises InputError when it refuses its options."""
    try:
        return build_provider(config.providers[index], Surroundings(config.folder, catalog, texts))
    except InputError as error:
        raise InputError(
            Problem(
                file=config.file,
                path=".".join(part for part in (f"providers[{index}]", problem.path) if part),
                message=problem.message,
            )
            for problem in error.problems
        ) from None
