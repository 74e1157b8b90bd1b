"""Material of a trace, fenced off from our own words and cut to size."""

from __future__ import annotations

from collections.abc import Sequence

from baton.judges.clip import clip_all
from baton.judges.fence import fenced

from .section import Section


def shielded(sections: Sequence[Section], limit: int) -> tuple[str, dict[str, int]]:
    """Return the content of a request, and how many characters were cut from which section.

    Together the sections keep to ``limit`` characters; those that are ``whole`` do not count.
    """
    cut = [section for section in sections if not section.whole]
    clipped = dict(
        zip(
            (section.name for section in cut),
            clip_all([section.text for section in cut], limit),
            strict=True,
        )
    )
    blocks = [
        (each.title, each.text if each.whole else clipped[each.name].text) for each in sections
    ]
    return fenced(blocks), {name: one.cut for name, one in clipped.items() if one.cut}
