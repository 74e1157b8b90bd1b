"""Dataset files to cases, and back."""

from .dataset_paths import load_dataset

__all__ = ["load_dataset"]
