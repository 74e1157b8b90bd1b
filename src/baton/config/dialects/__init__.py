"""Configs of other tools, read as specs of our evaluators."""
