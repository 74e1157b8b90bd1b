"""Comparing expected visits with runs."""
