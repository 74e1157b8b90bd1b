"""Comparing expected with actual tool calls: pure functions, a question a file."""
