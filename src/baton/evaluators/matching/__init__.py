"""Compares expected with actual values, texts, calls and dispatches."""
