"""The interface to LLMs: judges, with their cache, budget and pace.

``settings`` reads a config, ``judge`` creates a judge; ``prompts`` prepares its prompts, ``votes``
sums up several samples. Only ``client`` knows an LLM library.
"""
