"""The wire: OTLP in any of its forms, and Jaeger's JSON, to conversations."""

from .group import group
from .read import read_conversations
from .report import Limits
from .sniff import is_otlp

__all__ = ["Limits", "group", "is_otlp", "read_conversations"]
