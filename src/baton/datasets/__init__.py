"""Dataset files to cases, and back."""

from .load import load_dataset

__all__ = ["load_dataset"]
