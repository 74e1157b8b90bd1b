"""The page of the server tells every setting, with what holds without it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest

from baton.server.settings import LimitSettings, Settings

from .pages import ROOT

PAGE = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
WRITTEN_OTHERWISE = {"quiet", "keep_inbox", "retention", "limits", "trials"}


def rows() -> Iterator[tuple[str, str]]:
    """Yield each name that a table of settings has, with its default as the table writes it."""
    for names, defaults in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*?) \|", PAGE, re.MULTILINE):
        listed = re.findall(r"\w+", names)
        shown = re.split(r", (?![^\[]*\])", defaults)
        for place, name in enumerate(listed):
            yield name, shown[place].strip("` ") if place < len(shown) else ""


@pytest.mark.parametrize("type_", [Settings, LimitSettings])
def test_every_setting_is_reported_with_its_default(type_: type[msgspec.Struct]) -> None:
    told = dict(rows())
    for name in type_.__struct_fields__:
        if name == "file":  # which the command line names
            continue
        assert name in told, name
        default = getattr(type_(), name)
        if name not in WRITTEN_OTHERWISE and default:
            assert told[name] == as_written(default), name


def as_written(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 20:
        return f"{value >> 20} MiB"
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
