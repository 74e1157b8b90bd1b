"""Starting a project: a config, a first case, a CI workflow, and agents to try it on."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from baton.config import load_config
from baton.config.trust import Trust
from baton.datasets.draft import draft_case
from baton.formats.yaml import dump_yaml
from baton.model import Case, Content, ExpectedTurn, InputError, Problem
from baton.model.option_names import option
from baton.session.agents import agent_spec
from baton.session.evaluate import evaluate

_WORKFLOWS = {"github": ".github/workflows/baton.yml", "gitlab": ".gitlab-ci.yml"}
_EXTRAS = {"adk_local": "[adk]"}


class _Sample(NamedTuple):
    agent: str
    file: str
    message: str


SAMPLE = _Sample("desk.py:answer", "desk.py", "Please refund order 42.")
"""Agents to try it on, where there are none yet."""


Ci = Literal["github", "gitlab", "none"]
CIS: tuple[Ci, ...] = ("github", "gitlab", "none")


class Started(NamedTuple):
    """The files that were written, and the agents that the first case expects."""

    files: list[Path]
    agents: list[str]


def init(
    agent: str, message: str = SAMPLE.message, ci: str = "none", *, force: bool = False
) -> Started:
    """Write a config, a first case and a CI workflow into this folder.

    The agents are asked once, and what they did is what the case expects from then on. The config
    is trusted from now on, as the user names its agents here.

    Args:
        agent: a folder of ADK agents, the address of an ADK server, ``module:function``, or
            ``sample`` for two of ours.
        message: the first message of the user.
        ci: ``github``, ``gitlab`` or ``none``.
        force: overwrite files that are there.

    Raises:
        InputError: files that are there already, what is no agent, or agents that cannot be asked.
    """
    known = next((each for each in CIS if each == ci), None)
    if known is None:
        raise InputError(f"{option('ci')}: `{ci}` is not known; known: {', '.join(CIS)}")
    answers = Answers(agent=agent, message=message, ci=known)
    texts = files_of(answers)
    there = [Path(name) for name in [*texts, answers.cases] if Path(name).exists()]
    if there and not force:
        how = f"is there already; {option('force', True)} writes over it"
        raise InputError(Problem(file=str(path), message=how) for path in there)
    if answers.sample is not None:
        _write(answers.sample, texts[answers.sample])
    case = first_case(answers)
    for name, text in {**texts, answers.cases: case.text}.items():
        _write(name, text)
    config = load_config("baton.yaml", own_code=False)
    # The user has just had it written, with agents of their own choice.
    Trust([Path()]).require(Path(config.file), config.data, config.claims, "baton eval baton.yaml")
    return Started([Path(name) for name in [*texts, answers.cases]], case.agents)


def _write(name: str, text: str) -> None:
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError(Problem(file=name, message=message)) from None


class Answers(NamedTuple):
    """What was answered; ``agent`` is ``sample`` for the agents that come along."""

    agent: str
    message: str
    ci: Ci

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
                "is not an agent: a folder with agent.py, the address of an ADK server, "
                "module:function, or `sample`"
            )
            raise InputError(Problem(path=option("agent"), message=f"`{word}` {message}"))
        return spec


def files_of(answers: Answers) -> dict[str, str]:
    """Return the files but the dataset, by path; raises InputError for what is no agent."""
    provider = answers.provider
    config = {"name": "agents", "dataset": answers.cases, "providers": [provider]}
    head = "# `baton eval` plays the cases, and scores what they state.\n"
    texts = {"baton.yaml": head + dump_yaml(json.loads(json.dumps(config)))}
    workflow = _WORKFLOWS.get(answers.ci)
    if workflow is not None:
        install = f"baton-evals{_EXTRAS.get(provider['type'], '')}"
        texts[workflow] = _template(f"{answers.ci}.yml").replace("INSTALL", install)
    if answers.sample is not None:
        texts[answers.sample] = _template("desk.py.txt")
    return texts


def _template(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


_HEAD = """\
# What the agents did when they were asked once, as what is expected from now on.
# Say more of it: tools, response_contains, what the dispatch has to carry.
"""
_KEPT = ("id", "input", "agents", "dispatches")


class FirstCase(NamedTuple):
    """A dataset with one case, and the agents it expects."""

    text: str
    agents: list[str]


def first_case(answers: Answers) -> FirstCase:
    """Ask the agents once, and expect the same agents and dispatches.

    What an LLM says differs from time to time, so texts and arguments are left out.

    Raises:
        InputError: the agents cannot be asked, or their run tells nothing of agents.
    """
    turn = ExpectedTurn(input=Content(text=answers.message))
    case = Case(id="first", turns=[turn])
    (result,) = evaluate([case], answers.provider, ["agent_chain"]).results
    if result.error is not None or result.trace is None:
        raise InputError(f"the agents could not be asked: {result.error}")
    drafted = draft_case(result.trace) | {"id": "first"}
    kept = {key: drafted[key] for key in _KEPT if key in drafted}
    if not kept.get("agents"):
        raise InputError("the run does not tell which agents worked: see docs/providers.md")
    return FirstCase(_HEAD + dump_yaml({"cases": [kept]}), list(kept["agents"]))
