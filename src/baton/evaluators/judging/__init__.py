"""Runs rubrics: their shape, the material for a judge, and the reading of its answers."""
