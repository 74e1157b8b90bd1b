"""Recorded moments played again: dispatch cases, conversations, with texts changed."""
