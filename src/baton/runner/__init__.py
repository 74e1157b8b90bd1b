"""Running an evaluation: traces meet cases, evaluators score them."""
