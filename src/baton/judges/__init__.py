"""The seam to LLMs: judges that are asked, with their cache, budget and pace.

``settings`` is what a config says, ``judge`` makes one; ``prompts`` prepare what it is
shown, ``votes`` sums up several samples. Only ``client`` knows an LLM library.
"""
