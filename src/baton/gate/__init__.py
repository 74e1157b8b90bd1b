"""Decides whether an evaluation passes: rules, cases that must pass, and a baseline."""
