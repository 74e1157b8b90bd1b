"""Stand-ins for tools and agents while a case is played.

The module of a framework calls :func:`current` before each call of a tool or an agent, and lets
:meth:`Play.tool` decide whether it runs.
"""

from baton.model.stand_ins import check_names

from .answer_sources import Answer
from .decision_record import decision_trace
from .play import (
    Decided,
    Imagine,
    Imagining,
    LlmQuestion,
    Play,
    PreparedAnswer,
    Request,
    StandInError,
    current,
    imagining,
    play_of,
    playing,
    who_imagines,
)

__all__ = [
    "Answer",
    "Decided",
    "Imagine",
    "Imagining",
    "LlmQuestion",
    "Play",
    "PreparedAnswer",
    "Request",
    "StandInError",
    "check_names",
    "current",
    "decision_trace",
    "imagining",
    "play_of",
    "playing",
    "who_imagines",
]
