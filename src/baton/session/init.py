"""Starting a project: a config, a first case, a CI workflow, and agents to try it on."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from baton.config import load_config
from baton.config.trust import Trust
from baton.datasets.draft_case import draft_case
from baton.formats.yaml import dump_yaml
from baton.model import Case, Content, ExpectedTurn, InputError, Problem
from baton.model.option_spelling import option
from baton.plugins import is_installed
from baton.plugins.origin import install, origin_notes, requirement
from baton.providers.instrument.frameworks import examine, unrecorded
from baton.session.agent_under_test import agent_spec
from baton.session.evaluate import evaluate

_WORKFLOWS = {"github": ".github/workflows/baton.yml", "gitlab": ".gitlab-ci.yml"}


class _Sample(NamedTuple):
    agent: str
    file: str
    message: str


SAMPLE = _Sample("desk.py:answer", "desk.py", "Please refund order 42.")
"""The built-in agents for trying it, if there are no agents yet."""


Ci = Literal["github", "gitlab", "none"]
CIS: tuple[Ci, ...] = ("github", "gitlab", "none")


class Started(NamedTuple):
    """The files that were written, the case's last, and the agents that the first case expects.

    ``states_answer``: it also expects facts of results in the answer.
    """

    files: list[Path]
    agents: list[str]
    states_answer: bool


def init(
    agent: str, message: str = SAMPLE.message, ci: str = "none", *, force: bool = False
) -> Started:
    """Write a config, a first case and a CI workflow into this folder.

    The agents are asked once, and the case expects the same behaviour from then on. The config is
    trusted from now on, because the user names its agents here.

    Args:
        agent: a folder of ADK agents, the address of an ADK server, ``module:function``, or
            ``sample`` for two sample agents.
        message: the first message of the user.
        ci: ``github``, ``gitlab`` or ``none``.
        force: overwrite existing files.

    Raises:
        InputError: files exist already, ``agent`` is not an agent, or the agents cannot be asked.
    """
    known = next((each for each in CIS if each == ci), None)
    if known is None:
        raise InputError(f"{option('ci')}: `{ci}` is unknown; choose from {', '.join(CIS)}")
    answers = answers_of(agent, message, known)
    texts = files_of(answers)
    there = [Path(name) for name in [*texts, answers.cases] if Path(name).exists()]
    if there and not force:
        how = f"already exists; {option('force', True)} overwrites it"
        raise InputError(Problem(file=str(path), message=how) for path in there)
    if answers.sample is not None:
        _write(answers.sample, texts[answers.sample])
    case = first_case(answers)
    for name, text in {**texts, answers.cases: case.text}.items():
        _write(name, text)
    config = load_config("baton.yaml", own_code=False)
    # The user has just requested this file, with these agents.
    Trust([Path()]).require(Path(config.file), config.data, config.claims, "baton eval baton.yaml")
    return Started(
        [Path(name) for name in [*texts, answers.cases]], case.agents, case.states_answer
    )


def _write(name: str, text: str) -> None:
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError(Problem(file=name, message=message)) from None


class Answers(NamedTuple):
    """The user's answers. ``provider`` is the spec of the provider that plays the cases.

    ``packages`` are what it needs in addition to the agents themselves. ``sample`` is the file of
    the built-in agents, if they are used.
    """

    message: str
    ci: Ci
    provider: dict[str, Any]
    packages: list[str]
    sample: str | None = None

    @property
    def cases(self) -> str:
        """The dataset."""
        return "evals/first.yaml"


def answers_of(agent: str, message: str, ci: Ci) -> Answers:
    """Find the provider for the cases, and whether spans are needed to show what the agents do.

    Raises:
        InputError: it is not an agent, or its instrumentation is not installed.
    """
    if agent == "sample":
        spec = {"type": "python", "target": SAMPLE.agent}
        return Answers(message, ci, spec, [requirement()], SAMPLE.file)
    named_agent = agent_spec(agent)
    if named_agent is None:
        problem = (
            "is not an agent: a folder with agent.py, the address of an ADK server, "
            "module:function, or `sample`"
        )
        raise InputError(Problem(path=option("agent"), message=f"`{agent}` {problem}"))
    if named_agent["type"] != "python":
        extra = "adk" if named_agent["type"] == "adk_local" else ""
        return Answers(message, ci, named_agent, [requirement(extra)])
    used = examine(named_agent["target"], Path())
    if used.is_of_adk:
        spec = {"type": "adk_local", "path": named_agent["target"]}
        return Answers(message, ci, spec, [requirement("adk")])
    if [each.module for each in used.imported] == ["claude_agent_sdk"]:
        # Its messages show what its agents do, and the provider `python` captures them.
        return Answers(message, ci, named_agent, [requirement("claude")])
    if not used.has_spans:
        return Answers(message, ci, named_agent, [requirement()])
    lacking = unrecorded(used.imported)
    packages = [*dict.fromkeys(each.package for each in used.imported if each.package)]
    has_sdk = is_installed("opentelemetry.sdk")
    if lacking or not has_sdk:
        names = ", ".join(dict.fromkeys(each.name for each in used.imported)) or "OpenTelemetry"
        wanted = [*([] if has_sdk else [requirement("otel")]), *dict.fromkeys(lacking.values())]
        raise InputError(
            f"`{agent}` uses {names}, and what its agents do is known from its spans. Install what "
            f"records them, then do this again: {install(*wanted)}"
        )
    return Answers(
        message, ci, named_agent | {"instrument": True}, [requirement("otel"), *packages]
    )


def files_of(answers: Answers) -> dict[str, str]:
    """Return all files except the dataset, by path."""
    config = {"name": "agents", "dataset": answers.cases, "providers": [answers.provider]}
    head = (
        "# `baton eval` plays the cases, and scores what they state and what the record proves.\n"
    )
    texts = {"baton.yaml": head + dump_yaml(json.loads(json.dumps(config)))}
    workflow = _WORKFLOWS.get(answers.ci)
    if workflow is not None:
        template = _template(f"{answers.ci}.yml")
        # Each note is above the line that installs, with the same indentation.
        column = " " * (6 if answers.ci == "github" else 4)
        notes = "".join(f"{column}# {note}\n" for note in origin_notes(answers.packages))
        installed = template.replace("INSTALL", install(*answers.packages))
        texts[workflow] = installed.replace("ORIGIN", notes)
    if answers.sample is not None:
        texts[answers.sample] = _template("desk.py.txt")
    return texts


def _template(name: str) -> str:
    return files("baton").joinpath("session", "starter", name).read_text(encoding="utf-8")


_HEAD = """\
# Expects what the agents did in one run. Facts in `prompt_contains` came from the user, those in
# `response_contains` from tools and other agents: remove what may differ the next time.
"""
_KEPT = ("id", "input", "agents", "dispatches", "response_contains")


class FirstCase(NamedTuple):
    """A dataset with one case, the agents it expects, and whether it expects facts of results."""

    text: str
    agents: list[str]
    states_answer: bool


def first_case(answers: Answers) -> FirstCase:
    """Ask the agents once, and expect the same agents and dispatches.

    An LLM's words differ from time to time, so texts and arguments are left out, except facts that
    were passed on: the user's in a dispatch, and those of results in the answer.

    Raises:
        InputError: the agents cannot be asked, or their run shows no agents.
    """
    turn = ExpectedTurn(input=Content(text=answers.message))
    case = Case(id="first", turns=[turn])
    (result,) = evaluate([case], answers.provider, ["agent_chain"]).results
    if result.error is not None or result.trace is None:
        raise InputError(f"the agents did not answer: {result.error}")
    drafted = draft_case(result.trace) | {"id": "first"}
    kept = {key: drafted[key] for key in _KEPT if key in drafted}
    if not kept.get("agents"):
        how = "see docs/providers.md"
        if answers.provider.get("type") == "python" and not answers.provider.get("instrument"):
            target = answers.provider["target"]
            how = (
                f'have `{target}` return {{"output": ANSWER, "agents": [NAME, ...]}}, as in '
                "docs/quickstarts/python.md"
            )
        raise InputError(f"the run does not tell which agents worked: {how}")
    text = _HEAD + dump_yaml({"cases": [kept]})
    return FirstCase(text, list(kept["agents"]), "response_contains" in kept)
