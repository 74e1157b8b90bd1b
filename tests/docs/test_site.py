"""The docs site has every page, and its reference is that of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from .reference import PAGES
from .site import ROOT, lay_out

SITE = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
UNLISTED = {"examples"}
"""Folders whose pages are reached by links from other pages only."""


def _listed(entries: list[Any]) -> list[str]:
    names: list[str] = []
    for entry in entries:
        for target in entry.values():
            names += [target] if isinstance(target, str) else _listed(target)
    return names


def test_the_menu_has_every_page_once(tmp_path: Path) -> None:
    pages = ["index.md" if str(page) == "README.md" else str(page) for page in lay_out(tmp_path)]
    listed = _listed(SITE["nav"])
    assert sorted(page for page in pages if page.split("/")[0] not in UNLISTED) == sorted(listed)


def test_what_pages_link_to_is_on_the_site(tmp_path: Path) -> None:
    for page in lay_out(tmp_path):
        laid = tmp_path / ("index.md" if str(page) == "README.md" else page)
        text = re.sub(r"^```.*?^```$", "", laid.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
            assert (laid.parent / target).exists(), (page, target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_reference_is_that_of_the_code(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page](), "run `make schemas`"
