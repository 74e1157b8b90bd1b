"""Where the work of an evaluation is done: in this process, in several, or on a cluster."""
