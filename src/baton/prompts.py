"""Texts of a program that a replay may change: ``prompts.get("agent:refund", "You refund ...")``.

Examples are cases: ``prompts.examples("examples:refund", "cases.yaml:order-7,order-9")``. Outside a
replay the default is returned, and nothing else happens. A server may take changed texts from the
header of a request: ``with prompts.handed_over(request.headers.get(HEADER))``.
"""

from baton.components import HEADER, chosen, examples, get, handed_over
from baton.model import Example

__all__ = ["HEADER", "Example", "chosen", "examples", "get", "handed_over"]
