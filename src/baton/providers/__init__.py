"""Providers: what drives a live agent system, or stands in for one. A file each."""
