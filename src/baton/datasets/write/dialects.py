"""The dialects that can be written, by name."""

from __future__ import annotations

from typing import Literal

from .common import Writer
from .eval_sets import ADK, JUDGE_LLM
from .own import OWN
from .strands import STRANDS

Target = Literal["adk", "judge-llm", "strands", "baton"]
TARGETS: dict[Target, Writer] = {
    "adk": ADK,
    "judge-llm": JUDGE_LLM,
    "strands": STRANDS,
    "baton": OWN,
}
