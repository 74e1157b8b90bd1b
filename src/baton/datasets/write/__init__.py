"""Cases as files of each dialect: plain data, and why some of a case has no place there."""

from .common import Writer
from .dialects import TARGETS, Target

__all__ = ["TARGETS", "Target", "Writer"]
