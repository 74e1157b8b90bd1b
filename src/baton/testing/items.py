"""Files of cases as items of pytest: one an item."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.config.trust import Trust
from baton.model import InputError
from baton.model.visible import visible, visible_line, without_commands

from .assertion import failures
from .suite import Suite, suite_of_agent, suite_of_config

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
        told = failures(self._suite.play(self._place))
        if told:
            raise CaseFailedError(told)

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
