"""What answers in place of tools and agents while a case is played.

A framework's own module asks :func:`current` before each call of a tool or an agent, and lets
:meth:`Play.tool` decide whether it runs.
"""

from .answers import Answer
from .decision import decision_trace
from .play import Asked, Decided, Held, Play, StandInError, current, play_of, playing

__all__ = [
    "Answer",
    "Asked",
    "Decided",
    "Held",
    "Play",
    "StandInError",
    "current",
    "decision_trace",
    "play_of",
    "playing",
]
