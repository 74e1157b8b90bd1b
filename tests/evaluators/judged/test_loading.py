"""Rubrics are read strictly: every fault with its file, its line and a similar name."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.config import load_config
from baton.evaluators.judging.rubric_files import load_folders, load_rubric
from baton.model import InputError

GOOD = """\
name: polite
summary: whether an answer is polite
unit: turn
version: "1"
threshold: 1
inputs: [request, answer, history?]
prompt: Is it polite?
answer:
  choices: {yes: 1, no: 0}
"""


def load(folder: Path, text: str) -> str:
    """Load a faulty rubric; return what is said, without the folder."""
    file = folder / "polite.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        load_rubric(file)
    return str(raised.value).replace(f"{folder}/", "")


def test_a_rubric_is_read_and_words_like_yes_stay_words(tmp_path: Path) -> None:
    (tmp_path / "polite.yaml").write_text(GOOD)
    rubric = load_rubric(tmp_path / "polite.yaml")
    assert list(rubric.answer.labels or {}) == ["yes", "no"]
    assert rubric.wanted == [("request", True), ("answer", True), ("history", False)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("unit: turn", "untit: turn", "polite.yaml:3: untit: unknown key; did you mean `unit`?"),
        ("unit: turn", "unit: turns", "polite.yaml:3: unit: `turns` is not one of"),
        ("answer, h", "anwser, h", "polite.yaml:6: inputs[1]: no input `anwser`; did you mean `answer`"),
        ("answer, h", "received, h", "inputs[1]: `received` is an input of dispatch, run, not of turn"),
        ("answer, h", "request, h", "polite.yaml:6: inputs[1]: `request` is a duplicate"),
        ("{yes: 1, no: 0}", "{yes: 1}", "polite.yaml:9: answer.choices: `choices` need at least two labels"),
        ("choices: {yes: 1, no: 0}", "scale: {min: 3, max: 1}", "`min` has to be below `max`"),
        ("choices: {yes: 1, no: 0}", "{}", "one of `choices`, `scale`, `each` and `claims`"),
        (
            "choices: {yes: 1, no: 0}",
            "claims: {of: sources, choices: {yes: 1, no: 0}}",
            "polite.yaml:9: answer.claims.of: `sources` is not among the inputs",
        ),
        (
            "threshold: 1",
            "threshold: -0.5",
            "polite.yaml:5: threshold: always reached: scores go from 0 to 1, so nothing can fail",
        ),
        ("threshold: 1", "threshold: 85", "polite.yaml:5: threshold: never reached: scores go from 0"),
        ("{yes: 1, no: 0}", "{yes: null, no: null}", "`choices` need a label with a score"),
        ("threshold: 1", "threshold: high", "polite.yaml:5: threshold: expected a number"),
        (
            "threshold: 1",
            "threshold: 1\nfindings: {scope: {tool_executed: no}}",
            "polite.yaml:6: findings: findings belong to dispatches",
        ),
        (
            "threshold: 1",
            "threshold: 1\ntests: [{name: a, inputs: {answer: x}, label: maybe}]",
            "polite.yaml:6: tests[0].label: no label `maybe`",
        ),
        ("name: polite", "name: polite\nname: rude", "polite.yaml:2: duplicate key `name`"),
    ],
)  # fmt: skip
def test_a_fault_is_reported_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in load(tmp_path, GOOD.replace(old, new))


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    said = load(tmp_path, GOOD.replace("[request, answer", "[requst, anser"))
    assert len(said.splitlines()) == 2


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ("{scop: {}}", "no finding `scop`; did you mean `scope`?"),
        ("{scope: {tool_exected: no}}", "`scope` has no `tool_exected`; did you mean"),
        ("{scope: {tool_executed: nope}}", "no label `nope`; did you mean `no`"),
    ],
)
def test_findings_have_to_be_there_and_settle_by_a_label(
    tmp_path: Path, findings: str, said: str
) -> None:
    text = GOOD.replace("unit: turn", "unit: dispatch").replace("answer, history?", "call")
    assert said in load(tmp_path, f"{text}findings: {findings}\n")


def test_a_folder_needs_rubrics_and_new_names(tmp_path: Path) -> None:
    for folder, said in ((tmp_path, "no rubric (*.yaml)"), (tmp_path / "x", "no such folder")):
        with pytest.raises(InputError, match="no ") as raised:
            load_folders([folder])
        assert said in str(raised.value)
    (tmp_path / "a.yaml").write_text(GOOD.replace("name: polite", "name: task_completion"))
    with pytest.raises(InputError, match="the name `task_completion` belongs to another rubric"):
        load_folders([tmp_path])
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yml").write_text(GOOD)
    with pytest.raises(InputError, match=r"b\.yml: the name `polite` belongs to another rubric"):
        load_folders([tmp_path])


def config(folder: Path, text: str) -> Path:
    (folder / "own").mkdir()
    (folder / "own" / "polite.yaml").write_text(GOOD + "aliases: [Courtesy]\n")
    (folder / "baton.yaml").write_text(text)
    return folder / "baton.yaml"


def test_a_config_names_rubrics_of_a_folder_like_any_evaluator(tmp_path: Path) -> None:
    text = (
        'judge: {model: "openai:m", api_key: "${KEY}"}\nrubrics: [own]\nevaluators:\n'
        "- polite\n- {type: Courtesy, name: twice, config: {threshold: 0}}\n"
    )
    plan = load_config(config(tmp_path, text), {"KEY": "k"}).plan
    assert [(p.evaluator.type, p.evaluator.name) for p in plan.evaluators] == [
        ("polite", "polite"),
        ("polite", "twice"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rubrics: [own]\nevaluators: [polit]\n", "did you mean `polite`?"),
        ("rubrics: [owm]\nevaluators: [agent_chain]\n", "no such folder"),
        ("evaluators: [polite]\n", "unknown evaluator `polite`"),
    ],
)
def test_a_name_that_is_missing_stops_the_run(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        load_config(config(tmp_path, text))
    assert said in str(raised.value)
