"""Plays recorded moments again: dispatch cases and conversations, maybe with changed texts."""
