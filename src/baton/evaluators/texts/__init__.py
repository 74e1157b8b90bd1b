"""Comparing texts: words, ROUGE, matchers, JSON in answers. Pure functions, a file each."""
