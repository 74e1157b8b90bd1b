"""Cases, what plays them and what scores them, case by case: what tests are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from baton.config import load_config
from baton.config.load import load_found
from baton.config.trust import NOBODY, Trust, trust_of
from baton.datasets import load_dataset
from baton.model import CaseResult, Dataset, Evaluator, InputError, Problem
from baton.model.visible import visible, visible_line, without_commands
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.providers.registry import make_provider
from baton.readers import load_catalog
from baton.runner.live import evaluate_in_memory
from baton.runner.loop import run
from baton.runner.plan import Plan, RunOptions
from baton.session.agents import agent_spec, only_provider
from baton.session.prepare import prepare

from .assertion import failures

Specs = Iterable[Mapping[str, Any] | Evaluator | str]


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset and how to play it. ``make`` builds the provider anew for every case."""

    dataset: Dataset
    plan: Plan
    make: Callable[[], ConfiguredProvider[Any]]
    options: RunOptions

    def play(self, place: int) -> Sequence[CaseResult]:
        """Play the case at a place of the dataset, as often as it is repeated, and score it.

        Raises:
            InputError: the provider refuses what it is told.
        """
        return run(self._play(self.dataset.subset([place])))

    async def play_all(self) -> Sequence[CaseResult]:
        """Play and score all cases; raises InputError as above."""
        return await self._play(self.dataset)

    async def _play(self, cases: Dataset) -> Sequence[CaseResult]:
        evaluation = await evaluate_in_memory(
            self.plan, self.make(), cases, self.options, cases.name
        )
        return evaluation.results


def suite_of_config(path: Path, trust: Trust | None = None) -> Suite:
    """Read a config; raises InputError when it has faults, or names no dataset or provider.

    ``trust`` is for one that was found; without it the user named the config.
    """
    config = load_config(path) if trust is None else load_found(path, trust)
    trust = trust or NOBODY
    if not config.dataset:
        raise InputError(Problem(file=str(path), message="names no `dataset:` to test with"))
    catalog = load_catalog(config.agents) if config.agents else {}
    dataset = load_dataset(config.dataset, agents=catalog or None)
    plan = prepare(dataset, config=config, by_cases=True, redaction=config.redaction, trust=trust)
    only_provider(config, catalog)
    return Suite(
        dataset=dataset,
        plan=plan,
        make=lambda: only_provider(config, catalog),
        options=config.run,
    )


def suite_of_agent(
    dataset: Path | str,
    agent: str | Mapping[str, Any],
    folder: Path,
    *,
    evaluators: Specs | None = None,
    trust: Trust = NOBODY,
    **options: Any,
) -> Suite:
    """Take cases and an agent; paths of the agent start in ``folder``.

    Args:
        dataset: the path of a dataset.
        agent: the address of an ADK server, a folder of ADK agents, ``module:function``, or the
            spec of a provider.
        folder: where relative paths of the agent start.
        evaluators: as for :func:`baton.evaluate`.
        trust: whether a ``test_config.json`` beside the cases may name code.
        options: ``repeat``, ``concurrency``, ``timeout``.

    Raises:
        InputError: a file has faults, or the agent is none.
    """
    spec = agent_spec(agent, folder) if isinstance(agent, str) else dict(agent)
    if spec is None:
        message = (
            "is not an agent: name a folder with agent.py, the address of an ADK server, or "
            "module:function"
        )
        raise InputError(Problem(file=str(agent), message=message))
    cases = load_dataset(dataset)
    return Suite(
        dataset=cases,
        plan=prepare(cases, evaluators=evaluators, by_cases=True, trust=trust),
        make=lambda: make_provider(spec, Surroundings(folder)),
        options=RunOptions(**options),
    )


def marked_suite(marker: pytest.Mark, folder: Path) -> Suite:
    """Read what a marker says; relative paths start in the folder of the test.

    A wrong argument fails the collection of the test, with what is right.
    """
    try:
        return _suite(*marker.args, folder=folder, **marker.kwargs)
    except TypeError as error:
        usage = (
            "@pytest.mark.baton(dataset, agent, evaluators=None, repeat=1, timeout=600, trust=())"
        )
        message = str(error).replace("_suite()", "the marker `baton`")
        raise pytest.UsageError(f"{message}; write {usage}") from None
    except InputError as error:
        raise pytest.UsageError(visible(str(error))) from None


def _suite(
    dataset: str | Path,
    agent: str | Mapping[str, Any],
    *,
    folder: Path,
    evaluators: Any = None,
    repeat: int = 1,
    timeout: float | None = 600,
    trust: str | Path | Sequence[str | Path] = (),
) -> Suite:
    where = folder / dataset
    some = [trust] if isinstance(trust, str | Path) else trust
    return suite_of_agent(
        where,
        agent,
        folder,
        evaluators=evaluators,
        trust=trust_of([folder / each for each in some]),
        repeat=repeat,
        timeout=timeout,
    )


NO_AGENT = "says what should happen, and nobody says who plays it: set `baton_agent`"


class CaseFile(pytest.File):
    """A config, or an eval set that the agent of the ini file plays."""

    def collect(self) -> Iterator[CaseItem]:
        """Yield an item for each case."""
        try:
            suite = self._suite()
        except InputError as error:
            raise self.CollectError(_told(error)) from None
        for place, case_id in enumerate(suite.dataset.ids):
            name = without_commands(visible_line(case_id))
            yield CaseItem.from_parent(self, name=name, suite=suite, place=place)

    def _suite(self) -> Suite:
        trust = trust_of_ini(self.config)
        if self.path.suffix in (".yaml", ".yml"):
            return suite_of_config(self.path, None if _is_named(self.config, self.path) else trust)
        agent = str(self.config.getini("baton_agent"))
        folder = agent_folder(self.config)
        if not agent:
            raise InputError(f"{self.path}: {NO_AGENT}")
        return suite_of_agent(
            self.path,
            agent,
            folder,
            trust=trust,
            repeat=int(self.config.getini("baton_repeat")),
        )


class CaseItem(pytest.Item):
    """One case; it is played and scored when it runs."""

    def __init__(self, *, suite: Suite, place: int, **more: Any) -> None:
        super().__init__(**more)
        self._suite = suite
        self._place = place

    def runtest(self) -> None:
        """Play the case, and raise what did not pass."""
        failed = failures(self._suite.play(self._place))
        if failed:
            raise CaseFailedError(failed)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what went wrong with the case, not where Baton noticed."""
        if isinstance(excinfo.value, CaseFailedError | InputError):
            return _told(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Tell file, line (from 0) and name."""
        where = self._suite.dataset.line_of(self._place)
        return self.path, where - 1 if where else None, self.name


def _told(error: BaseException) -> str:
    """Return what an error says, fit for the terminal and the log that pytest prints it to."""
    return without_commands(visible(str(error)))


class CaseFailedError(AssertionError):
    """A case that did not pass."""


def trust_of_ini(config: pytest.Config) -> Trust:
    """Return the trust in found files that the ini file gives; its folders start beside it."""
    folders = [agent_folder(config) / word for word in config.getini("baton_trust")]
    return Trust(folders, option="`baton_trust = {folder}` in the ini file of pytest")


def _is_named(config: pytest.Config, file: Path) -> bool:
    """Tell whether a file was named to pytest, and not found in a folder."""
    folder = config.invocation_params.dir
    return any(
        (folder / word.partition("::")[0]).resolve() == file.resolve() for word in config.args
    )


def agent_folder(config: pytest.Config) -> Path:
    """Return the folder that paths of the ini file start in."""
    return config.inipath.parent if config.inipath else config.rootpath
