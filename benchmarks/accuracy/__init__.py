"""How often evaluators of dispatches find faults, and how often they cry wolf."""
