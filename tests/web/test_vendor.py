"""The scripts of others are the ones that were checked, small, and licensed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.web.vendor import FOR_TESTS, PACKAGES, TEST_PACKAGES, VENDOR, Package

BOTH = pytest.mark.parametrize(
    ("folder", "packages"),
    [(VENDOR, PACKAGES), (FOR_TESTS, TEST_PACKAGES)],
    ids=["pages", "tests"],
)


@BOTH
def test_each_file_has_the_hash_that_the_list_says_and_no_other_file_is_there(
    folder: Path, packages: tuple[Package, ...]
) -> None:
    listed = json.loads((folder / "vendor.json").read_text())
    hashes = {name: digest for package in listed for name, digest in package["files"].items()}
    present = {file.name: file.read_bytes() for file in folder.iterdir()}
    del present["vendor.json"]
    assert {n: hashlib.sha256(text).hexdigest() for n, text in present.items()} == hashes


@BOTH
def test_the_list_has_the_pinned_packages_and_each_comes_with_its_licence(
    folder: Path, packages: tuple[Package, ...]
) -> None:
    listed = json.loads((folder / "vendor.json").read_text())
    pinned = [(package.name, package.version, package.sha512) for package in packages]
    assert [(one["name"], one["version"], one["sha512"]) for one in listed] == pinned
    for package in listed:
        assert any(name.endswith("LICENSE.txt") for name in package["files"]), package["name"]
    assert "://" not in (folder / "vendor.json").read_text()


def test_all_of_it_together_is_small() -> None:
    assert sum(file.stat().st_size for file in VENDOR.iterdir()) < 200_000
