"""The rubrics that come with Baton, one YAML file each. Each works as an evaluator by name."""
