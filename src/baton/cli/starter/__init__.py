"""What ``baton init`` writes: a config, a first case, a CI workflow, and agents to try it on."""

from .case import FirstCase, first_case
from .files import SAMPLE, Answers, files_of

__all__ = ["SAMPLE", "Answers", "FirstCase", "files_of", "first_case"]
