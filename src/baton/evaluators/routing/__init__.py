"""What ``dispatch_routing`` is made of: pure functions over the dispatches of a turn."""
