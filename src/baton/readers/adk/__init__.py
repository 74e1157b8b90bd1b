"""Reading Google ADK: streams, sessions, eval sets and result files."""
