"""``${VAR}`` in configs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from baton.formats.document import Document
from baton.formats.explain import Path
from baton.model import InputError, Problem, nearest
from baton.model.secrets import remember, secrets_in

_REFERENCE = re.compile(r"\$(?:(\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\})")


def interpolate(document: Document, value: Any, environment: Mapping[str, str]) -> Any:
    """Put environment variables in: ``${VAR}``, or ``${VAR:-default}``; ``$$`` is a dollar sign.

    A value that is one reference and nothing else is read as YAML, so that a number stays a
    number. What counts as secret of the values is masked from now on wherever it would come out,
    by the reference that it was put in for.

    Raises:
        InputError: with every variable that is not set and has no default.
    """
    problems: list[Problem] = []
    done = _interpolate(document, value, environment, (), problems)
    if problems:
        raise InputError(problems)
    return done


def _interpolate(
    document: Document, value: Any, env: Mapping[str, str], path: Path, problems: list[Problem]
) -> Any:
    if isinstance(value, dict):
        return {
            key: _interpolate(document, item, env, (*path, key), problems)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _interpolate(document, item, env, (*path, index), problems)
            for index, item in enumerate(value)
        ]
    if not isinstance(value, str) or "$" not in value:
        return value

    def replaced(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        name, default = match["name"], match["default"]
        if name in env and (env[name] or default is None):
            option = next((str(key) for key in reversed(path) if isinstance(key, str)), "")
            remember(dict.fromkeys(secrets_in(env[name], name, option), f"${{{name}}}"))
            return env[name]
        if default is None:
            alike = nearest(name, env, 1, 0.8)
            hint = f"; did you mean `{alike[0]}`?" if alike else ""
            message = f"the environment variable {name} is not set{hint}"
            problems.append(document.problem_at(path, message))
            return ""
        return str(default[2:])

    text = _REFERENCE.sub(replaced, value)
    whole = _REFERENCE.fullmatch(value)
    return _scalar(text) if whole is not None and not whole[1] else text


def _scalar(text: str) -> Any:
    try:
        from baton.formats.yaml import load_yaml  # not needed without a config

        value = load_yaml(text, "")
    except InputError:
        return text
    return value if isinstance(value, bool | int | float) else text
