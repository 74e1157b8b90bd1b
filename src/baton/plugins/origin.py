"""Where this copy of Baton was installed from, and how to install it or its extras from there."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Sequence
from typing import Any

NAME = "baton-evals"
"""The name of the distribution in the package index, once it is published."""


def install(*requirements: str) -> str:
    """Return the command that installs these."""
    return f"pip install {' '.join(map(shlex.quote, requirements))}"


def requirement(extra: str = "") -> str:
    """Return pip's requirement for Baton with an extra: by name, or by the origin of this copy.

    A copy that was not installed from a package index has a note of its origin (PEP 610): a
    repository, the address of a file, or a folder.
    """
    name = f"{NAME}[{extra}]" if extra else NAME
    origin = _origin()
    return f"{name} @ {origin}" if origin else name


def origin_notes(requirements: Sequence[str]) -> list[str]:
    """Return notes for requirements that name an origin: what to write instead, and when."""
    origin = _origin()
    if not origin:
        return []
    by_name = [each.removesuffix(f" @ {origin}") for each in requirements]
    notes = [f"Once Baton is published on the package index: {install(*by_name)}"]
    if origin.startswith("file:"):
        notes.insert(0, "This copy of Baton came from a folder: name an address that CI can reach.")
    return notes


@functools.cache
def _origin() -> str:
    import json  # the following imports are slow, and only needed for a message
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    return origin_of(json.loads(noted)) if noted else ""


def origin_of(noted: dict[str, Any]) -> str:
    """Return the address of an origin, as `pip install` takes it after ``@``."""
    url = str(noted.get("url", ""))
    if "vcs_info" in noted:
        vcs = noted["vcs_info"]
        url = f"{vcs.get('vcs', 'git')}+{url}@{vcs.get('commit_id', '')}".rstrip("@")
    place = noted.get("subdirectory")
    return f"{url}#subdirectory={place}" if place else url
