"""The pytest plug-in: nothing of Baton is imported until a test needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from baton.model import Case, CaseResult
    from baton.testing import LlmServer
    from baton.testing.suite import Suite

_EVAL_SETS = (".evalset.json", ".test.json")
_CONFIGS = ("baton.yaml", "baton.yml")
_NOTICE = "baton notice"
_HELP = "collect baton.yaml, *.evalset.json and *.test.json, one test per case"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag and the settings; everything is off by default."""
    parser.getgroup("baton").addoption("--baton", action="store_true", default=False, help=_HELP)
    parser.addini("baton", _HELP, type="bool", default=False)
    parser.addini(
        "baton_agent",
        "the agent that plays collected eval sets: a folder, an address or a function",
    )
    parser.addini(
        "baton_trust",
        "folders whose baton.yaml and test_config.json may name code when they are collected",
        type="args",
    )
    parser.addini("baton_repeat", "how often each collected case is played", default="1")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "baton(dataset, agent, evaluators=None, repeat=1, timeout=600, trust=()): run a test once "
        "for every case of a dataset; its result is `baton_result`",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect files with cases, if that is switched on."""
    config = parent.config
    if not (config.getoption("--baton") or config.getini("baton")):
        return None
    if file_path.name in _CONFIGS or file_path.name.endswith(_EVAL_SETS):
        from baton.testing.suite import CaseFile

        return CaseFile.from_parent(parent, path=file_path)
    return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once for every case."""
    test = metafunc.definition
    marker = test.get_closest_marker("baton")
    if marker is None:
        return
    if "_baton_place" not in metafunc.fixturenames:
        given = [name for name in ("baton_case", "baton_result") if name in metafunc.fixturenames]
        if given:
            message = f"gets `{given[0]}` from its dataset: parametrize another argument"
        elif not any(each.name == "baton" for each in test.own_markers):
            return  # the marker of its class or module is for other tests
        else:
            message = "needs the argument `baton_result` or `baton_case`"
        pytest.fail(f"`{test.name}` is marked `baton`, and {message}", pytrace=False)
    from baton.model.visible import visible_line, without_commands
    from baton.testing.suite import marked_suite

    suite = marked_suite(marker, test.path.parent, test.name)
    names = [without_commands(visible_line(case_id)) for case_id in suite.dataset.ids]
    places = [pytest.param((suite, place), id=name) for place, name in enumerate(names)]
    metafunc.parametrize("_baton_place", places, indirect=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what cases state and no evaluator checked: green tests do not show it."""
    texts = Counter(
        text
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, text in report.user_properties
        if name == _NOTICE
    )
    if texts:
        terminalreporter.section("Baton")
        for text, count in texts.items():
            tests = "1 test" if count == 1 else f"{count} tests"
            terminalreporter.line(f"{tests}: {text}")


@pytest.fixture
def _baton_place(request: pytest.FixtureRequest) -> tuple[Suite, int]:
    if not hasattr(request, "param"):
        pytest.fail("mark the test: @pytest.mark.baton(dataset, agent)", pytrace=False)
    from baton.model.visible import visible_line, without_commands

    place: tuple[Suite, int] = request.param
    suite, number = place
    for text in suite.notices(number):
        safe = without_commands(visible_line(text))
        request.node.user_properties.append((_NOTICE, safe))
    return place


@pytest.fixture
def baton_case(_baton_place: tuple[Suite, int]) -> Case:
    """Return the case of a test marked ``baton``."""
    suite, place = _baton_place
    return suite.dataset.cases[place]


@pytest.fixture
def baton_results(_baton_place: tuple[Suite, int]) -> Sequence[CaseResult]:
    """Play and score the case; there is a result for each repeat."""
    suite, place = _baton_place
    return suite.play(place)


@pytest.fixture
def baton_result(baton_results: Sequence[CaseResult]) -> CaseResult:
    """Play and score the case; return the worst of several repeats: an error, else a failure."""
    worst = ("error", "failed", "skipped", "passed")
    return min(baton_results, key=lambda result: worst.index(result.status))


@pytest.fixture
def baton_llm() -> Iterator[LlmServer]:
    """Yield a scripted LLM on loopback: set its ``script`` and use the config of ``judge()``."""
    from baton.testing import llm_server

    with llm_server() as server:
        yield server
