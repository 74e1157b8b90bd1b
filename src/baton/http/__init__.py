"""The HTTP client: limits, retries, addresses, credentials and error messages.

Nothing here imports an HTTP library but ``client``, so that options can be read without one.
"""
