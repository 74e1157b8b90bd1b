"""A value of a file is changed, and the rest stays as its author wrote it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from baton.formats.edit_values import rewrite
from baton.formats.yaml import dump_yaml, load_yaml
from baton.model import InputError

CASES = """\
# Cases of the desk
name: desk   # short

cases:
  # the first
  - id: a     # why a
    input: "Hé there"   # quoted
    agents: [x, y]
    response: |
      one
      two

  - id: b
    turns:
      - input: q1
        agents:
          - x
      - input: q2   # last
# end
"""
SET = """\
{
  // mine, and é
  "eval_set_id": "s", "eval_cases": [
    {"eval_id": "a", "conversation": []},
    {
      "eval_id": "b",
      "conversation": [{"x": 1}]
    }
  ]
}
"""


def changed(text: str, change: Callable[[Any], None]) -> str:
    value = load_yaml(text.replace("// mine, and é", ""), "f")
    change(value)
    return rewrite("f", text, value)


def test_a_new_case_is_written_in_the_style_of_the_others() -> None:
    new = {"id": "c", "input": "one\ntwo\n", "dispatches": [{"to": "k", "kind": "transfer"}]}
    text = changed(CASES, lambda value: value["cases"].append(new))
    before, after = CASES.split("# end")
    assert (
        text
        == before
        + (
            "\n"
            "  - id: c\n"
            "    input: |\n"
            "      one\n"
            "      two\n"
            "    dispatches:\n"
            "      - to: k\n"
            "        kind: transfer\n"
            "# end"
        )
        + after
    )


def test_only_what_is_changed_is_written_again() -> None:
    def change(value: Any) -> None:
        first, second = value["cases"]
        first["input"] = "other: x"
        first["agents"].append("z")
        second["turns"][1]["agents"] = ["z"]
        second["tags"] = ["k"]
        del second["id"]

    text = changed(CASES, change)
    assert text == (
        CASES.replace('"Hé there"', "'other: x'")
        .replace("[x, y]", "[x, y, z]")
        .replace("- id: b\n    turns:", "- turns:")
        .replace(
            "q2   # last\n", "q2   # last\n        agents:\n          - z\n    tags:\n      - k\n"
        )
    )


def test_a_case_is_taken_out_of_yaml_and_comments_stay() -> None:
    text = changed(CASES, lambda value: value["cases"].pop(0))
    assert [line for line in text.splitlines() if "#" in line] == [
        line
        for line in CASES.splitlines()
        if "#" in line and "why a" not in line and "quoted" not in line
    ]
    assert load_yaml(text, "f")["cases"][0]["id"] == "b"


def test_json_keeps_its_comments_and_indentation() -> None:
    text = changed(SET, lambda value: value["eval_cases"].append({"eval_id": "é", "n": [1]}))
    assert text == SET.replace(
        '[{"x": 1}]\n    }',
        '[{"x": 1}]\n    },\n    {\n      "eval_id": "é",\n      "n": [\n        1\n      ]\n    }',
    )
    assert changed(SET, lambda value: value["eval_cases"].pop(1)) == (
        SET[: SET.index(",\n    {\n")] + "\n  ]\n}\n"
    )
    assert changed(SET, lambda value: value["eval_cases"][1].update(eval_id="c")) == SET.replace(
        '"b"', '"c"'
    )


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("cases: []\n", "cases:\n- id: a\n"),
        ("name: x\ncases:\n", "name: x\ncases:\n- id: a\n"),
        ("name: x\r\ncases: []\r\n", "name: x\r\ncases:\r\n- id: a\r\n"),
        ("\ufeffcases: []", "\ufeffcases:\n- id: a"),
        ('{"cases": []}', '{"cases": [{"id": "a"}]}'),
        ('{\n\t"cases": []\n}', '{\n\t"cases": [\n\t\t{\n\t\t\t"id": "a"\n\t\t}\n\t]\n}'),
    ],
)
def test_the_first_case_of_a_file(text: str, becomes: str) -> None:
    assert changed(text, lambda value: value.update(cases=[{"id": "a"}])) == becomes


def test_a_change_that_would_reach_further_is_refused() -> None:
    text = "cases:\n- {id: a, tags: &tags [k]}\n- {id: b, tags: *tags}\n"
    with pytest.raises(InputError, match="change it in an editor"):
        changed(text, lambda value: value["cases"][0]["tags"].append("z"))


def test_any_change_leads_to_its_value_or_is_refused() -> None:
    chance = random.Random(7)
    refused = 0
    for _ in range(400):
        value = _value(chance, 4)
        new = _varied(chance, copy.deepcopy(value))
        for text in (
            dump_yaml(value),
            dump_yaml(value, lines=True),
            json.dumps(value, indent=2),
            json.dumps(value),
        ):
            try:
                assert load_yaml(rewrite("f", text, new), "f") == new
            except InputError:
                refused += 1
    assert refused == 0


def _value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(8) if depth else chance.randrange(4)
    if depth == 4 or kind > 5:
        return {f"k{n}": _value(chance, depth - 1) for n in range(chance.randrange(1, 4))}
    if kind > 3:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return chance.choice(["a: b", "one\ntwo\n", "", None, True, 1, "# no", "- x", "'q'", "é\n\n x"])


def _varied(chance: random.Random, value: Any) -> Any:
    if chance.random() < 0.2:
        return _value(chance, 2)
    if isinstance(value, dict):
        kept = {key: _varied(chance, each) for key, each in value.items() if chance.random() < 0.8}
        return {**kept, **({"new": _value(chance, 2)} if chance.random() < 0.3 else {})}
    if isinstance(value, list):
        kept_items = [_varied(chance, each) for each in value if chance.random() < 0.8]
        return [*kept_items, *([_value(chance, 1)] if chance.random() < 0.4 else [])]
    return value
