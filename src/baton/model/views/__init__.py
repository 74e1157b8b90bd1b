"""Readings of the flat record: each a plain function, a file each."""

from .broken import broken
from .chain import agent_chain, run_names
from .dispatch_usage import DispatchUsage, dispatch_usage, dispatched_runs
from .dispatch_view import DispatchView, dispatch_view
from .in_short import in_short
from .index import TraceIndex, index_of, indexed
from .round_trip import RoundTrip, round_trip
from .tool_calls import PlacedCall, placed_calls, tool_calls
from .tree import TreeNode, turn_tree
from .usage import sum_usage

__all__ = [
    "DispatchUsage",
    "DispatchView",
    "PlacedCall",
    "RoundTrip",
    "TraceIndex",
    "TreeNode",
    "agent_chain",
    "broken",
    "dispatch_usage",
    "dispatch_view",
    "dispatched_runs",
    "in_short",
    "index_of",
    "indexed",
    "placed_calls",
    "round_trip",
    "run_names",
    "sum_usage",
    "tool_calls",
    "turn_tree",
]
