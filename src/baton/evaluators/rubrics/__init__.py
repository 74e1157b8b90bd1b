"""The rubrics that come with Baton, a YAML file each; by name they are evaluators to be made."""

from __future__ import annotations

from pathlib import Path

from baton.evaluators.judging.maker import Maker
from baton.plugins import RUBRIC_SUFFIXES


def __getattr__(name: str) -> Maker:
    """Find what makes the evaluator of a rubric, by its name, or by the path of a file.

    Raises:
        AttributeError: no rubric has this name.
        InputError: the file holds none.
    """
    from baton.evaluators.judging.load import load_rubric, shipped

    if name.endswith(RUBRIC_SUFFIXES):
        return Maker(load_rubric(Path(name)))
    found = shipped().get(name)
    if found is None:
        raise AttributeError(f"there is no rubric `{name}`")
    return Maker(found)
