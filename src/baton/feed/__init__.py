"""Failures grouped into issues: signatures, names, rates and states."""
