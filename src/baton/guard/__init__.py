"""Guards: a policy that holds agents to limits while they run, and what decides by it."""
