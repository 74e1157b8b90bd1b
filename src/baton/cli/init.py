"""``baton init``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import NamedTuple

from baton.model import InputError
from baton.session.init import SAMPLE, init

from .options import Flag
from .usage_messages import note, say


class _Question(NamedTuple):
    flag: str
    text: str
    default: str


_AGENT = _Question(
    "--agent",
    "Which agents? A folder with agent.py, the address of an ADK server, module:function, or "
    "`sample` for two sample agents",
    "sample",
)
_MESSAGE = _Question("--message", "What does a user ask them first?", SAMPLE.message)
_CI = _Question("--ci", "Where do tests run? github, gitlab or none", "github")


def init_command(
    *,
    agent: str | None = None,
    message: str | None = None,
    ci: str | None = None,
    force: Flag = False,
) -> int:
    """Write a config, a first case and a CI workflow into this folder.

    Runs the agents once; the case expects what they did. Asks for what is not given.

    Parameters
    ----------
    agent
        A folder of ADK agents, the address of an ADK server, module:function, or `sample` for two
        sample agents. Whether a function uses LangGraph or pydantic-ai is detected.
    message
        The first message to the agents; it becomes the first case.
    ci
        Where tests run: `github`, `gitlab` or `none`.
    force
        Overwrite existing files.
    """
    words = (_answer_to(_AGENT, agent), _answer_to(_MESSAGE, message), _answer_to(_CI, ci))
    # What agents print is not part of this output.
    with redirect_stdout(sys.stderr):
        started = init(*words, force=force)
    for file in started.files:
        note(f"wrote {file}")
    if len(started.agents) > 1 and not started.states_answer:
        note(
            "the case expects nothing of the answer: no number or name in it comes from a result "
            f"and stays the same. Add `response_contains: [...]` to {started.files[-1]}"
        )
    say(f"The case expects {' → '.join(started.agents)}. Run it: baton eval")
    return 0


def _answer_to(question: _Question, given: str | None) -> str:
    """Return what was given, else ask; raises InputError if there is no terminal."""
    if given is not None:
        if not given.strip():
            raise InputError(f"{question.flag} is empty")
        return given
    if not sys.stdin.isatty():
        raise InputError(f"give {question.flag}: there is no terminal to ask on")
    sys.stderr.write(f"{question.text} [{question.default}]: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or question.default
