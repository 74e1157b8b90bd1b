"""What tests of several parts need."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from copy import copy
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import cyclopts
import pytest
from cyclopts.argument import _argument
from cyclopts.utils import parse_version
from hypothesis import settings

from baton.cli import main
from baton.model.mask_known_secrets import forget

ROOT = Path(__file__).parent.parent


# While tests are collected nothing is garbage: a quarter of the time would go into looking for it.
gc.disable()


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what stays: 13,000 tests, and the modules they need.

    It would look through gigabytes, time and again, and find nothing.
    """
    gc.freeze()
    gc.enable()


_ALL_HEAVY = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.heavy\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which `-m heavy` or `-m 'not heavy'` runs nothing.

    Each process of tests imports all files, and with some of them the SDK of a framework.
    """
    chosen: str = config.option.markexpr
    if collection_path.suffix != ".py" or chosen not in ("heavy", "not heavy"):
        return None
    text = collection_path.read_text("utf-8")
    none = "heavy" not in text if chosen == "heavy" else _ALL_HEAVY.search(text) is not None
    return True if none else None


LONG = (
    "docs/test_snippets.py",
    "heavy/test_guards_claude.py",
    "heavy/test_improve_real_sdks.py",
    "heavy/test_fuzz_corpus.py",
    "security/test_long_traces.py",
    "server/test_rescores.py",
    "heavy/test_claude_stand_ins.py",
    "heavy/test_ray.py",
    "server/test_exports.py",
    "stand_ins/test_every_framework.py",
    "stand_ins/test_changed_texts.py",
    "heavy/test_langchain_handler.py",
)
"""The files whose heavy tests take longest, the longest first (`pytest --durations=0` tells)."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Stop if a heavy test is in a file without that word: `-m heavy` would not import it.

    Of heavy tests the longest files come first, and then those of one or two tests, which take long
    as well: one process would run them when the others have nothing left.
    """
    if config.option.markexpr == "heavy":
        sizes = Counter(item.path for item in items)
        places = {ROOT / "tests" / name: place for place, name in enumerate(LONG)}
        gone = [file.name for file in places if not file.exists()]
        if gone:
            raise pytest.UsageError(f"{', '.join(gone)} is not there: correct `LONG` in {__file__}")
        items.sort(key=lambda item: (places.get(item.path, len(LONG)), sizes[item.path]))
    files = {item.path for item in items if item.get_closest_marker("heavy") is not None}
    silent = sorted(str(file) for file in files if "heavy" not in file.read_text("utf-8"))
    if silent:
        raise pytest.UsageError(f"write `pytest.mark.heavy` in {', '.join(silent)} itself")


# The same examples every time, and no limit on one of them: a busy machine is no fault.
settings.register_profile("baton", deadline=None, derandomize=True)
settings.load_profile("baton")


def _parse_as_a_command_does() -> None:
    """Let cyclopts parse in a process of tests as in one of a command, and as fast.

    It asks pydantic about each argument where that is loaded: a command has not loaded it when it
    parses, and tests have. And it reads the options of a command anew each time: a tenth of the
    time of tests of commands.
    """
    read: dict[Any, cyclopts.ArgumentCollection] = {}
    assemble = cyclopts.App.assemble_argument_collection

    def assemble_once(app: cyclopts.App, **options: Any) -> cyclopts.ArgumentCollection:
        key = app.default_command, *sorted(options.items())
        if key not in read:
            read[key] = assemble(app, **options)
        return _unparsed(read[key])

    setattr(cyclopts.App, assemble.__name__, assemble_once)
    setattr(_argument, parse_version.__name__, lambda _: (0,))  # of a pydantic that it does not ask


def _unparsed(arguments: cyclopts.ArgumentCollection) -> cyclopts.ArgumentCollection:
    """Copy arguments, so that what is parsed into the copies stays out of them."""
    copies: dict[int, cyclopts.Argument] = {}

    def unparsed(argument: cyclopts.Argument) -> cyclopts.Argument:
        if id(argument) not in copies:
            made = copies[id(argument)] = copy(argument)
            made.tokens, made.children = [], collected(argument.children)
        return copies[id(argument)]

    def collected(several: cyclopts.ArgumentCollection) -> cyclopts.ArgumentCollection:
        return cyclopts.ArgumentCollection(map(unparsed, several))  # type: ignore[no-untyped-call]

    return collected(arguments)


_parse_as_a_command_does()


class Outcome(NamedTuple):
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


Baton = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _secrets_of_one_test_only() -> Iterator[None]:
    """Masking holds for a whole process, and each test stands for one."""
    yield
    forget()


@pytest.fixture
def recordings() -> Path:
    """The recorded answers of a real ADK server."""
    return ROOT / "examples" / "adk" / "recordings"


@pytest.fixture(autouse=True)
def own_settings(state_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is trusted in a test apart from what the user trusts."""
    folder = state_home / f"settings{next(_NUMBERS)}"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))


_NUMBERS = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As that of pytest, which looks at the folders of all tests before it makes another one.

    For 13,000 tests that takes a minute.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{next(_NUMBERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def programs_are_forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the next test have another file of the same name: Baton refuses a second one."""
    if "tmp_path" not in request.fixturenames:
        yield
        return
    own = f"{request.getfixturevalue('tmp_path')}{os.sep}"
    before = list(sys.modules)
    yield
    if list(sys.modules) == before:  # as mostly; to compare sets takes ten times as long
        return
    for name in sys.modules.keys() - set(before):
        if str(getattr(sys.modules[name], "__file__", None)).startswith(own):
            del sys.modules[name]


@pytest.fixture
def baton(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Baton:
    """Run the command line in an empty folder, which is trusted as one's own project is."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | os.PathLike[str]) -> Outcome:
        words = [os.fspath(argument) for argument in arguments]
        if words[:1] == ["eval"]:
            words[1:1] = ["--trust", "."]
        capsys.readouterr()
        code = main(words)
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return run


def report_of(baton: Baton, folder: Path, kind: str) -> str:
    """Return the report of a folder: `html`, `markdown`, `csv`, `junit` or `json`."""
    path = folder.parent / f"report.{kind}"
    if kind == "json":
        return baton("report", folder, "--json").out
    baton("report", folder, f"--{kind}", path)
    return path.read_bytes().decode("utf-8")


@pytest.fixture(autouse=True, scope="session")
def signals_are_heard() -> None:
    """Let programs that tests start hear Ctrl-C and a closed terminal, also in the background.

    There, and under ``nohup``, these signals are ignored, and each program inherits that.
    """
    for each, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(each) is signal.SIG_IGN:
            signal.signal(each, usual)


@pytest.fixture(autouse=True, scope="session")
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the key that evaluations are sealed with out of the home of whoever runs the tests."""
    folder = tmp_path_factory.mktemp("state")
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(folder)
    yield folder
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before
