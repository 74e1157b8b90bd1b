"""Traces fetched from a store's query API, as OTLP JSON that the readers read.

Each store is one module with a function ``traces(store, query)``: an async generator of objects
``{"resourceSpans": [...]}``, each with one complete trace.
"""

from .trace_pages import Pulled, PullError, Query, Store, pull

__all__ = ["PullError", "Pulled", "Query", "Store", "pull"]
