"""Backends of an evaluation: this process, several processes, or a cluster."""
