"""Better texts for agents and judges, with proof that they are better."""
