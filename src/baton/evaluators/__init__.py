"""Evaluators: a file each."""
