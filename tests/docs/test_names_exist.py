"""Files and modules that the pages name are there."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPANS = ROOT / "docs" / "otel.md"
"""Its names are attributes of spans."""
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {SPANS})
SHOWN = re.compile(r"```.*?```", re.DOTALL)


# Modules of frameworks warn of their own code.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_that_a_page_names_can_be_imported(page: Path) -> None:
    text = SHOWN.sub("", page.read_text("utf-8"))
    # `baton.turn` is an attribute of spans and `baton.yaml` a file: two words may be anything.
    for name in re.findall(r"`(baton(?:\.[a-z_0-9]+){2,})|`(baton\.[a-z_0-9]+)\(", text):
        parts = (name[0] or name[1]).split(".")
        assert any(_is_there(parts, size) for size in range(len(parts), 0, -1)), parts


def test_files_that_the_architecture_names_are_there() -> None:
    text = SHOWN.sub("", (ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    package = ROOT / "src" / "baton"
    for name in re.findall(r"`([a-z_0-9/]+(?:\.py|/))`", text):
        assert (ROOT / name).exists() or (package / name).exists(), name


def test_the_table_of_layers_has_the_order_that_is_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = next(each["layers"] for each in contracts["contracts"] if each["type"] == "layers")
    floor = {name: at for at, layer in enumerate(layers) for name in layer.split(" | ")}
    table = (
        (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("| --- | --- |\n")[1].split("\n\n")[0]
    )
    listed = [
        name.removesuffix("/")
        for row in table.splitlines()
        for name in re.findall(r"`(.*?)`", row.split("|")[1])
    ]
    assert sorted(listed) == sorted(floor.keys() - {"__main__"})
    assert [floor[name] for name in listed] == sorted(floor[name] for name in listed)


def _is_there(parts: list[str], size: int) -> bool:
    """Tell whether the first parts are a module, and the next one, if any, is in it."""
    try:
        module = importlib.import_module(".".join(parts[:size]))
    except ModuleNotFoundError:
        return False
    return size == len(parts) or hasattr(module, parts[size])
