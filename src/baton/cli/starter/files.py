"""The files, filled in."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from baton.formats.yaml import dump_yaml
from baton.model import InputError, Problem
from baton.session.agents import agent_spec

_WORKFLOWS = {"github": ".github/workflows/baton.yml", "gitlab": ".gitlab-ci.yml"}
_EXTRAS = {"adk_local": "[adk]"}


class _Sample(NamedTuple):
    agent: str
    file: str
    message: str


SAMPLE = _Sample("desk.py:answer", "desk.py", "Please refund order 42.")
"""Agents to try it on, where there are none yet."""


class Answers(NamedTuple):
    """What was answered; ``agent`` is ``sample`` for the agents that come along."""

    agent: str
    message: str
    ci: Literal["github", "gitlab", "none"]

    @property
    def cases(self) -> str:
        """The dataset."""
        return "evals/first.yaml"

    @property
    def sample(self) -> str | None:
        """The file of the agents that come along, if it is these."""
        return SAMPLE.file if self.agent == "sample" else None

    @property
    def provider(self) -> dict[str, Any]:
        """The spec of what plays the cases; raises InputError for what is no agent."""
        word = SAMPLE.agent if self.agent == "sample" else self.agent
        spec = agent_spec(word)
        if spec is None:
            message = (
                "is no agent: a folder with agent.py, the address of an ADK server, "
                "module:function, or `sample`"
            )
            raise InputError(Problem(path="--agent", message=f"`{word}` {message}"))
        return spec


def files_of(answers: Answers) -> dict[str, str]:
    """Return the files but the dataset, by path; raises InputError for what is no agent."""
    provider = answers.provider
    found = {"baton.yaml": _config(answers, provider)}
    workflow = _WORKFLOWS.get(answers.ci)
    if workflow is not None:
        install = f"baton-evals{_EXTRAS.get(provider['type'], '')}"
        found[workflow] = _template(f"{answers.ci}.yml").replace("INSTALL", install)
    if answers.sample is not None:
        found[answers.sample] = _template("desk.py.txt")
    return found


def _config(answers: Answers, provider: dict[str, Any]) -> str:
    head = "# `baton eval` plays the cases, and scores what they state.\n"
    told = {"name": "agents", "dataset": answers.cases, "providers": [provider]}
    return head + dump_yaml(json.loads(json.dumps(told)))


def _template(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
