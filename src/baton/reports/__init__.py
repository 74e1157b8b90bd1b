"""Reports of evaluations, and pictures of traces."""
