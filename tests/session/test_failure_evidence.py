"""What points to agents beside the cases of `baton improve`: issues, blame, labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import ROOT, Baton

from baton.feed.issues import Issue, Rate
from baton.improvements.choose_component import Pointed
from baton.model import Case, DispatchCase, InputError, MadeDispatch, Origin
from baton.session.failure_evidence import Evidence, at_fault, evidence_of, with_labels
from baton.testing.build import delegate, run, trace, turn

BLEED = ROOT / "examples" / "claude" / "scope_bleed"
FAULTY = "validator-agent"


def gathered(
    issues: Sequence[Any] = (), labels: Sequence[Any] = (), cases: Sequence[Case] = ()
) -> tuple[Evidence, list[str]]:
    notes: list[str] = []
    return evidence_of(issues, labels, cases, None, notes.append, {}), notes


def issue(**given: Any) -> Issue:
    usual: dict[str, Any] = {
        "key": "k1", "title": "", "subtype": "wrong_target", "category": "choosing",
        "fault": "wrong_target", "sender": "desk", "receiver": "refunds", "evaluators": ["e"],
        "proven": True, "count": 7, "rate": Rate(failed=7, dispatches=9, per_1000=None),
        "members": [],
    }  # fmt: skip
    return Issue(**{**usual, **given})


@pytest.mark.parametrize(
    ("category", "subtype", "agent"),
    [
        ("choosing", "wrong_target", "desk"),
        ("asking", "dropped_fact", "desk"),
        ("using", "ignored_result", "desk"),
        ("running", "loop", "desk"),
        ("working", "tool_outside_scope", "refunds"),
        ("running", "other", "refunds"),
        ("running", "infrastructure", None),
    ],
)
def test_an_issue_is_the_fault_of_the_sender_or_of_the_receiver(
    category: str, subtype: str, agent: str | None
) -> None:
    assert at_fault(issue(category=category, subtype=subtype)) == agent


def test_the_user_is_never_at_fault() -> None:
    assert at_fault(issue(sender="")) == "refunds"
    assert at_fault(issue(sender="", receiver=None)) is None


def test_a_recording_and_its_stored_evaluation_blame_the_same_agent(baton: Baton) -> None:
    pointed = gathered([BLEED])[0].pointed
    assert list(pointed) == [FAULTY]
    assert (pointed[FAULTY].failures, pointed[FAULTY].blamed) == (1, 1)
    baton("score", BLEED)
    (folder,) = Path(".baton/evaluations").iterdir()
    assert gathered([folder])[0].pointed == pointed


def test_of_an_evaluation_failures_that_name_no_agent_point_to_who_worked_last(
    baton: Baton, tmp_path: Path
) -> None:
    answer = "It is ready."
    played = trace(
        turn(
            "Is it ready?",
            run("desk", delegate("pharmacy", "Is it?", result=answer), answer, output=answer),
            run("pharmacy", answer, input="Is it?", output=answer),
            output=answer,
        ),
        id="t1",
    )
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(played))
    expected = {"id": "t1", "turns": [{"input": "Is it ready?", "response_contains": ["at five"]}]}
    (tmp_path / "cases.json").write_text(json.dumps({"cases": [expected]}), "utf-8")
    assert baton("score", "run.json", "--dataset", "cases.json", "-e", "response").code == 1
    (folder,) = Path(".baton/evaluations").iterdir()
    evidence, notes = gathered([folder])
    assert evidence.pointed == {"pharmacy": Pointed(failures=1)}
    assert notes == []


def test_files_of_issues_are_read_and_what_is_muted_or_fixed_is_left_out(
    baton: Baton, tmp_path: Path
) -> None:
    line = baton("issues", BLEED, "--json").out
    kept = tmp_path / "issues.jsonl"
    found = json.loads(line)
    more = [{**found, "key": state, "count": 5, "state": state} for state in ("muted", "fixed")]
    regressed = {**found, "key": "again", "count": 9, "state": "regressed", "infrastructure": 2}
    lines = [json.dumps(each) for each in (found, *more, regressed)]
    kept.write_text("\n".join(lines), "utf-8")
    (pointed,) = gathered([kept])[0].pointed.values()
    assert pointed == Pointed(failures=8, issues=["again", found["key"]])
    shown = "8 failures of 2 issues (again, " + found["key"] + ")"
    assert str(pointed) == shown

    work = tmp_path / "work.json"  # as in .baton/issues
    work.write_text(json.dumps({"issue": found}, indent=2), "utf-8")
    assert gathered([work])[0].pointed[FAULTY].failures == 1

    kept.write_text(f"{line.strip()}\n{{}}\n", "utf-8")
    with pytest.raises(InputError, match=r"issues\.jsonl:2: is not an issue"):
        gathered([kept])


def test_an_issue_that_names_nobody_is_counted_and_left_out(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_bytes(msgspec.json.encode(issue(sender=None, receiver=None)))
    evidence, notes = gathered([file])
    assert evidence.pointed == {}
    assert notes == ["1 issue left out, as no agent is known to be at fault"]


def labelled(tmp_path: Path, *lines: dict[str, Any]) -> Path:
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return file


def test_what_people_label_as_failed_points_to_the_sender_or_the_receiver(
    baton: Baton, tmp_path: Path
) -> None:
    id_ = json.loads(baton("show", BLEED, "--json").out)["id"]
    of = {"trace": id_, "subject": "dispatch1"}
    file = labelled(
        tmp_path,
        {**of, "rubric": "dispatch_correctness", "value": "failed"},
        {**of, "rubric": "scope_fidelity", "value": "failed"},
        {**of, "rubric": "result_integration", "value": "passed"},
        {**of, "rubric": "our_own", "value": "failed"},
        {"trace": "elsewhere", "subject": "d", "rubric": "our_own", "value": "failed"},
    )
    evidence, notes = gathered([BLEED], [file])
    assert evidence.pointed["main"].labels == 1
    assert evidence.pointed[FAULTY].labels == 2
    assert notes[-1].startswith("1 label left out: their traces are not here")
    assert notes[-1].endswith("name the evaluation or recording with `issues`")


def case_of(dispatch: str) -> Case:
    call = MadeDispatch(sender="desk", to="refunds")
    made = DispatchCase(context=[], call=call, origin=Origin(trace="t1", dispatch=dispatch))
    return Case(id=dispatch, turns=[], dispatch=made)


def test_labels_of_the_recordings_that_cases_were_made_of_need_no_recording(
    tmp_path: Path,
) -> None:
    cases = [case_of("d1"), case_of("d2")]
    said = {"trace": "t1", "rubric": "scope_fidelity", "value": "failed"}
    file = labelled(tmp_path, {**said, "subject": "d2", "note": "it used a wrong tool"})
    evidence, notes = gathered([], [file], cases)
    assert (evidence.pointed, notes) == ({"refunds": Pointed(labels=1)}, [])
    one, two = with_labels(cases, evidence.labels)
    assert one.labels == {}
    assert two.labels == {"scope_fidelity": "failed: it used a wrong tool"}
