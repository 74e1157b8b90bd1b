"""Whatever leaves the program is text: no markup, no code of a terminal, nothing that hides."""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import ROOT, Baton
from tests.processes import run_baton
from tests.reports.hostile import hostile_trace

from baton.model import Content, Part
from baton.model.visible import visible, visible_line
from baton.reports.text import Text, console_for
from baton.safe_output import safe_output

from .hostile_project import Project, commands, hostile_project

# Written out once more here, so that a gap in our table is a gap in no test: what a terminal or
# a reader acts on, a newline, a tab, and a CR before a newline apart.
ACTS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U000e0000-\U000e0fff]|\r(?!\n)"
)
MARKUP = "x[/red] [link=http://127.0.0.1:9]y[/link] [bold]z :smile: [/] \\[ [@click=f]"
CODES = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\x9b31md\re\bf\x7fg\u202eh\u2066i\u200bj\ufeffk\u2028l\u2029m\U000e0041n\x85o\x0bp"
LINES = "a\nbaton: all is well\npassed   .baton/evaluations/x"
NAMES = list(commands(Project(*[Path("x")] * len(Project._fields))))
Opened = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """Commands by name, for each of the texts."""
    root = tmp_path_factory.mktemp("hostile")
    texts = {"markup": MARKUP, "codes": CODES, "lines": LINES}
    return {name: commands(hostile_project(root / name, text)) for name, text in texts.items()}


@pytest.mark.parametrize("name", NAMES)
def test_no_verb_parses_markup(baton: Baton, opened: Opened, name: str) -> None:
    outcome = baton(*opened["markup"][name])
    assert outcome.code in (0, 1, 2, 3)
    assert "internal error" not in outcome.err
    told = outcome.out + outcome.err
    assert "\N{SMILING FACE WITH OPEN MOUTH AND SMILING EYES}" not in told
    if "x[" in told and "json" not in name.lower():
        assert "[/red]" in told


@pytest.mark.parametrize("name", NAMES)
def test_no_verb_prints_what_a_terminal_acts_on(baton: Baton, opened: Opened, name: str) -> None:
    outcome = baton(*opened["codes"][name])
    assert "internal error" not in outcome.err
    told = outcome.out + outcome.err
    assert not ACTS.search(told), ascii(told)
    if "JSON" in name or "json" in name:
        for line in [outcome.out] if outcome.out.startswith("{\n") else outcome.out.splitlines():
            assert json.loads(line)


@pytest.mark.parametrize("name", NAMES)
def test_no_name_starts_its_own_line(baton: Baton, opened: Opened, name: str) -> None:
    if name in (
        "report --format csv",
        "trend --csv",
        "report --format junit",
        "rubrics show",
        "rubrics show with a trace",
    ):
        return  # documents that hold whole texts, and are no lines
    outcome = baton(*opened["lines"][name])
    for line in (outcome.out + outcome.err).splitlines():
        assert not line.startswith(("baton: all is well", "passed   .baton")), line


def test_a_text_that_is_drawn_is_one_line() -> None:
    assert Text("\nx\ty").append("\nz").plain == "\\nx\\ty\\nz"
    assert Text("\n").append("x").plain == "\nx"
    out = io.StringIO()
    console_for(out).print("\n[bold]x", Text("\ny"))
    assert out.getvalue() == "\\n[bold]x \\ny\n"


def test_json_holds_the_very_values(baton: Baton, opened: Opened) -> None:
    shown = baton(*opened["codes"]["show --json"])
    assert json.loads(shown.out)["turns"][0]["input"]["text"] == CODES
    report = json.loads(baton(*opened["codes"]["report --format json"]).out)
    assert report["name"] == CODES
    assert report["results"][0]["scores"][0]["reason"] == CODES


def test_a_drafted_case_holds_the_very_values(baton: Baton, opened: Opened) -> None:
    (case,) = yaml.safe_load(baton(*opened["codes"]["draft"]).out)["cases"]
    assert case["id"] == CODES
    assert case["input"] == CODES


def test_junit_and_csv_show_escapes(baton: Baton, opened: Opened) -> None:
    root = ET.fromstring(baton(*opened["codes"]["report --format junit"]).out)  # noqa: S314 - ours
    assert root.get("name") == visible(CODES)
    text = baton(*opened["codes"]["report --format csv"]).out
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert rows[0]["case"] == visible(CODES)
    assert rows[0]["reason"] == visible(CODES)


@pytest.mark.parametrize("kind", ["junit", "csv", "markdown", "html"])
def test_files_of_reports_hold_no_such_character(
    baton: Baton, opened: Opened, tmp_path: Path, kind: str
) -> None:
    folder = opened["codes"]["report"][1]
    baton("report", folder, f"--{kind}", tmp_path / "report")
    assert not ACTS.search((tmp_path / "report").read_bytes().decode("utf-8"))


def test_a_mime_type_cannot_write_to_the_clipboard(baton: Baton, tmp_path: Path) -> None:
    trace = hostile_trace("fine")
    trace.turns[0].input = Content(parts=[Part(type="file", mime=CODES)])
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(trace))
    out = baton("show", "run.json").out
    assert "\\u001b]52;c;aGk=" in out
    assert not ACTS.search(out)


@pytest.mark.parametrize(
    "name", ["a\x1b[2Jb.json", "a\nbaton: b.json", "a\u202eb.json", b"a\xffb.json"]
)
@pytest.mark.parametrize("verb", ["show", "score", "check", "draft"])
def test_names_of_files_are_shown_in_errors_and_notes(
    baton: Baton, tmp_path: Path, verb: str, name: str | bytes
) -> None:
    (tmp_path / os.fsdecode(name)).write_text("{}")
    for arguments in ([verb, os.fsdecode(name)], [verb, "."], [verb, f"{os.fsdecode(name)}x"]):
        code, out, err = baton(*arguments)
        assert code == 2, err
        told = out + err
        assert not ACTS.search(told), ascii(told)
        assert "internal error" not in told
        assert all(line.startswith(("baton: ", "note: ")) for line in told.splitlines()), told
        assert "baton: b.json" not in told.replace("\\nbaton", "")


def test_a_file_whose_name_is_not_utf_8_is_shown_and_cannot_be_stored(tmp_path: Path) -> None:
    source = ROOT / "examples" / "adk" / "recordings" / "support_desk" / "refund.sse"
    (tmp_path / os.fsdecode(b"a\xff.sse")).write_bytes(source.read_bytes())
    done = run_baton("show", os.fsdecode(b"a\xff.sse"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a\\udcff.sse" in done.stdout
    for words in (["a\udcff.sse"], ["."], [".", "--jobs", "2"]):
        done = run_baton("score", *words, folder=tmp_path)
        assert done.returncode == 3
        assert "internal error" not in done.stderr
        assert "\\udcff" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_options_of_the_command_line_are_shown_too(tmp_path: Path) -> None:
    done = run_baton("show", "--\x1b[2J\nx=1", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("baton: no option `--\\u001b[2J\\nx=1`;")


def test_on_a_terminal_only_colours_of_ours_are_codes(opened: Opened, tmp_path: Path) -> None:
    for name in ("report", "show", "score", "compare", "rubrics list", "check"):
        printed = on_a_terminal(tmp_path, opened["codes"][name]).replace("\r\n", "\n")
        assert not ACTS.search(re.sub(r"\x1b\[[0-9;]*m", "", printed)), (name, ascii(printed))
        if name in ("report", "show"):
            assert "\x1b[" in printed, "our own colours are there"


def test_help_keeps_its_colours_on_a_terminal(tmp_path: Path) -> None:
    printed = on_a_terminal(tmp_path, ["--help"])
    assert "\x1b[1m" in printed
    assert "\\u001b" not in printed


def test_what_agents_print_and_log_is_shown_as_well(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(
        "import logging, sys, warnings\n"
        "def answer(message):\n"
        f"    print({CODES!r}); print({CODES!r}, file=sys.stderr)\n"
        f"    logging.getLogger('desk').error({CODES!r}); warnings.warn({CODES!r})\n"
        "    return 'hello'\n"
    )
    (tmp_path / "cases.yaml").write_text("cases:\n  - {id: a, input: hi, response: hello}\n")
    (tmp_path / "baton.yaml").write_text(
        "dataset: cases.yaml\nproviders:\n  - {type: python, target: 'desk.py:answer'}\n"
        "agent: {log_level: INFO}\n"
    )
    done = run_baton("eval", "baton.yaml", folder=tmp_path)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert not ACTS.search(told), ascii(told)
    assert told.count("\\u001b]52;c;aGk=") >= 3


def test_what_agents_print_beside_the_bar_is_shown_as_well(tmp_path: Path) -> None:
    said = "a\x1b]8;;http://127.0.0.1:9\x07link\x1b]8;;\x07 \x1b[8mhidden\rover"
    (tmp_path / "desk.py").write_text(
        f"def answer(message):\n    print({said!r})\n    return 'hello'\n"
    )
    (tmp_path / "cases.yaml").write_text("cases:\n  - {id: a, input: hi, response: hello}\n")
    printed = on_a_terminal(tmp_path, ["eval", "desk.py:answer", "cases.yaml"])
    assert "a\\u001b]8;;http://127.0.0.1:9\\u0007link" in printed
    assert "\\u001b[8mhidden\\rover" in printed
    assert "\x1b]8" not in printed
    assert "\x1b[8m" not in printed


def test_streams_are_safe_by_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    with safe_output():
        print(CODES)
        sys.stdout.writelines([CODES, "\n"])
        handler = logging.StreamHandler()
        handler.emit(logging.LogRecord("x", 40, "x", 1, CODES, None, None))
        console_for(sys.stdout).print(Text(CODES), CODES)
    printed = capsys.readouterr()
    assert not ACTS.search(printed.out + printed.err), ascii(printed)


def test_only_the_console_and_the_way_out_know_how_to_draw() -> None:
    """Text with markup, or a stream around the safe one, can come in by these names only."""
    forbidden = {
        "rich.console": {"Console"}, "rich.text": {"Text"}, "rich.markup": None, "rich": {"print"},
    }  # fmt: skip
    found = []
    for file in (ROOT / "src" / "baton").rglob("*.py"):
        if file.parts[-2:] == ("reports", "text.py"):
            continue
        text = file.read_text("utf-8")
        if not any(word in text for word in ("rich", "__stdout__", "__stderr__", "from_markup")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module in forbidden:
                names = forbidden[node.module]
                found += [
                    f"{file}: {a.name}" for a in node.names if names is None or a.name in names
                ]
            if isinstance(node, ast.Attribute) and node.attr in (
                "__stdout__",
                "__stderr__",
                "from_markup",
            ):
                found.append(f"{file}: {node.attr}")
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\nof two lines",
        "a family: 👩\u200d👩\u200d👧, a flag: 🇩🇪, red: ❤\ufe0f, a pilot: 👩🏽\u200d✈\ufe0f",
        "Grüße, 漢字, עברית, العربية, हिन्दी, ไทย",
        "Persian: می\u200cخواهم, Hindi: क\u094d\u200dष",
        "“quotes” – … ✓ ✗ → ≥ №",
    ],
)
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters(codec=None)))
def test_any_text_is_visible_and_is_escaped_once(text: str) -> None:
    shown = visible(text)
    assert not ACTS.search(shown)
    assert visible(shown) == shown
    assert "\n" not in visible_line(text)
    shown.encode("utf-8")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_keeps_its_values(text: str) -> None:
    assert json.loads(visible(json.dumps({text: text}, ensure_ascii=False))) == {text: text}


def on_a_terminal(folder: Path, arguments: list[str]) -> str:
    """Run the command line on a terminal of its own, and return what that gets."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "baton", *arguments],
        cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    read = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        read += piece
    process.wait(timeout=60)
    os.close(ours)
    return read.decode("utf-8")
