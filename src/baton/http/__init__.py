"""The one HTTP client: limits, retries, addresses, credentials and how faults are worded.

Nothing here imports an HTTP library but ``client``, so that options can be read without one.
"""
