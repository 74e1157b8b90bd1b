"""Agents of Google ADK: behind a server, or in this process."""
