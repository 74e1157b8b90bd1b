"""Suites of tests: cases, the provider that plays them, and the evaluators that score them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from baton.config import load_config
from baton.config.choose_evaluators import left_unchecked
from baton.config.config import load_found
from baton.config.trust import NOBODY, Trust, trust_of
from baton.evaluators.user_defined import traits_of
from baton.model import CaseResult, Dataset, InputError, suggestion
from baton.model.visible import visible, visible_line, without_commands
from baton.runner.loop import run
from baton.session.evaluate import EvaluateOptions, Prepared, prepare_evaluation

from .assertion import failures, nothing_scored


class Suite(NamedTuple):
    """A dataset and how to play it; ``gated`` if its config has a gate, which no test decides."""

    evaluation: Prepared
    gated: bool = False

    @property
    def dataset(self) -> Dataset:
        """The cases."""
        return self.evaluation.cases

    def play(self, place: int) -> Sequence[CaseResult]:
        """Play the case at a place of the dataset, as often as it is repeated, and score it.

        The provider is created again for every case, because each case has its own event loop.

        Raises:
            InputError: the provider refuses its options.
        """
        anew = self.evaluation._replace(provider=self.evaluation.make_provider())
        case = self.dataset.subset([place])
        return [self._checked(each, case.stated) for each in run(anew.play(case)).results]

    def notices(self, place: int) -> list[str]:
        """Return what readers of a green test have to know, as other reports print it."""
        cases = self.dataset.subset([place])
        texts = left_unchecked(self.evaluation.plan, cases)
        gate = "`gate:` is not applied, because each case is a test; `baton eval` applies it"
        return [*texts, gate] if self.gated else texts

    def _checked(self, result: CaseResult, stated: Collection[str]) -> CaseResult:
        """Make a result an error if something that its case states could not be checked.

        An evaluation ends with exit code 3 if an evaluator scored nothing; here a case is one.
        Example: the case states `agents`, and the agent is a function that only returns text.
        """
        if result.status not in ("passed", "skipped"):
            return result
        problems = []
        for name, planned in self.evaluation.plan.all_evaluators.items():
            scores = [score for score in result.scores if score.evaluator == name]
            asked = (traits_of(planned.evaluator).checks or frozenset()) & set(stated)
            if asked and not planned.optional and scores:
                if all(score.status == "skipped" for score in scores):
                    problems.append(f"`{name}` scored nothing: {scores[0].reason}")
        if not problems:
            return result
        return msgspec.structs.replace(result, status="error", error="; ".join(problems))


def suite_of_config(path: Path, trust: Trust | None = None) -> Suite:
    """Read a config; raises InputError if it has errors, or names no dataset or provider.

    ``trust`` is for a config that was found; without it, the user named the config.
    """
    config = load_config(path) if trust is None else load_found(path, trust)
    return Suite(prepare_evaluation(config=config, trust=trust or NOBODY), bool(config.gate))


def marked_suite(marker: pytest.Mark, folder: Path, test: str) -> Suite:
    """Read the arguments of the marker of a test; relative paths start in its folder.

    A wrong argument makes the collection of the test fail; the message states the correct form.
    """
    form = inspect.signature(_suite)
    try:
        stated = form.bind(*marker.args, folder=folder, **marker.kwargs)
    except TypeError as error:
        names = [name for name in form.parameters if name != "folder"]
        unknown = [name for name in marker.kwargs if name not in names]
        hint = f"no argument `{unknown[0]}`; {suggestion(unknown[0], names)}" if unknown else error
        usage = "dataset, agent, evaluators=None, repeat=1, timeout=600, trust=()"
        wrong = f"{hint}\nwrite @pytest.mark.baton({usage})"
    else:
        try:
            return _suite(*stated.args, **stated.kwargs)
        except InputError as error:
            wrong = _safe_message(error)
    # Outside the exception handlers, because pytest also shows the errors being handled.
    pytest.fail(f"the marker `baton` of `{test}`: {wrong}", pytrace=False)


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
    some = [trust] if isinstance(trust, str | Path) else trust
    options: EvaluateOptions = {
        "trust": trust_of([folder / each for each in some]),
        "repeat": repeat,
        "timeout": timeout,
    }
    evaluation = prepare_evaluation(folder / dataset, agent, evaluators, folder=folder, **options)
    return Suite(evaluation)


NO_AGENT = "says what should happen, but no agent plays it: set `baton_agent`"


# The name of a property of tests, which `pytest_plugin` prints. pytest-xdist brings properties to
# the process that reports, and `--junit-xml` writes them.
_NOTICE = "baton notice"


class CaseFile(pytest.File):
    """A config, or an eval set that the agent of the ini file plays."""

    def collect(self) -> Iterator[CaseItem]:
        """Yield an item for each case."""
        try:
            suite = self._suite()
        except InputError as error:
            raise self.CollectError(_safe_message(error)) from None
        for place, case_id in enumerate(suite.dataset.ids):
            name = without_commands(visible_line(case_id))
            yield CaseItem.from_parent(self, name=name, suite=suite, place=place)

    def _suite(self) -> Suite:
        trust = trust_of_ini(self.config)
        if self.path.suffix in (".yaml", ".yml"):
            # Whether the file was named on pytest's command line, and not found in a folder.
            called_in = self.config.invocation_params.dir
            is_named = any(
                (called_in / word.partition("::")[0]).resolve() == self.path.resolve()
                for word in self.config.args
            )
            return suite_of_config(self.path, None if is_named else trust)
        agent = str(self.config.getini("baton_agent"))
        folder = agent_folder(self.config)
        if not agent:
            raise InputError(f"{self.path}: {NO_AGENT}")
        repeat = int(self.config.getini("baton_repeat"))
        return Suite(
            prepare_evaluation(self.path, agent, folder=folder, trust=trust, repeat=repeat)
        )


class CaseItem(pytest.Item):
    """One case; it is played and scored when it runs."""

    def __init__(self, *, suite: Suite, place: int, **more: Any) -> None:
        super().__init__(**more)
        self._suite = suite
        self._place = place

    def runtest(self) -> None:
        """Play the case, and raise an error for what did not pass."""
        self.user_properties += [
            (_NOTICE, without_commands(visible_line(text)))
            for text in self._suite.notices(self._place)
        ]
        results = self._suite.play(self._place)
        failed = failures(results)
        if failed:
            raise CaseFailedError(failed)
        # Nothing failed, but nothing was checked either, so the test has not passed. A case that
        # states something which had to be checked is an error, and is among the failures above.
        if all(result.status == "skipped" for result in results):
            pytest.skip(_safe_message(InputError(nothing_scored(results[0]))))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show what went wrong with the case, without Baton's own traceback."""
        if isinstance(excinfo.value, CaseFailedError | InputError):
            return _safe_message(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return file, line (from 0) and name."""
        where = self._suite.dataset.line_of(self._place)
        return self.path, where - 1 if where else None, self.name


def _safe_message(error: BaseException) -> str:
    """Return the message of an error, made safe for the terminal and log that pytest prints to."""
    return without_commands(visible(str(error)))


class CaseFailedError(AssertionError):
    """A case that did not pass."""


def trust_of_ini(config: pytest.Config) -> Trust:
    """Return the trust for found files from the ini file; its folders are relative to that file."""
    folders = [agent_folder(config) / word for word in config.getini("baton_trust")]
    return Trust(folders, option="`baton_trust = {folder}` in the ini file of pytest")


def agent_folder(config: pytest.Config) -> Path:
    """Return the base folder of relative paths in the ini file."""
    return config.inipath.parent if config.inipath else config.rootpath
