"""JSONPath (RFC 9535): where in an answer something stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from baton.model import InputError, Problem, ProviderError

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery

_SHOWN = 200  # letters of an answer that errors quote


class Path:
    """One query of an option."""

    def __init__(self, option: str, text: str) -> None:
        """Compile it; raises InputError where it is none."""
        self.option = option
        self.text = text
        self._query = _compiled(option, text)

    def all(self, document: Any) -> list[Any]:
        """Return all that matches, in order; what is null is left out, as it says nothing.

        Raises:
            ProviderError: the document is nested too deep to be searched.
        """
        return [value for value in self._values(self._query, document) if value is not None]

    def one(self, document: Any) -> Any:
        """Return the only match, which may be null, or ``UNSET`` when there is none.

        Raises:
            ProviderError: there are several.
        """
        found = self._values(self._query, document)
        if len(found) > 1:
            raise ProviderError(
                f"{self} matches {len(found)} values, and one is needed: {short(found)}"
            )
        return found[0] if found else msgspec.UNSET

    def word(self, document: Any) -> str | int | float | None:
        """Return the only match, which is text or a number; ``None`` when there is nothing.

        Raises:
            ProviderError: it is anything else.
        """
        value = self.one(document)
        if value is msgspec.UNSET or value is None or value == "":
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ProviderError(f"{self} is not text: {short(value)}")
        return value

    def needed(self, document: Any) -> str:
        """Return the text that has to be there; raises ProviderError when it is not."""
        found = self.word(document)
        if found is None:
            raise self.nothing(document)
        return str(found)

    def has_place(self, document: Any) -> bool:
        """Tell whether there is at least a list or an object that a match could stand in."""
        from jsonpath_rfc9535 import JSONPathQuery

        outer = self._query.segments[:-1]
        around = self._values(JSONPathQuery(env=self._query.env, segments=outer), document)
        return any(isinstance(value, list | dict) for value in around)

    def nothing(self, document: Any) -> ProviderError:
        """Word that nothing matches, and what came."""
        return ProviderError(f"{self} matches nothing in what came: {short(document)}")

    def _values(self, query: JSONPathQuery, document: Any) -> list[Any]:
        from jsonpath_rfc9535 import JSONPathError

        try:
            return [match.value for match in query.finditer(document)]
        except (JSONPathError, RecursionError) as error:
            reason = error.args[0] if error.args else type(error).__name__
            raise ProviderError(f"{self} cannot be looked for: {reason}") from None

    def __str__(self) -> str:
        return f"`{self.option}` ({self.text})"


def optional(option: str, text: str | None) -> Path | None:
    """Compile what may be left out."""
    return None if text is None else Path(option, text)


def short(value: Any) -> str:
    """Quote the start of a value as JSON."""
    try:
        text = msgspec.json.encode(value).decode()
    except RecursionError:
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _compiled(option: str, text: str) -> JSONPathQuery:
    from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError

    try:
        return JSONPathEnvironment().compile(text)
    except (JSONPathError, RecursionError) as error:
        reason = error.args[0] if error.args else type(error).__name__
        message = f"`{text}` is no JSONPath (like `$.reply.text` or `$.items[*].name`): {reason}"
        raise InputError(Problem(path=option, message=message)) from None
