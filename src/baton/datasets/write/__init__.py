"""Cases as files of each dialect: plain data, and why some of a case has no place there."""

from .dialects import TARGETS, Target
from .target import Writer

__all__ = ["TARGETS", "Target", "Writer"]
