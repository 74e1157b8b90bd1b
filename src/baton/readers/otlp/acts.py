"""What a run called and handed over, in the making."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baton.model import Content, ToolCall

from .messages import Answer, Call
from .node import Mode, Node


@dataclass(slots=True, eq=False)
class Act:
    """A tool call of a run, or a hand-off without one.

    ``call`` is what its model wrote, ``node`` the span of the tool that ran, ``handoff`` that of
    a hand-off, ``answer`` what the model was told later. ``batch`` numbers the answer with the
    call: calls of one answer of a model were issued together.
    """

    step: ToolCall | None = None
    call: Call | None = None
    node: Node | None = None
    handoff: Node | None = None
    answer: Answer | None = None
    batch: int | None = None
    mode: Mode | None = None
    target: str | None = None

    @property
    def arguments(self) -> Any:
        """What it was given, from the span or, where that has no object, from the model."""
        ran = self.node.arguments if self.node is not None else None
        written = self.call.arguments if self.call is not None else None
        return written if ran is None or (isinstance(written, dict) and ran != written) else ran

    @property
    def came_to_nothing(self) -> bool:
        """Whether a model's call was carried out, and neither gave anything back nor failed."""
        ran = self.node
        if ran is None or self.call is None or ran.arguments is None:
            return False
        return ran.result is None and not ran.failed

    @property
    def failed(self) -> bool:
        """Whether it is recorded as failed."""
        told = self.answer is not None and self.answer.failed and self.answer.at is None
        return told or (self.node is not None and self.node.failed)

    @property
    def late(self) -> Answer | None:
        """The answer that came after the call had been answered, of what it launched."""
        told = self.answer
        return told if told is not None and told.at is not None else None

    @property
    def result(self) -> Content | None:
        """What came back, from the span or from what the model was told."""
        if self.node is not None and self.node.result is not None:
            return self.node.result
        if self.late is not None:
            return None
        return self.answer.result if self.answer is not None else None

    @property
    def error(self) -> str | None:
        """What is said of a failure."""
        if not self.failed:
            return None
        own = self.node.error if self.node is not None else None
        told = self.result.plain() if self.result is not None else None
        return own or told

    @property
    def started(self) -> float | None:
        """When it was carried out, or else written; seconds since the epoch."""
        for node in (self.node, self.handoff):
            if node is not None and node.span.started is not None:
                return node.span.started
        return self.step.at if self.step is not None else None

    @property
    def ended(self) -> float | None:
        """When it came back; ``None`` where only the model's words tell of it."""
        node = self.node or self.handoff
        return node.span.ended if node is not None else None
