"""Datasets in folders: listed, changed case by case, and nothing of them lost."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from baton.datasets import load_dataset
from baton.formats.yaml import load_yaml
from baton.model import InputError, Trace
from baton.session.case_form import case_of_yaml, case_yaml, form_of, with_form
from baton.session.dataset_folders import ChangedMeanwhile, DatasetFolders, slug_of
from baton.testing.build import call, delegate, run, trace, turn

CASES = """\
# Refunds that went wrong in March.
name: Refunds

cases:
  # found by Kim
  - id: late
    input: "Where is my refund?"   # as it was said
    agents: [router, refund_agent]
    tags: [refund]

  - id: twice
    input: I was charged twice
    agents: [router]
"""
NAME = "cases/refunds.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "refunds.yaml").write_text(CASES)
    return tmp_path / "cases"


@pytest.fixture
def datasets(folder: Path) -> DatasetFolders:
    return DatasetFolders([folder])


def session() -> Trace:
    begins = {"app": "desk", "user": "kim", "state": {"tier": "gold"}}
    return trace(
        turn(
            "Refund R-1001, token AKIA" + "IOSFODNN7QWERTYU",
            run("router", call("lookup", {"id": "R-1001"}), delegate("billing", "Refund R-1001")),
            run("billing", output="R-1001 refunded"),
            output="R-1001 is refunded.",
        ),
        attributes={"session": begins},
    )


def test_datasets_are_listed_with_what_their_cases_expect(
    datasets: DatasetFolders, folder: Path
) -> None:
    (folder / "notes.yaml").write_text("nothing: here\n")
    (folder / "broken.yaml").write_text("cases:\n- id: a\n  inptu: x\n")
    broken, refunds = datasets.datasets()
    assert (refunds.name, refunds.title, refunds.format) == (NAME, "Refunds", "baton")
    assert [(case.id, case.agents, case.tags) for case in refunds.cases] == [
        ("late", ["router", "refund_agent"], ["refund"]),
        ("twice", ["router"], []),
    ]
    assert refunds.strata == {"router": 2, "refund_agent": 1}
    assert broken.problem is not None
    assert "did you mean `input`" in broken.problem


def test_a_conversation_becomes_a_case_and_the_file_stays_as_it_was_written(
    datasets: DatasetFolders, folder: Path
) -> None:
    datasets.add_session(NAME, "gold refund", session())
    text = (folder / "refunds.yaml").read_text()
    assert text.startswith(CASES.rstrip())
    case = load_dataset(folder).cases[2]
    assert (case.id, case.session.app, case.session.user) == ("gold refund", "desk", "kim")
    assert case.state == {"tier": "gold"}
    assert case.turns[0].agents == ["router", "billing"]
    assert "IOSFODNN7" not in text
    assert [row.id for row in datasets.dataset(NAME).cases] == ["late", "twice", "gold refund"]
    with pytest.raises(InputError, match="there is a case `gold refund`"):
        datasets.add_session(NAME, "gold refund", session())


def test_an_eval_set_of_adk_is_made_and_gets_cases(datasets: DatasetFolders, folder: Path) -> None:
    (folder / "desk").mkdir()
    (folder / "desk" / "agent.py").touch()
    made = datasets.create("cases/desk", "March, refunds!", "adk")
    assert made.name == "cases/desk/March_refunds.evalset.json"
    assert made.cases == []
    notes = datasets.add_session(made.name, "one", session())
    assert any("no place for" in note for note in notes)
    written = json.loads((folder / "desk" / "March_refunds.evalset.json").read_text())
    assert written["eval_set_id"] == "March_refunds"
    (case,) = written["eval_cases"]
    assert case["session_input"] == {
        "app_name": "desk",
        "user_id": "kim",
        "state": {"tier": "gold"},
    }
    assert case["conversation"][0]["final_response"]["parts"][0]["text"] == "R-1001 is refunded."
    with pytest.raises(InputError, match="already exists"):
        datasets.create("cases/desk", "March refunds", "adk")


def test_a_form_changes_what_it_shows(datasets: DatasetFolders, folder: Path) -> None:
    value, hash_ = datasets.case_value(NAME, "late")
    form = form_of(value)
    assert form is not None
    assert form.turns[0].agents == "router > refund_agent"
    form.turns[0].response = "It is on its way.\nSoon."
    form.turns[0].agents = "router > billing"
    form.user = "kim"
    datasets.change_case(NAME, "late", with_form(value, form), hash_)
    assert (folder / "refunds.yaml").read_text() == CASES.replace(
        "[router, refund_agent]", "[router, billing]"
    ).replace(
        "    tags: [refund]\n",
        "    tags: [refund]\n    response: |-\n      It is on its way.\n      Soon.\n"
        "    session:\n      user: kim\n",
    )


def test_nothing_is_written_over_what_changed_meanwhile(
    datasets: DatasetFolders, folder: Path
) -> None:
    value, hash_ = datasets.case_value(NAME, "late")
    (folder / "refunds.yaml").write_text(CASES.replace("Where is", "Where was"))
    with pytest.raises(ChangedMeanwhile, match="someone else changed the case `late`"):
        datasets.change_case(NAME, "late", value, hash_)
    with pytest.raises(ChangedMeanwhile):
        datasets.delete_cases(NAME, {"late": hash_})
    with pytest.raises(ChangedMeanwhile):
        datasets.delete(NAME, "of before")
    # A change elsewhere in the file is not a reason to ask.
    other, its_hash = datasets.case_value(NAME, "twice")
    datasets.change_case(NAME, "twice", {**other, "tags": ["money"]}, its_hash)
    assert "Where was" in (folder / "refunds.yaml").read_text()


def test_faults_are_those_of_baton_check_and_nothing_is_written(
    datasets: DatasetFolders, folder: Path
) -> None:
    value, hash_ = datasets.case_value(NAME, "late")
    edited = case_of_yaml(case_yaml(value).replace("agents:", "agent:"))
    with pytest.raises(InputError, match=r"^agent: unknown key; did you mean `agents`"):
        datasets.change_case(NAME, "late", edited, hash_)
    with pytest.raises(InputError, match="the case:3"):
        case_of_yaml("id: a\ninput: [")
    assert (folder / "refunds.yaml").read_text() == CASES


def test_cases_and_datasets_are_renamed_and_deleted(datasets: DatasetFolders, folder: Path) -> None:
    (folder / "refunds.yaml").chmod(0o600)
    _, hash_ = datasets.case_value(NAME, "late")
    datasets.delete_cases(NAME, {"late": hash_})
    left = datasets.dataset(NAME)
    assert [case.id for case in left.cases] == ["twice"]
    assert "# found by Kim" in (folder / "refunds.yaml").read_text()
    renamed = datasets.rename(NAME, "Refunds of April", left.hash)
    assert (renamed.name, renamed.title) == ("cases/refunds-of-april.yaml", "Refunds of April")
    assert stat.S_IMODE((folder / "refunds-of-april.yaml").stat().st_mode) == 0o600
    datasets.delete(renamed.name, renamed.hash)
    assert datasets.datasets() == []


def test_json_lines_keep_the_lines_that_do_not_change(
    datasets: DatasetFolders, folder: Path
) -> None:
    file = folder / "lines.jsonl"
    file.write_text('{"id": "a",   "input": "x"}\n\n{"id":"b","input":"y"}\n')
    datasets.add_session("cases/lines.jsonl", "c", session())
    lines = file.read_text().splitlines()
    assert lines[:2] == ['{"id": "a",   "input": "x"}', '{"id":"b","input":"y"}']
    assert json.loads(lines[2])["agents"] == ["router", "billing"]


@pytest.mark.parametrize(
    "name", ["cases/../secret.yaml", "/etc/passwd", "cases/out.yaml", "other/x"]
)
def test_names_reach_nothing_outside_of_the_folders(
    datasets: DatasetFolders, folder: Path, name: str
) -> None:
    secret = folder.parent / "secret.yaml"
    secret.write_text(CASES)
    (folder / "out.yaml").symlink_to(secret)
    (folder / "away").symlink_to(folder.parent)
    with pytest.raises(KeyError):
        datasets.dataset(name)
    with pytest.raises(KeyError):
        datasets.add_session(name, "x", session())
    with pytest.raises(InputError, match="no folder"):
        datasets.create("cases/away", "x", "baton")
    assert secret.read_text() == CASES


def test_names_become_slugs() -> None:
    assert slug_of("../../etc/Passwd", "baton") == "etc-passwd"
    assert slug_of("Rückgabe 2", "baton") == "rückgabe-2"
    assert slug_of("Rückgabe 2", "adk") == "R_ckgabe_2"
    with pytest.raises(InputError, match="no letters or digits"):
        slug_of("..", "baton")


def test_the_form_of_an_eval_set_keeps_its_spelling(tmp_path: Path) -> None:
    case: dict[str, Any] = {
        "evalId": "a",
        "conversation": [
            {
                "invocationId": "i",
                "userContent": {"parts": [{"text": "hi"}], "role": "user"},
                "finalResponse": {"parts": [{"text": "hello"}], "role": "model"},
            }
        ],
    }
    form = form_of(case)
    assert form is not None
    form.turns[0].response, form.user, form.state = "bye", "kim", '{"a": 1}'
    assert with_form(case, form) == {
        **case,
        "conversation": [
            {
                **case["conversation"][0],
                "finalResponse": {"parts": [{"text": "bye"}], "role": "model"},
            }
        ],
        "session_input": {"app_name": "", "user_id": "kim", "state": {"a": 1}},
    }
    form.state = "[1]"
    with pytest.raises(InputError, match="JSON object"):
        with_form(case, form)
    assert load_yaml(case_yaml(case), "f") == case


@pytest.mark.parametrize("form", ["adk", "yaml"])
def test_a_dataset_that_is_too_large_to_be_shown_is_listed_with_the_reason(
    folder: Path, datasets: DatasetFolders, form: str
) -> None:
    rest = " " * (33 << 20)
    if form == "adk":
        (folder / "large.json").write_text('{"eval_set_id": "a", "eval_cases": []' + rest + "}")
    else:
        (folder / "large.yaml").write_text(CASES + "#" + rest)
    (folder / "recording.json").write_text('{"events": []' + rest + "}")
    listed = {row.path.name: row for row in datasets.datasets()}
    assert sorted(listed) == sorted(
        ["refunds.yaml", "large.json" if form == "adk" else "large.yaml"]
    )
    large = next(row for name, row in listed.items() if name.startswith("large"))
    assert large.problem is not None
    assert "larger than 32 MB" in large.problem
    assert "`baton eval` plays it" in large.problem


def test_a_list_does_not_wait_for_a_file_of_many_cases(
    datasets: DatasetFolders, folder: Path
) -> None:
    assert len(datasets.dataset(NAME).cases) == 2
    many = "".join(f"- {{id: c{n}, input: hello {n}}}\n" for n in range(3000))
    (folder / "many.yaml").write_text("cases:\n" + many)
    rows = {row.name: row for row in datasets.datasets(0)}
    assert (rows["cases/many.yaml"].reading, rows["cases/many.yaml"].cases) == (True, [])
    assert not rows[NAME].reading  # what has not changed is not read again
    assert datasets.dataset("cases/many.yaml", 0).reading
    read = datasets.dataset("cases/many.yaml")
    assert (read.reading, len(read.cases), read.cases[-1].id) == (False, 3000, "c2999")
    assert not any(row.reading for row in datasets.datasets(0))


@pytest.mark.parametrize("start", ["", "// of March\n", "\ufeff"])
def test_json_is_read_with_and_without_comments(
    datasets: DatasetFolders, folder: Path, start: str
) -> None:
    (folder / "a.json").write_text(start + '{"cases": [{"id": "a", "input": "http://x // y"}]}')
    value, hash_ = datasets.case_value("cases/a.json", "a")
    assert value == {"id": "a", "input": "http://x // y"}
    assert [case.hash for case in datasets.dataset("cases/a.json").cases] == [hash_]
