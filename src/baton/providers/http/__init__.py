"""Agents behind any JSON endpoint."""
