"""How to run, by the keys of judge-llm: ``num_runs``, ``max_workers``, ``parallel_execution``."""

from __future__ import annotations

from baton.config.config_file import ConfigFile
from baton.formats.document import Document
from baton.model import Problem, RunOptions

# Workers that judge-llm uses if its config states none: its configs run here as they are.
_WORKERS = 4


def run_options(document: Document, spec: ConfigFile, problems: list[Problem]) -> RunOptions:
    """Work out how to run, from Baton's keys or from judge-llm's; not from both."""
    agent = spec.agent
    for ours, theirs in (
        ("repeat", "num_runs"),
        ("concurrency", "max_workers"),
        ("concurrency", "parallel_execution"),
    ):
        if getattr(spec, ours) is not None and getattr(agent, theirs) is not None:
            message = f"means the same as `{ours}`: leave one of them out"
            problems.append(document.problem_at(("agent", theirs), message))
    workers = agent.max_workers or _WORKERS
    concurrency = 1 if agent.parallel_execution is False else workers
    names = ("timeout", "retry_errors", "fail_fast", "max_agent_cost")
    stated = {name: getattr(spec, name) for name in names}
    options = {name: value for name, value in stated.items() if value is not None}
    return RunOptions(
        repeat=spec.repeat or agent.num_runs or 1,
        concurrency=spec.concurrency or concurrency,
        **options,
    )
