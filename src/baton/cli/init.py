"""``baton init``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from cyclopts import Parameter

from baton.config import load_config
from baton.config.trust import Trust
from baton.model import InputError, Problem
from baton.session.starter import SAMPLE, Answers, files_of, first_case

from .messages import note, say

Ci = Literal["github", "gitlab", "none"]
_CIS: tuple[Ci, ...] = ("github", "gitlab", "none")


class _Question(NamedTuple):
    flag: str
    text: str
    default: str


_AGENT = _Question(
    "--agent",
    "Which agents? A folder with agent.py, the address of an ADK server, module:function, or "
    "`sample` for two of ours",
    "sample",
)
_MESSAGE = _Question("--message", "What does a user ask them first?", SAMPLE.message)
_CI = _Question("--ci", "Where do tests run? github, gitlab or none", "github")


def init_command(
    *,
    agent: str | None = None,
    message: str | None = None,
    ci: str | None = None,
    force: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Write a config, a first case and a CI workflow into this folder.

    The agents are asked once, and what they did is what the case expects from then on. What is
    not given is asked for.

    Parameters
    ----------
    agent
        A folder of ADK agents, the address of an ADK server, module:function, or `sample`.
    message
        The first message of the user.
    ci
        `github`, `gitlab` or `none`.
    force
        Overwrite existing files.
    """
    answers = Answers(
        agent=_asked(_AGENT, agent), message=_asked(_MESSAGE, message), ci=_ci(_asked(_CI, ci))
    )
    files = files_of(answers)
    there = [Path(name) for name in [*files, answers.cases] if Path(name).exists()]
    if there and not force:
        raise InputError(
            Problem(file=str(path), message="is there already; --force writes over it")
            for path in there
        )
    _write({name: text for name, text in files.items() if name == answers.sample})
    # What agents print is no part of what is said here.
    with redirect_stdout(sys.stderr):
        case = first_case(answers)
    _write({**files, answers.cases: case.text})
    for name in [*files, answers.cases]:
        note(f"wrote {name}")
    config = load_config("baton.yaml", own_code=False)
    # The user has just had it written, with agents of their own choice.
    Trust([Path()]).require(Path(config.file), config.data, config.claims, "baton eval baton.yaml")
    say(f"The case expects {' → '.join(case.agents)}. Run it: baton eval")
    return 0


def _asked(question: _Question, given: str | None) -> str:
    """Return what was given, else ask; raises InputError where there is nobody to ask."""
    if given is not None:
        if not given.strip():
            raise InputError(f"{question.flag} is empty")
        return given
    if not sys.stdin.isatty():
        raise InputError(f"not a terminal: give {question.flag}")
    sys.stderr.write(f"{question.text} [{question.default}]: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or question.default


def _ci(word: str) -> Ci:
    for known in _CIS:
        if word == known:
            return known
    raise InputError(f"--ci: `{word}` is not known; known: {', '.join(_CIS)}")


def _write(files: dict[str, str]) -> None:
    for name, text in files.items():
        path = Path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"cannot be written: {error.strerror}"
            raise InputError(Problem(file=name, message=message)) from None
