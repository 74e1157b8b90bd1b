"""The masker of :mod:`baton.model.secrets`, under the name that the HTTP clients use."""

from baton.model.secrets import Masker as Blank

__all__ = ["Blank"]
