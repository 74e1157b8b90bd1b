"""What can be proven of dispatches from the record alone: pure functions, a file a question."""
