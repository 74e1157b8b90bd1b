"""Workers of programs that are forked from a warm process, and kept over batches of cases."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from baton.model import Case, InputError, ProviderError
from baton.providers.base_provider import Surroundings
from baton.providers.instrument.warm_workers import Before, warm, warm_workers
from baton.providers.python import Python, PythonOptions
from baton.testing.build import case

linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")

PROGRAM = """
    import os, random
    import baton
    from baton import prompts

    TOLD = prompts.get("agent:desk", "as it is")
    SEEN = []


    @baton.agent("desk")
    def desk(message):
        SEEN.append(message)
        if message == "exit":
            os._exit(7)
        if message == "kill":
            os.kill(os.getpid(), 9)
        return f"{TOLD} {len(SEEN)} {os.getpid()} {os.getppid()} {random.random()}"
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "warm_program.py").write_text(dedent(PROGRAM), "utf-8")
    return tmp_path


async def batch(folder: Path, texts: Mapping[str, str], *messages: str) -> list[list[str]]:
    """Play messages one after the other with a provider of their own; return the words said."""
    options = PythonOptions(type="python", target="warm_program:desk", workers="process")
    said = []
    async with Python(options, Surroundings(folder, texts=texts)) as provider:
        for number, message in enumerate(messages):
            played = await provider(made(message, number))
            assert played.turns[0].output is not None
            said.append(str(played.turns[0].output.text).rsplit(" ", 4))
    return said


def made(message: str, number: int = 0) -> Case:
    return case(message, id=f"c{number}")


ONE, TWO = {"agent:desk": "one"}, {"agent:desk": "two"}


@linux
@pytest.mark.heavy
def test_a_worker_is_kept_for_its_texts_and_nothing_gets_from_one_text_to_another(
    program: Path,
) -> None:
    async def played() -> list[list[list[str]]]:
        async with warm_workers():
            return [await batch(program, texts, "hi", "hi") for texts in (ONE, TWO, ONE, TWO)]

    first, second, third, fourth = asyncio.run(played())
    assert [words[0] for words in (first[0], second[0], third[0])] == ["one", "two", "one"]
    # What a program keeps begins again with each text, and continues with the same.
    assert [words[1] for words in (*first, *third)] == ["1", "2", "3", "4"]
    assert [words[1] for words in (*second, *fourth)] == ["1", "2", "3", "4"]
    assert first[0][2] == third[0][2] != second[0][2]
    assert second[0][3] != str(os.getpid())  # the fork server's child
    assert first[0][4] != second[0][4]
    for words in (*first, *second):
        with pytest.raises(ProcessLookupError):
            os.kill(int(words[2]), 0)


@linux
@pytest.mark.heavy
def test_a_forked_worker_that_dies_says_how(program: Path) -> None:
    async def played(message: str) -> str:
        with pytest.raises(ProviderError) as caught:
            await batch(program, TWO, message)
        return str(caught.value)

    async def both() -> list[str]:
        async with warm_workers():
            await batch(program, ONE, "hi")
            return [await played("exit"), await played("kill")]

    assert asyncio.run(both()) == [
        "the worker process ended with exit code 7 while it played the case",
        "the worker process was ended by signal 9 (SIGKILL) while it played the case",
    ]


@linux
@pytest.mark.heavy
def test_without_their_fork_server_workers_are_started_as_ever(program: Path) -> None:
    async def played() -> tuple[list[str], list[str]]:
        async with warm_workers():
            await batch(program, ONE, "hi")
            (forked,) = await batch(program, TWO, "hi")
            os.kill(int(forked[3]), signal.SIGKILL)
            (started,) = await batch(program, {"agent:desk": "three"}, "hi")
            return forked, started

    forked, started = asyncio.run(played())
    assert forked[3] != str(os.getpid())
    assert started[:2] == ["three", "1"]
    assert started[3] == str(os.getpid())


@linux
@pytest.mark.heavy
def test_a_library_that_starts_threads_is_not_forked(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = program / "site-packages"
    library.mkdir()
    starts = "import threading, time\n"
    starts += "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    (library / "starts_threads.py").write_text(starts, "utf-8")
    monkeypatch.syspath_prepend(str(library))
    file = program / "warm_program.py"
    file.write_text("import starts_threads\n" + file.read_text("utf-8"), "utf-8")

    async def played() -> list[str]:
        async with warm_workers():
            await batch(program, ONE, "hi")
            (words,) = await batch(program, TWO, "hi")
            return words

    words = asyncio.run(played())
    assert words[:2] == ["two", "1"]
    assert words[3] == str(os.getpid())


@linux
@pytest.mark.heavy
def test_a_program_that_cannot_be_loaded_says_so(program: Path) -> None:
    async def played() -> None:
        async with warm_workers():
            await batch(program, ONE, "hi")
            (program / "warm_program.py").write_text("raise OSError('no disk')\n", "utf-8")
            await batch(program, TWO, "hi")

    with pytest.raises(InputError, match="no disk"):
        asyncio.run(played())


class Proxy:
    """An object that works in a request alone, as web frameworks have them."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"no request: {name}")


def library(name: str, folder: Path, **holds: object) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = str(folder / "site-packages" / f"{name}.py")
    vars(module).update(holds)
    return module


@pytest.mark.heavy
def test_the_fork_server_imports_libraries_and_nothing_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ModuleType("own_helper")
    own.__file__ = str(tmp_path / "own_helper.py")
    monkeypatch.setitem(sys.modules, "own_helper", own)
    monkeypatch.setitem(sys.modules, "a_library", library("a_library", tmp_path))
    installed = library("installed_program.agents", tmp_path)
    monkeypatch.setitem(sys.modules, "installed_program.agents", installed)
    asks = library("asks_for_texts.part", tmp_path, case=Case)
    monkeypatch.setitem(sys.modules, "asks_for_texts.part", asks)
    monkeypatch.setitem(sys.modules, "asks_for_texts", library("asks_for_texts", tmp_path))
    proxied = library("proxied", tmp_path, request=Proxy())
    monkeypatch.setitem(sys.modules, "proxied", proxied)
    monkeypatch.setitem(sys.modules, "no_module", object())
    before = Before.now()

    found = before.libraries("installed_program.agents:desk", is_instrumented=False)
    assert {"a_library", "proxied", "json", "baton.model"} <= {*found}
    own_ones = {"own_helper", "installed_program.agents", "asks_for_texts", "__main__"}
    assert not own_ones & {*found}
    assert before.libraries("program:desk", is_instrumented=True) == []
    monkeypatch.setenv("A_LIBRARY_READS_IT", "1")
    assert before.libraries("program:desk", is_instrumented=False) == []


def test_nothing_is_kept_warm_unless_it_is_asked_for() -> None:
    assert warm() is None
