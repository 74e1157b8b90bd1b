"""The HTML report: one file that opens from disk and asks nothing of any network."""
