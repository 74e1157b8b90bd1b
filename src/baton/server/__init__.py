"""The server: spans arrive, are kept, become records, and are scored as they arrive."""
