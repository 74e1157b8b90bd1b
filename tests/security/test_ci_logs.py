"""In the log of a build, no text of others is a command: those of CI systems are broken visibly."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.conftest import ROOT, Baton
from tests.processes import NO_OTHER_PLUGINS
from tests.reports.hostile import hostile_evaluation

from baton.model.visible import without_commands
from baton.reports.markdown import cell
from baton.safe_output import SafeStream, own_output

from .hostile_project import Project, commands, hostile_project

TEXT = (
    "a\n::error::one\n   ::stop-commands::two\n::set-output name=a::b ##[group]three ##vso[task.setvariable variable=a]b "
    "##teamcity[buildStop comment='x' readdToQueue='true'] x\r\n::add-mask::a\u2028::error::x\x85::error::y"
)
NAMES = list(commands(Project(*[Path("x")] * len(Project._fields))))
FEW = ("show", "score with cases", "report", "report --format junit", "check", "draft")
COMMAND = re.compile(r"^\s*::(?P<name>[^\s:]+)(?: [^:]*)?::|##\w*\[", re.MULTILINE)
STOP = re.compile(r"::stop-commands::([0-9a-f]{32})")


class Log(NamedTuple):
    """What a build reads: the commands, and all else."""

    commands: list[str]
    brackets: list[str]
    text: str


def obeyed(log: str) -> Log:
    """Read a log as GitHub's runner does: stopped by a command, and resumed by its token alone."""
    found, brackets, rest, token = [], [], [], None
    for line in log.splitlines():
        bare = line.strip()
        if token is not None:
            if bare == f"::{token}::":
                token = None
            else:
                rest.append(line)
        elif stop := STOP.fullmatch(bare):
            token = stop[1]
            brackets.append(token)
        elif COMMAND.search(line):
            found.append(line)
        else:
            rest.append(line)
    assert token is None, "commands are obeyed again at the end"
    return Log(found, brackets, "\n".join(rest))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Commands that open what is hostile."""
    return commands(hostile_project(tmp_path_factory.mktemp("ci"), TEXT))


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out that this may run in a CI itself."""
    for name in ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "system"),
    [
        *((name, "GITHUB_ACTIONS") for name in NAMES),
        *((name, other) for name in FEW for other in ("TF_BUILD", "TEAMCITY_VERSION")),
    ],
)
def test_no_text_is_a_command(
    baton: Baton,
    opened: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    system: str,
) -> None:
    monkeypatch.setenv(system, "true")
    outcome = baton(*opened[name])
    out, err = obeyed(outcome.out), obeyed(outcome.err)
    ours = [line for line in out.commands + err.commands if "--github" in name or "github" in name]
    assert all(re.match(r"::(error|notice)( (file|line|title)=[^:]*)?::", line) for line in ours)
    assert len(out.commands + err.commands) == len(ours)
    # Nothing rests on the bracket alone.
    assert not COMMAND.search(out.text), COMMAND.search(out.text)
    assert not COMMAND.search(err.text)


@pytest.mark.parametrize(
    "name", ["report", "score", "show", "compare", "trend", "list", "calibrate", "rubrics list"]
)
def test_on_github_what_is_printed_for_people_is_in_a_bracket(
    baton: Baton, opened: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    first, second = baton(*opened[name]), baton(*opened[name])
    tokens = []
    for outcome in (first, second):
        log = obeyed(outcome.out)
        assert len(log.brackets) == 1
        assert outcome.out.startswith(f"::stop-commands::{log.brackets[0]}\n")
        assert outcome.out.endswith(f"::{log.brackets[0]}::\n")
        tokens += log.brackets
    assert tokens[0] != tokens[1], "nobody knows the word beforehand"


def test_annotations_are_outside_of_the_bracket(baton: Baton, opened: dict[str, list[str]]) -> None:
    outcome = baton(*opened["score --github"])
    (token,) = obeyed(outcome.out).brackets
    report, _, rest = outcome.out.partition(f"\n::{token}::\n")
    assert report.startswith(f"::stop-commands::{token}\n")
    lines = rest.splitlines()
    assert lines
    assert all(line.startswith(("::error ", "::notice")) for line in lines)


def test_a_reporter_of_a_config_is_bracketed_as_well(baton: Baton, tmp_path: Path) -> None:
    desk = ROOT / "examples" / "adk" / "recordings" / "support_desk" / "wrong_specialist.sse"
    cases = ROOT / "examples" / "adk" / "cases.yaml"
    (tmp_path / "baton.yaml").write_text("reporters:\n  - {type: github}\n")
    outcome = baton("score", desk, "-d", f"{cases}:wrong_specialist", "--config", "baton.yaml")
    log = obeyed(outcome.out)
    assert outcome.code == 1
    assert len(log.brackets) == 1
    assert len(log.commands) == 1


@pytest.mark.parametrize(
    "name",
    ["show --json", "score as JSON", "report --format json", "compare --json", "trend --json"],
)
def test_documents_for_programs_have_no_bracket_and_keep_their_values(
    baton: Baton, opened: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plain = json.loads(baton(*opened[name]).out)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    found = json.loads(baton(*opened[name]).out)
    if "score" not in name:  # which has clock times
        assert found == plain
    assert json.dumps(found, ensure_ascii=False).count("##[group]three") >= 1


def test_a_drafted_case_keeps_its_values_in_a_build(
    baton: Baton, opened: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    (case,) = yaml.safe_load(baton(*opened["draft"]).out)["cases"]
    assert case["id"] == TEXT


def test_outside_of_a_build_nothing_is_broken(baton: Baton, opened: dict[str, list[str]]) -> None:
    assert "##[group]three" in baton(*opened["report"]).out
    assert "stop-commands::" not in baton(*opened["trend"]).out


def test_messages_are_one_line(
    baton: Baton, opened: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("score by a wrong config", "check", "draft", "convert", "no such verb"):
        for line in baton(*opened[name]).err.splitlines():
            assert (
                line.startswith(("baton: ", "note: ", "warning: ", "lost: ", "added: "))
                or ".json: 2 of" in line
            )


@pytest.mark.parametrize(
    "pieces",
    [
        ["::error::x\n"], [":", ":error::x\n"], ["  ", ":", ":error::x\n"], ["a\n", "::error::x\n"],
        ["#", "#[group]x\n"], ["##", "[group]x\n"], ["##vso", "[x]\n"], ["a ##", "vso[x]y\n"], ["x" * 200, "##", "[group]\n"],
        ["x" * 200, "\n", "\u00a0::error::x\n"], ["\x1b", "::error::x\n"], ["\r::error::x\n"], ["\r\n::error::x\n"],
    ],
)  # fmt: skip
def test_a_command_in_pieces_is_not_one(tmp_path: Path, pieces: list[str]) -> None:
    for whole in (pieces, list("".join(pieces))):
        file = tmp_path / "log"
        with file.open("w", encoding="utf-8") as out:
            safe = SafeStream(out, in_ci=True, on_github=True, reports=True)
            for piece in whole:
                safe.write(piece)
        assert not COMMAND.search(file.read_text("utf-8"))


def test_our_own_drawings_are_broken_too(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as out:
        safe = SafeStream(out, in_ci=True, on_github=False, reports=True)
        own_output(safe).write("\x1b[1m##[group]x\n::error::y\n")  # type: ignore[arg-type]
    assert not COMMAND.search((tmp_path / "log").read_text("utf-8"))


def test_long_lines_and_many_of_them_cost_no_more_than_their_length() -> None:
    for text in ("\n " * 500_000 + "::", " " * 1_000_000 + "::", "##a" * 300_000, "::" * 500_000):
        without_commands(text)  # would take minutes if it were quadratic


def test_the_summary_of_a_step_holds_no_markup_of_others(
    baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = [
        "<img src=x onerror=y>", "![a](http://127.0.0.1:9/e)", "[b](http://127.0.0.1:9/f)", "@everyone #1 GH-1",
        "a | b \\| <b>c</b> \\\\| [d](http://127.0.0.1:9)", "`` ` @me ```", "http://127.0.0.1:9/www", "# head\n- list\n<!-- x",
        "<details>\n</details>", "\\`<b>", "$x$ :tada: [[wiki]]",
    ]  # fmt: skip
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    baton("report", hostile_evaluation(tmp_path / "e", hostile), "--github")
    for line in summary.read_text("utf-8").splitlines():
        bare = code_spans_taken_out(line)
        for sign in ("<", "![", "](", "http", "@", "#1", "$x", ":tada:"):
            assert sign not in bare, (sign, line)


def test_a_status_of_a_folder_is_no_markup(baton: Baton, tmp_path: Path) -> None:
    folder = hostile_evaluation(tmp_path / "e", ["a"])
    header = json.loads((folder / "evaluation.json").read_text("utf-8"))
    header["status"] = "<b>passed</b> @me [a](http://127.0.0.1:9)"
    (folder / "evaluation.json").write_text(json.dumps(header))
    outcome = baton("report", folder, "--format", "markdown")
    assert outcome.code in (2, 3)
    assert "<b>" not in code_spans_taken_out(outcome.out.replace("\n", " "))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b", "`a\\|b`"),
        ("a\\|b", "`a\\u005c\\|b`"),
        ("a\\\\|b", "`a\\u005c\\u005c\\|b`"),
        ("a\\b", "`a\\b`"),
    ],
)
def test_a_cell_of_a_table_is_not_ended_by_its_text(text: str, written: str) -> None:
    assert cell(text) == written


@pytest.mark.parametrize("file", ["baton.yaml", "test_marked.py"])
def test_a_failed_test_of_pytest_prints_nothing_hostile(tmp_path: Path, file: str) -> None:
    hostile = f"{TEXT}\x1b[2J"
    case = {"id": hostile, "input": "hi", "response_contains": [f"{hostile} more"]}
    (tmp_path / "cases.json").write_text(json.dumps({"cases": [case]}))
    (tmp_path / "desk.py").write_text(f"def answer(message):\n    return {hostile!r}\n")
    (tmp_path / "baton.yaml").write_text(
        "dataset: cases.json\nproviders:\n  - {type: python, target: 'desk.py:answer'}\n"
        "evaluators: [{type: response}]\n"
    )
    (tmp_path / "test_marked.py").write_text(
        "import pytest\nfrom baton.testing import assert_passes\n"
        "@pytest.mark.baton('cases.json', 'desk.py:answer', evaluators=['response'])\n"
        "def test_it(baton_result):\n    assert_passes(baton_result)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--baton", file, "-v", "-p", "no:cacheprovider",
         "-p", "baton.pytest_plugin"],
        cwd=tmp_path, env={**os.environ, "GITHUB_ACTIONS": "true", **NO_OTHER_PLUGINS},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    assert "\x1b[2J" not in done.stdout
    # Before each failure pytest prints the values of fixtures by itself, as Python writes them.
    told = [line for line in done.stdout.splitlines() if not line.startswith("baton_result = ")]
    assert not COMMAND.search("\n".join(told))


def test_what_init_writes_asks_for_annotations_and_no_more(tmp_path: Path) -> None:
    for name in ("action.yml", "examples/ci/github.yml", "src/baton/session/starter/github.yml"):
        text = (ROOT / name).read_text("utf-8")
        assert "pull_request_target" not in text
        scripts = re.findall(r"\brun: *(?:\|\n((?:(?: {8,}.*)?\n)+)|(.*))", text)
        assert scripts
        assert not any("${{" in script for found in scripts for script in found), name
    assert "--github" in (ROOT / "action.yml").read_text("utf-8")
    assert "--github" in (ROOT / "src/baton/session/starter/github.yml").read_text("utf-8")


def code_spans_taken_out(line: str) -> str:
    """Take code spans out as CommonMark finds them, after cells were found as GitHub finds them."""
    if line.startswith("| "):
        # A backslash takes the meaning of the next character, whatever that is.
        cells = re.findall(r"(?:\\.|[^|\\])+", line)
        return " ".join(_bare(each.replace("\\|", "|")) for each in cells)
    return _bare(line)


def _bare(text: str) -> str:
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text)
