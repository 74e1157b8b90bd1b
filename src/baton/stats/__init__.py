"""Statistics as pure functions: intervals, agreement, paired tests, repeats."""
