"""How often evaluators of hand-offs find faults, and how often they cry wolf."""
