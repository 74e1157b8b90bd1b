"""The dialects that can be written, by name."""

from __future__ import annotations

from typing import Literal

from .adk import ADK
from .judge_llm import JUDGE_LLM
from .own import OWN
from .strands import STRANDS
from .target import Writer

Target = Literal["adk", "judge-llm", "strands", "baton"]
TARGETS: dict[Target, Writer] = {
    "adk": ADK,
    "judge-llm": JUDGE_LLM,
    "strands": STRANDS,
    "baton": OWN,
}
