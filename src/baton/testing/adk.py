"""ADK's ``AgentEvaluator``, so that tests written for it run with one import changed."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Generator, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from baton.config.trust import NOBODY, Trust, trust_of
from baton.formats.document import Document, read_bytes
from baton.model import CaseResult, Dataset, InputError, Problem, counted
from baton.model.score import digits, passes
from baton.model.visible import visible, visible_line, without_commands
from baton.reports.terminal import failure_text
from baton.runner.loop import run
from baton.session.convert import convert
from baton.session.evaluate import prepare_evaluation

from .suite import Suite

_TEST_FILES = "*.test.json"


class AgentEvaluator:
    """Plays eval sets with an agent module, and migrates old test files."""

    @staticmethod
    def evaluate(
        agent_module: str,
        eval_dataset_file_path_or_dir: str,
        num_runs: int = 2,
        agent_name: str | None = None,
        initial_session_file: str | None = None,
        print_detailed_results: bool = True,  # noqa: ARG004 - a failure always shows all details
        *,
        trust: str | Path | Sequence[str | Path] = (),
    ) -> Awaitable[None]:
        """Play every case ``num_runs`` times. Awaiting the result is optional.

        As in ADK, a metric passes if its mean over all runs and turns of a case reaches the
        threshold, and a metric that could not be evaluated fails. Unlike in ADK, every file of a
        folder is played before the test fails.

        Args:
            agent_module: a module or package with an ``agent`` module that has ``root_agent``.
            eval_dataset_file_path_or_dir: an eval set, or a folder that is searched recursively
                for ``*.test.json``. ``test_config.json`` next to a file states what to score.
            num_runs: how often each case is played.
            agent_name: a sub-agent to play instead of the root.
            initial_session_file: a session whose state every case starts with.
            print_detailed_results: ignored; accepted for compatibility with ADK.
            trust: folders whose ``test_config.json`` may name functions (`custom_metrics`).

        Raises:
            AssertionError: a case failed, or could not be evaluated.
            InputError: a file or an argument has errors.
        """
        try:
            spec = importlib.util.find_spec(agent_module)
        except ModuleNotFoundError:
            spec = None
        if spec is None:
            raise InputError(
                f"`{agent_module}` cannot be imported: is its folder on the path of Python?"
            )
        if spec.submodule_search_locations:
            folder = Path(next(iter(spec.submodule_search_locations)))
        elif spec.origin is None or Path(spec.origin).stem != "agent":
            raise InputError(
                f"`{agent_module}` is not an agent: name the package that has `agent.py`"
            )
        else:
            folder = Path(spec.origin).parent
        agent = {"type": "adk_local", "path": str(folder)}
        if agent_name is not None:
            agent["agent"] = agent_name
        state = _state(Path(initial_session_file)) if initial_session_file else {}
        suites = [
            suite_with_state(file, agent, num_runs, state, trust_of(trust))
            for file in _files(Path(eval_dataset_file_path_or_dir))
        ]
        checking = _check(suites)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            run(checking)
            return _Done()
        return checking

    @staticmethod
    def migrate_eval_data_to_new_schema(
        old_eval_data_file: str, new_eval_data_file: str, initial_session_file: str | None = None
    ) -> None:
        """Write an old test file as an eval set, with the session of a separate file.

        This is `baton convert OLD --to adk -o NEW --initial-session FILE`.

        Raises:
            InputError: a file has errors.
        """
        convert(
            old_eval_data_file,
            "adk",
            new_eval_data_file,
            initial_session=initial_session_file or None,
        )


class _Done:
    """A result that is already complete, for tests that await it."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


async def _check(suites: Sequence[Suite]) -> None:
    failed = [
        text for suite in suites for text in _failures((await suite.evaluation.play()).results)
    ]
    if failed:
        raise AssertionError(without_commands(visible("\n\n".join(failed))))


def _failures(results: Sequence[CaseResult]) -> Iterator[str]:
    """Yield for each failed case the reason, and the runs that did not pass."""
    repeats = max((result.repeat for result in results), default=0) + 1
    for position in sorted({result.position for result in results}):
        runs = [result for result in results if result.position == position]
        lines = list(_below(runs))
        if lines:
            shown = [failure_text(r, repeats=repeats) for r in runs if r.status != "passed"]
            yield "\n".join([visible_line(runs[0].case_id), *lines, *shown])


def _below(runs: Sequence[CaseResult]) -> Iterator[str]:
    """Yield the metrics of a case with too low a mean over its runs, and those without a value."""
    for run_ in runs:
        if run_.error is not None or not run_.scores:
            yield f"  run {run_.repeat + 1} could not be evaluated"
    for name in dict.fromkeys(score.evaluator for r in runs for score in r.scores):
        scores = [score for r in runs for score in r.scores if score.evaluator == name]
        values = [score.value for score in scores if score.value is not None]
        unscored = len(scores) - len(values)
        if unscored:
            yield f"  {name} could not be evaluated in {unscored} of {counted(len(scores), 'run')}"
        threshold = next((s.threshold for s in scores if s.threshold is not None), None)
        if values and threshold is not None and not passes(fmean(values), threshold):
            over = counted(len(runs), "run")
            mean, places = fmean(values), digits(fmean(values), threshold)
            yield f"  {name} is {mean:.{places}f} over {over}, needs {threshold:.{places}f}"


def suite_with_state(
    file: Path,
    agent: dict[str, str],
    runs: int,
    state: dict[str, Any],
    trust: Trust = NOBODY,
) -> Suite:
    """Return a suite whose cases start with a state; values in a case take precedence."""
    suite = Suite(prepare_evaluation(file, agent, repeat=runs, trust=trust))
    if not state:
        return suite
    cases = [msgspec.structs.replace(case, state={**state, **case.state}) for case in suite.dataset]
    old = suite.dataset
    dataset = Dataset(cases, name=old.name, format=old.format, files=old.files)
    return Suite(suite.evaluation._replace(cases=dataset))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.rglob(_TEST_FILES))
    if not files:
        raise InputError(Problem(file=str(path), message=f"no {_TEST_FILES} in this folder"))
    return files


def _state(file: Path) -> dict[str, Any]:
    """Return the state of a session file."""
    value = Document(str(file), read_bytes(file), "json").value()
    state = value.get("state") if isinstance(value, dict) else None
    if not isinstance(state, dict):
        raise InputError(Problem(file=str(file), message="is not a session: it has no `state`"))
    return state
