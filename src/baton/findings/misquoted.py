"""Values of an answer that misquote a code, an item of a list, or what request and result agree on.

The words around such a value do not matter, other than in ``result_contradicted``: the value occurs
nowhere else, and the one that it stands for is missing from the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .changed_values import is_transposed
from .text_cache import text_cached
from .text_values import Value


def misquoted(
    value: Value,
    answer: str,
    mine: Sequence[Value],
    values: Sequence[Value],
    is_known: Callable[[str], bool],
) -> Value | None:
    """Return the value of a result that ``value`` misquotes, if that is certain.

    ``mine`` are the values of the answer, and ``values`` those of the result. ``is_known`` returns
    whether any text that the caller had has a code.
    """
    shape = shape_of(value)
    alike = [other for other in values if shape_of(other) == shape]
    alike = [other for other in alike if not has_code(other.fact.text, answer)]
    if not alike or is_known(value.fact.text):
        return None
    if _is_code(value):
        for other in alike:
            if is_transposed(value.digits, other.digits):
                return other
    return _in_list(value, mine, alike, values, shape, answer)


@text_cached
def _plain(text: str) -> str:
    return re.sub(r"[\W_]", "", text.casefold())


def has_code(code: str, text: str) -> bool:
    """Return whether a text has a code, in any spelling: `TAB-114`, `tab 114`."""
    return _plain(code) in _plain(text)


def shape_of(value: Value) -> str:
    """Return a value with each digit as 0: `tab-000` for `TAB-114`."""
    return re.sub(r"\d", "0", value.fact.text.casefold())


def _is_code(value: Value) -> bool:
    """Return whether a value has letters and at least three digits, like `TAB-114`, but no unit."""
    text = value.fact.text
    letters = re.match(r"[A-Za-z]{1,10}(?=[\d_-])", text)
    return (
        value.kind == "identifier" and letters is not None and len(value.digits) >= _FEWEST_DIGITS
    )


# With fewer digits, another code is rather another thing than a slip: `A1` and `A2` are two rows,
# `TAB-114` for `TAB-141` is one.
_FEWEST_DIGITS = 3


def _in_list(
    value: Value,
    mine: Sequence[Value],
    alike: Sequence[Value],
    values: Sequence[Value],
    shape: str,
    answer: str,
) -> Value | None:
    """Return the item that an answer misquotes in a list that it repeats: 5663 for 5633.

    The answer has as many values of this shape as the result, and all others are the same.
    """
    listed = {v.fact.text.casefold() for v in values if shape_of(v) == shape}
    repeated = {v.fact.text.casefold() for v in mine if shape_of(v) == shape}
    fewest = _FEWEST_CODES if value.kind == "identifier" else _FEWEST_NUMBERS
    if len(listed) != len(repeated) or len(repeated) < fewest:
        return None
    if len(repeated & listed) != len(repeated) - 1:
        return None
    if value.kind != "identifier" and len(value.digits) < _FEWEST_DIGITS:
        return None
    if not _is_enumerated([v.fact.text for v in mine if shape_of(v) == shape], answer):
        return None
    (other,) = (v for v in alike if v.fact.text.casefold() not in repeated)
    differ = sum(a != b for a, b in zip(value.digits, other.digits, strict=True))
    return other if differ == 1 or is_transposed(value.digits, other.digits) else None


# The shortest lists in which one item can be misquoted: two codes ("app-03 and app-09" for `app-03`
# and `app-07`), but three numbers, because two are often a pair of the answer's own: "dark from
# 19:40 to 00:25".
_FEWEST_CODES = 2
_FEWEST_NUMBERS = 3


def _is_enumerated(items: Sequence[str], answer: str) -> bool:
    """Return whether items follow one another in a text: "5512, 5590 and 5663"."""
    between = r"[\s,;&/()'\"`*|-]{1,6}(?:(?:and|und|et|y|e|en)\s)?"
    return re.search(between.join(map(re.escape, items)), answer, re.IGNORECASE) is not None
