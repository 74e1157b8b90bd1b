"""How each framework names and runs its agents: one module per framework."""
