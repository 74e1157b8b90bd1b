"""What scores of many cases say together: pure functions."""
