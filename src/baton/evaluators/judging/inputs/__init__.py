"""What a judge may be shown, by name: a file for each kind of unit."""

from .given import Given, Input, Missing
from .table import INPUTS, input_of, names_for

__all__ = ["INPUTS", "Given", "Input", "Missing", "input_of", "names_for"]
