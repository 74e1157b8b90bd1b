"""Running an evaluation: match traces with cases, and score them with evaluators."""
