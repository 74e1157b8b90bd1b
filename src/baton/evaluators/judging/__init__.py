"""What runs rubrics: their shape, what they show a judge, and what is made of its answers."""
