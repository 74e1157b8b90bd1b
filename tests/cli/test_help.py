"""The help: groups, examples that run, the first ten options, and completion by the shell."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from baton.cli.verbs import BELOW, GROUPS, TABLE, Example
from baton.testing import build
from baton.testing.build import run, transfer

Run = Callable[..., Any]
ROOT = Path(__file__).parent.parent.parent
EXAMPLES = [example for verb in TABLE.values() for example in verb.examples]
EXAMPLES += [example for examples in BELOW.values() for example in examples]


def panel(text: str, title: str) -> list[str]:
    """Return the lines of one panel of a help."""
    _, _, rest = text.partition(f"╭─ {title} ")
    return [line.strip("│ ") for line in rest.partition("╰")[0].splitlines()[1:]]


def test_the_help_shows_every_command_in_its_group(baton: Run) -> None:
    text = baton("--help").out
    for group, title in GROUPS.items():
        names = [name for name, verb in TABLE.items() if verb.group == group]
        first = [line.split()[0] for line in panel(text, title) if re.match(r"\w+  ", line)]
        assert first == names
        assert (f"╭─ {title} " in text) == bool(names)


@pytest.mark.parametrize("verb", TABLE)
def test_the_help_of_a_command_has_its_examples_and_few_options_first(
    baton: Run, verb: str
) -> None:
    outcome = baton(verb, "--help")
    assert outcome.code == 0
    for example in TABLE[verb].examples:
        assert example.line in " ".join(outcome.out.split())
        assert example.what
        assert shlex.split(example.line)[:2] == ["baton", verb]
    assert len([line for line in panel(outcome.out, "Options") if line.startswith("-")]) <= 10
    assert importlib.util.find_spec(f"baton.cli.{verb}")


@pytest.mark.parametrize("command", BELOW)
def test_a_command_below_another_has_examples_of_its_own(baton: Run, command: str) -> None:
    outcome = baton(*command.split(), "--help")
    assert outcome.code == 0
    assert "Parameters" not in outcome.out
    for example in BELOW[command]:
        assert example.what
        assert example.line in " ".join(outcome.out.split())
        assert example.line.startswith(f"baton {command}")


@pytest.mark.parametrize(
    "example", [each for each in EXAMPLES if each.code is not None], ids=lambda each: each.line
)
def test_an_example_runs_with_nothing_but_the_examples(
    baton: Run, tmp_path: Path, example: Example
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    outcome = baton(*shlex.split(example.line)[1:])
    assert outcome.code == example.code, outcome


def test_the_help_fits_a_narrow_terminal() -> None:
    code = "from baton.cli import main; from baton.cli.verbs import TABLE; main(['--help'])\n"
    code += "for verb in TABLE: main([verb, '--help'])"
    text = in_terminal([sys.executable, "-c", code], columns=60)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.splitlines()]
    assert len(lines) > 300
    assert [line for line in lines if len(line) > 60] == []


NAMES = ("a_router_with_a_long_name", "an_expert_on_refunds", "an_expert_on_parcels")


def test_what_commands_print_fits_a_narrow_terminal(tmp_path: Path, baton: Run) -> None:
    runs = [
        build.trace(
            f"case_{number}",
            run(NAMES[0], transfer(target)),
            run(target),
            id=f"case_{number}",
            case=f"case_{number}",
        )
        for number, target in enumerate([*NAMES[1:], NAMES[1], "weather"])
    ]
    (tmp_path / "recordings_of_a_day.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, runs)))
    cases = [{"id": f"case_{n}", "input": "hi", "agents": list(NAMES[:2])} for n in range(4)]
    (tmp_path / "cases.json").write_bytes(msgspec.json.encode({"cases": cases}))
    line = ["score", "recordings_of_a_day.jsonl", "-d", "cases.json", "-e", "agent_chain"]
    baton(*line)
    baton(*line)
    first, second = sorted(map(str, Path(".baton/evaluations").iterdir()))
    commands = (
        [*line, "-e", "dispatch_routing", "-e", "dispatch_target_known"],
        ["trend"],
        ["compare", first, second],
        ["show", "recordings_of_a_day.jsonl"],
        ["list"],
        ["check", "cases.json"],
    )
    code = f"from baton.cli import main\nfor words in {commands!r}: main(words); print('=====')"
    text = in_terminal([sys.executable, "-c", code], columns=60)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", text).split("=====")
    assert all(map(str.strip, shown[:-1]))
    assert len(shown) == len(commands) + 1
    lines = [line.strip() for line in "".join(shown).splitlines()]
    # A word that is too long, such as a path, stays whole; what goes to stderr is for programs too.
    long = [line for line in lines if len(line) > 60 and " " in line]
    assert [line for line in long if not line.startswith("note: ")] == []
    assert "…" not in "".join(shown[:3])


def in_terminal(command: list[str], *, columns: int) -> str:
    """Run a command in a terminal of so many columns, and return what it shows."""
    shown, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "CI")}
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    parts = []
    with suppress(OSError):  # the terminal is gone with the process
        while part := os.read(shown, 1 << 16):
            parts.append(part)
    os.close(shown)
    assert process.wait(60) == 0
    return b"".join(parts).decode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(
    baton: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    outcome = baton("--install-completion", "--shell", shell)
    assert outcome.code == 0, outcome
    file = Path(outcome.err.removeprefix("completion is in ").partition(";")[0])
    assert file.is_relative_to(tmp_path)
    text = file.read_text()
    assert "calibrate" in text
    assert "config_file_path" in text


def test_a_reader_of_help_may_leave() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "baton", "eval", "--help"]
        ended = subprocess.run(command, check=False, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
