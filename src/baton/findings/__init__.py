"""What the record alone proves about dispatches: pure functions, one module per question."""
