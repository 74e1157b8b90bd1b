"""The rubrics that come with Baton, a YAML file each; by name they are evaluators to be made."""
