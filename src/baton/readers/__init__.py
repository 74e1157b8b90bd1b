"""Recorded text to traces."""

from .catalog import load_catalog
from .load import iter_traces, load_traces

__all__ = ["iter_traces", "load_catalog", "load_traces"]
