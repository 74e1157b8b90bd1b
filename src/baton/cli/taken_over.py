"""What `--resume` and `--only-failed` take over from a folder, and what the user names again.

An evaluation folder is data: anybody may have written it. What it says of cases, filters and
judges is taken over. Its provider, its code and files elsewhere are not: the folder only tells
what to name.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.model import InputError, Problem
from baton.model.secrets import masked
from baton.plugins import names_code

from .notes import note
from .request import Request
from .target import DEFAULT_CONFIG

SETTLED = (
    "--resume takes config, dataset, cases, evaluators and repeats from the folder: leave them "
    "out, or start a new evaluation"
)


class TakenOver(NamedTuple):
    """What to evaluate; ``criteria_found`` says that the folder named the criteria."""

    request: Request
    criteria_found: bool


def same_agent(request: Request, its: Request) -> bool:
    """Tell whether the config or the agent that is given is the one of the folder."""
    if not request.target or not its.target:
        return request.target == its.target
    now, then = request.target[0], its.target[0]
    return masked(now) == then or _is_same_file(now, then)


def taken_over(request: Request, its: Request, folder: Path, option: str) -> TakenOver:
    """Return what a folder was asked for, with provider, code and places as given now.

    Raises:
        InputError: what has to be named again, with the words to use; or something is given that
            the folder settles.
    """
    needed = _needed(its)
    given = {name: getattr(request, name) for name in _PLACES if getattr(request, name)}
    # Criteria may always be named: that is how one trusts the code in them.
    free = [name for name in given if name in needed or name == "criteria"]
    rest = {"target": [], "judge": {}, **{name: _NOTHING[name] for name in free}}
    if not msgspec.structs.replace(request, **rest).is_empty:
        raise InputError(SETTLED)
    missing = [name for name in needed if name not in given]
    if "datasets" in missing and len(request.target) > 1:
        missing.remove("datasets")
    target = list(request.target)
    more: dict[str, object] = {}
    if target:
        target += [] if target[1:] else its.target[1:]
    elif not its.target or _is_same_file(its.target[0], str(DEFAULT_CONFIG)):
        # The config is found again, and trusted or not as ever: it is not named by the folder.
        more = {"dataset": [*its.target[1:], *its.dataset]}
    else:
        missing.insert(0, "agent")
    if missing:
        raise InputError(Problem(file=str(folder), message=_message(its, missing, option, folder)))
    if request.target and its.target and not same_agent(request, its):
        then, now = its.target[0], masked(request.target[0])
        note(f"changed since, and resumed anyway: `{then}` played it, now `{now}`")
    more |= given
    found = its.criteria is not None and "criteria" not in given
    return TakenOver(msgspec.structs.replace(its, target=target, **more), found)


_PLACES = ("dataset", "evaluators", "criteria", "agents")
_NOTHING: dict[str, object] = {"dataset": [], "evaluators": [], "criteria": None, "agents": None}


def _needed(its: Request) -> list[str]:
    """Return the parts of a request that name code, or files outside the current folder."""
    found = []
    if any(_is_elsewhere(path) for path in its.target[1:]):
        found.append("datasets")
    if any(_is_elsewhere(path) for path in its.dataset):
        found.append("dataset")
    if any(names_code(name) for name in its.evaluators):
        found.append("evaluators")
    found += [
        name
        for name, path in (("criteria", its.criteria), ("agents", its.agents))
        if path is not None and _is_elsewhere(path)
    ]
    return found


def _is_same_file(one: str, other: str) -> bool:
    try:
        return Path(one).resolve() == Path(other).resolve()
    except (OSError, RuntimeError, ValueError):
        return False  # one of them is not a path


def _is_elsewhere(path: str) -> bool:
    """Tell whether a path, or `FILE:case1,case2`, leads out of the current folder."""
    try:
        return not Path(path).resolve().is_relative_to(Path.cwd())
    except (OSError, RuntimeError, ValueError):
        return True  # not a path, or a loop of links


def _message(its: Request, missing: Sequence[str], option: str, folder: Path) -> str:
    if any("***" in word for word in its.target):
        return f"the folder does not keep secrets: name the agent with {option} again"
    words = [*its.target]
    for name, flag in (
        ("dataset", "--dataset"),
        ("evaluators", "--evaluator"),
        ("criteria", "--config_file_path"),
        ("agents", "--agents"),
    ):
        if name in missing:
            value = getattr(its, name)
            values = value if isinstance(value, list) else [value]
            words += [word for each in values for word in (flag, each)]
    command = shlex.join(["baton", "eval", *words, option, str(folder)])
    return (
        "a folder does not choose what is run, and names no files elsewhere: if you trust it, name "
        f"them as it was made: {command}"
    )
