"""The reference of all options, and the names that editors complete: ``python -m tests.docs.options``.

Both are written from the classes of the evaluators, with ``--write`` into their files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from baton.evaluators.registry import evaluator_entries
from baton.plugins import Entry

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "evaluators" / "options.md"
PACKAGE = ROOT / "src" / "baton" / "evaluators" / "__init__.py"
START = "if TYPE_CHECKING:"
END = "\n\n\ndef "
HEAD = """# Options of all evaluators

Written from the code by `make schemas`. `baton list NAME` prints the same, and the
[JSON Schema](../schemas/config.schema.json) of a config completes them in an editor. In Python they are
keywords: `baton.evaluators.AgentChain(sequence_match_type="exact")`. Those of rubrics
(`baton.evaluators.Judged("correctness", threshold=0.7)`) are in [rubrics](../rubrics.md#options).
"""


def page() -> str:
    """Return the reference."""
    return "\n".join([HEAD, *(line for entry in evaluator_entries() for line in _of(entry))])


def imports() -> str:
    """Return the names that editors and type checkers know from ``baton.evaluators``."""
    lines = [f"{START}  # only for editors and type checkers; `make schemas` writes this list"]
    modules = {entry.type: entry.target.__name__ for entry in evaluator_entries()}
    for module, name in sorted({**modules, "judged": "Judged"}.items()):
        lines.append(f"    from .{module} import {name} as {name}")
    return "\n".join(lines)


def written_imports() -> str:
    """Return the list as it is in the package."""
    text = PACKAGE.read_text(encoding="utf-8")
    return text[text.index(START) : text.index(END)]


def _of(entry: Entry) -> Iterator[str]:
    also = ", ".join(f"`{name}`" for name in entry.names[1:] if name != entry.type)
    yield f"## {entry.type}\n"
    yield f"{entry.summary[:1].upper()}{entry.summary[1:]}." + (f" Also {also}." if also else "")
    yield "\n| option | values | default | meaning |\n| --- | --- | --- | --- |"
    for field in msgspec.structs.fields(entry.target.options_type):
        info = inspect.type_info(field.type)
        meaning = ""
        while isinstance(info, inspect.Metadata):
            meaning = (info.extra_json_schema or {}).get("description", meaning)
            info = info.type
        cells = (f"`{field.encode_name}`", _values(info), _default(field), meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    details = getattr(entry.target, "details", None)
    if details is not None:
        listed = ", ".join(f"`{name}`" for name in details.__struct_encode_fields__)
        beside = "Details besides the options" if entry.target.states_options else "Details"
        yield f"\n{beside}: {listed}."
    yield ""


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    made = field.default is msgspec.NODEFAULT
    value = field.default_factory() if made else field.default
    return "" if value is None else f"`{msgspec.json.encode(value).decode()}`"


def _values(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata():
            return _values(info.type)
        case inspect.UnionType():
            return " or ".join(
                _values(t) for t in info.types if not isinstance(t, inspect.NoneType)
            )
        case inspect.LiteralType():
            return ", ".join(f"`{value}`" for value in info.values)
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType():
            what = "whole number" if isinstance(info, inspect.IntType) else "number"
            bounds = [("≥", info.ge), (">", info.gt), ("≤", info.le), ("<", info.lt)]
            said = ", ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
            return f"{what} {said}".strip()
        case inspect.StrType():
            return "text"
        case inspect.ListType() | inspect.VarTupleType():
            return f"list of {_values(info.item_type)}"
        case inspect.DictType():
            return f"mapping to {_values(info.value_type)}"
        case inspect.StructType():
            return _of_struct(info.cls)
    return "any"


def _of_struct(struct: Any) -> str:
    return "mapping of " + ", ".join(f"`{f.encode_name}`" for f in msgspec.structs.fields(struct))


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
        text = PACKAGE.read_text(encoding="utf-8")
        PACKAGE.write_text(text.replace(written_imports(), imports()), encoding="utf-8")
    else:
        print(page())
