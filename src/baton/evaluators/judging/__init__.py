"""Runs rubrics: their structure, the material for a judge, and reading the judge's answers."""
