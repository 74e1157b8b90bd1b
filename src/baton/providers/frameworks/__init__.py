"""What each framework calls its agents, and how they are asked: one module a framework."""
