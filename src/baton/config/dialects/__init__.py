"""Configs of other tools, read as specs of Baton's evaluators."""
