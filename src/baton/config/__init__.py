"""Config files: each describes one evaluation."""

from .load import Config, load_config

__all__ = ["Config", "load_config"]
