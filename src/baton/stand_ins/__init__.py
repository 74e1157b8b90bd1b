"""Stand-ins for tools and agents while a case is played.

The module of a framework calls :func:`current` before each call of a tool or an agent, and lets
:meth:`Play.tool` decide whether it runs.
"""

from .answers import Answer
from .decision import decision_trace
from .names import check_names
from .play import (
    Asked,
    Decided,
    Held,
    Imagine,
    Imagining,
    Play,
    StandInError,
    Wanted,
    current,
    imagining,
    play_of,
    playing,
    who_imagines,
)

__all__ = [
    "Answer",
    "Asked",
    "Decided",
    "Held",
    "Imagine",
    "Imagining",
    "Play",
    "StandInError",
    "Wanted",
    "check_names",
    "current",
    "decision_trace",
    "imagining",
    "play_of",
    "playing",
    "who_imagines",
]
