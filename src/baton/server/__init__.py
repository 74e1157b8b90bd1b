"""The server: receives and stores spans, turns them into records, and scores them."""
