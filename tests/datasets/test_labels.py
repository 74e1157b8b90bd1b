"""Files of labels: read strictly, and written a label at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.datasets.labels import Label, LabelFile, labels_of, of_rubric, read_labels
from baton.model import Case, Content, Dataset, ExpectedTurn, InputError

GOOD = '{"trace": "t1", "dispatch": "d1", "rubric": "r", "label": "right", "by": "kim"}'


def written(folder: Path, *lines: str) -> Path:
    path = folder / "labels.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_labels(path)
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def test_a_label_is_of_a_dispatch_of_anything_else_or_of_the_trace(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        GOOD,
        "",
        '{"trace": "t1", "subject": "turn1", "rubric": "r", "score": 0.5}',
        '{"trace": "t1", "rubric": "r", "label": "right", "note": "fine", "at": "2026-01-02"}',
        '{"trace": "t1", "subject": "turn1", "rubric": "r", "value": "wrong", "by": "ann"}',
    )
    found = read_labels(path)
    assert [(one.what, one.value, one.where and one.where.line) for one in found] == [
        ("d1", "right", 1),
        ("turn1", 0.5, 3),
        ("t1", "right", 4),
        ("turn1", "wrong", 5),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"trace": "t", "rubric": "r", "value": "a", "score": 1}', "2: a line has one `value`"),
        ('{"trace": "t", "rubric": "r"}', "2: a line has one `value`"),
        ('{"trace": "t", "rubric": "r", "label": "a", "score": 1}', "2: a line has one `value`"),
        ('{"trace": "t", "dispatch": "d", "subject": "d", "rubric": "r", "label": "a"}', "2: dispatch: `dispatch` and"),
        ('{"trace": "t", "rubric": "r", "lable": "a"}', "2: lable: "),
        ('{"dispatch": "t", "rubric": "r", "label": "a"}', "2: `trace` is missing"),
        ('{"trace": "t", "rubric": "r", "score": "high"}', "2: score: "),
        ("not json", "2: "),
        ("[]", "2: "),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named_with_its_number_and_what_to_write(
    line: str, said: str, tmp_path: Path
) -> None:
    assert problems(written(tmp_path, GOOD, line))[0].startswith(said)


def test_all_wrong_lines_are_named_at_once(tmp_path: Path) -> None:
    assert [text.split(":")[0] for text in problems(written(tmp_path, "{", GOOD, "{}"))] == [
        "1", "3", "3",
    ]  # fmt: skip


def test_one_person_cannot_say_two_things_of_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, GOOD.replace("right", "wrong"))
    assert problems(path) == [
        "2: `d1` is labelled `wrong` by kim, and `right` on line 1: remove one of them"
    ]
    assert len(read_labels(written(tmp_path, GOOD, GOOD, GOOD.replace("kim", "ada")))) == 3


def test_a_rubric_nobody_labelled_is_named_with_the_nearest(tmp_path: Path) -> None:
    found = read_labels(written(tmp_path, GOOD.replace('"r"', '"scope_fidelity"')))
    assert len(of_rubric(found, ["ScopeFidelity", "scope_fidelity"])) == 1
    with pytest.raises(InputError, match="did you mean `scope_fidelity`"):
        of_rubric(found, ["scope_fidelty"])


def test_cases_may_have_labels_for_the_one_thing_or_for_one_of_several() -> None:
    turn = ExpectedTurn(input=Content(text="hi"))
    case = Case(id="c", turns=[turn], labels={"r": "right", "r/finder": "0.5"})
    found = labels_of(Dataset([case]))
    assert [(one.case, one.rubric, one.subject, one.value) for one in found] == [
        ("c", "r", None, "right"),
        ("c", "r", "finder", "0.5"),
    ]


def line(label: str = "right", rubric: str = "r", by: str | None = None) -> Label:
    return Label(trace="t", subject=label, rubric=rubric, value=label, by=by)


def test_a_growing_file_keeps_what_was_there_even_without_a_line_end(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(GOOD, encoding="utf-8")
    LabelFile(path).add(line())
    assert [one.subject for one in read_labels(path)] == ["d1", "right"]


def test_only_the_last_line_is_taken_back_and_only_ones_own(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    file = LabelFile(path)
    assert file.take_back("r", None) is None
    file.add(line("a"))
    file.add(line("b"))
    assert file.labelled("r", None) == [("t", "a"), ("t", "b")]
    assert file.take_back("other", None) is None
    taken = [file.take_back("r", None), file.take_back("r", None), file.take_back("r", None)]
    assert [one.value if one else None for one in taken] == ["b", "a", None]
    assert path.read_text(encoding="utf-8") == GOOD + "\n"
