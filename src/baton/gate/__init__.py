"""What decides whether an evaluation passes: rules, cases that must, and a baseline."""
