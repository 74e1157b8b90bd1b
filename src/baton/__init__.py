"""Baton tests what happens when AI agents hand work to one another."""

__version__ = "0.1.0"
