"""Read recorded text into traces."""

from .catalog import Catalog, load_catalog
from .trace_paths import iter_traces, load_traces

__all__ = ["Catalog", "iter_traces", "load_catalog", "load_traces"]
