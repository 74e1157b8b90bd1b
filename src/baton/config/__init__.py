"""Config files: one evaluation, written down."""

from .load import Config, load_config

__all__ = ["Config", "load_config"]
