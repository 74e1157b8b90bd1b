"""Driving live agent systems: each provider plays a case and returns a trace."""
