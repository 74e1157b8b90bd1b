"""The common parts of lists: the filter as text and chips, a time, paging, saved views."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

from starlette.responses import Response

from baton.model import InputError, Problem
from baton.model.filter import Bound, Fields, Filter, Term, filter_of, term_of
from baton.server.saved_views import SavedView, delete_view, save_view, views_of
from baton.server.store import DEFAULT

from .frame import Visit

_UNITS = {"h": 3600.0, "d": 86400.0}
_AGO = re.compile(r"(\d{1,4})([hd])")
PERIODS = (("", "any time"), ("1h", "last hour"), ("24h", "last day"), ("7d", "last 7 days"),
           ("30d", "last 30 days"))  # fmt: skip
_PARAMETERS = {"filter", "text", "since", "cursor", "project", "field", "value", "after"}
_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')


class Chip(NamedTuple):
    """A word of the filter, and the address of the list without it."""

    word: str
    without: str


class Listing(NamedTuple):
    """A request for a list.

    ``words`` are the terms of the filter as written; ``chosen`` is the filter from these and the
    time. ``text`` is the text to search for.
    """

    path: str
    words: tuple[str, ...]
    chosen: Filter
    text: str | None
    since: str
    cursor: str | None

    @property
    def filter(self) -> str:
        """The filter as text."""
        return " ".join(self.words)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is filtered."""
        return not (self.words or self.text or self.since)

    def parameters(self, **changed: str | None) -> dict[str, str | None]:
        """Return the parameters of its address, without the place in the list."""
        given = {"filter": self.filter, "text": self.text, "since": self.since}
        return {**given, **changed}

    def chips(self, visit: Visit) -> list[Chip]:
        """Return each word with the address of the list without it."""
        return [
            Chip(
                word,
                visit.link(
                    self.path,
                    **self.parameters(
                        filter=" ".join(w for n, w in enumerate(self.words) if n != place)
                    ),
                ),
            )
            for place, word in enumerate(self.words)
        ]

    @property
    def query(self) -> str:
        """The parameters of its address as a saved view keeps them."""
        return urlencode({name: value for name, value in self.parameters().items() if value})


def read_listing(
    visit: Visit, path: str, fields: Fields, when: str, *, also: Collection[str] = ()
) -> Listing:
    """Read a request: ``filter`` as words, fields as parameters, ``text`` and ``since``.

    ``when`` is the field that the time is about; ``also`` are other parameters of the page.

    Raises:
        InputError: all parts that cannot be parsed, with what to write instead.
    """
    words: list[str] = []
    problems: list[Problem] = []
    for name, value in visit.request.query_params.multi_items():
        if name == "filter":
            words += _WORD.findall(value)
        elif name in fields and value:
            words.append(word_of(name, value))
        elif name not in _PARAMETERS and name not in also:
            problems.append(Problem(path=name, message="unknown parameter of this list"))
    terms: list[Term] = []
    for word in words:
        try:
            terms.append(term_of(word, fields))
        except InputError as error:
            problems += error.problems
    since = visit.query("since") or ""
    try:
        terms += since_terms(since, when)
    except InputError as error:
        problems += error.problems
    text = (visit.query("text") or "").strip() or None
    if text is not None and not 2 <= len(text) <= 200:
        problems.append(
            Problem(path="text", message="a text to search for has 2 to 200 characters")
        )
    if problems:
        raise InputError(problems)
    unique = tuple(dict.fromkeys(words))
    return Listing(path, unique, Filter(terms=tuple(terms)), text, since, visit.query("cursor"))


def as_written(visit: Visit, path: str, written: str) -> Listing:
    """Return a list with invalid words, so that they can be corrected."""
    return Listing(
        path=path,
        words=(written,) if written else (),
        chosen=Filter(),
        text=visit.query("text"),
        since=visit.query("since") or "",
        cursor=None,
    )


def since_terms(since: str, when: str) -> list[Term]:
    """Read a time: ``24h`` and ``7d`` ago, or a date.

    Raises:
        InputError: it is neither.
    """
    if not since:
        return []
    ago = _AGO.fullmatch(since)
    if ago is not None:
        at = time.time() - int(ago[1]) * _UNITS[ago[2]]
        return [Term(field=when, bounds=((Bound(">=", at),),))]
    try:
        at = datetime.fromisoformat(since).timestamp()
    except ValueError:
        message = f"`{since[:50]}` is not a time: write 24h, 7d or a date such as 2026-01-31"
        raise InputError(Problem(path="since", message=message)) from None
    return [Term(field=when, bounds=((Bound(">=", at),),))]


def word_of(field: str, value: str) -> str:
    """Return a word of a filter, in quotes where the value has spaces.

    Raises:
        InputError: no word can hold the value.
    """
    if '"' in value:
        raise InputError("a value of a filter cannot hold a quotation mark: write `*` in its place")
    return f'{field}:"{value}"' if re.search(r"\s", value) else f"{field}:{value}"


def added_word(visit: Visit, fields: Fields) -> str | None:
    """Return the word that the menu of filters adds, ``None`` if it was not used.

    Raises:
        InputError: the field is unknown, or the value does not fit it.
    """
    field, value = visit.query("field"), visit.query("value")
    if field is None or value is None:
        return None
    word = word_of(field, value.strip())
    term_of(word, fields)
    return word


def server_command(visit: Visit, listing: Listing, verb: str, limit: int) -> str | None:
    """Return the command that does the same; there is none for a search of texts."""
    if listing.text is not None:
        return None
    url = visit.request.url
    scheme = "server+https" if url.scheme == "https" else "server"
    place = f"{scheme}://{url.netloc.removesuffix(':4318')}"
    if visit.project != DEFAULT:
        place += f"/{quote(visit.project, safe='')}"
    given = [f"filter={quote(word, safe=':*,<>=!.-_')}" for word in listing.words]
    if listing.since:
        (term,) = since_terms(listing.since, "started")
        at = datetime.fromtimestamp(term.bounds[0][0].number, UTC)
        given.append(f"since={at.strftime('%Y-%m-%dT%H:%MZ')}")
    return f'baton {verb} "{place}?{"&".join([*given, f"limit={limit}"])}"'


class Choice(NamedTuple):
    """A choice for a list that a page has in full: the parameter, and its values in words."""

    name: str
    label: str
    values: Mapping[str, str]


class Whole(NamedTuple):
    """A request for lists that a page has in full: words, and a value of each choice."""

    path: str
    words: str
    choices: Sequence[Choice]
    chosen: Mapping[str, str]

    @property
    def is_plain(self) -> bool:
        """Whether nothing is filtered."""
        return not self.words and not any(self.chosen.values())

    def has_words(self, *shown: object) -> bool:
        """Return whether a row contains all of the words, ignoring case."""
        text = " ".join(str(each) for each in shown if each is not None).casefold()
        return all(word in text for word in self.words.casefold().split())


def read_whole(visit: Visit, path: str, *choices: Choice) -> Whole:
    """Read a request for lists that a page has in full: ``text``, and a value of each choice.

    Raises:
        InputError: there is no such value.
    """
    chosen = {}
    for choice in choices:
        value = visit.query(choice.name) or ""
        if value not in ("", *choice.values):
            known = ", ".join(choice.values)
            raise InputError(f"`{choice.name}` is one of {known}, not `{value[:50]}`")
        chosen[choice.name] = value
    return Whole(path, (visit.query("text") or "").strip()[:200], choices, chosen)


def views(visit: Visit, path: str) -> list[tuple[SavedView, str]]:
    """Return the saved views of a page, each with its address."""
    saved = views_of(visit.state.store, visit.caller.project, path)
    return [(each, visit.link(path, **dict(parse_qsl(each.query)))) for each in saved]


def save(visit: Visit, path: str, fields: Fields) -> Response:
    """Save the view that a form names, and go to it.

    Raises:
        InputError: this list cannot parse it, or the name is taken.
    """
    given = parse_qs(visit.value("query"))
    query: dict[str, str] = {
        name: given[name][-1] for name in ("filter", "text", "since") if name in given
    }
    filter_of(query.get("filter"), fields)
    since_terms(query.get("since", ""), "started")
    return keep(visit, path, query)


def keep(visit: Visit, path: str, query: Mapping[str, str]) -> Response:
    """Save what a page understands as a view, and go to it; raises InputError as :func:`save`."""
    name, replace = visit.value("name"), "replace" in visit.form
    save_view(visit.state.store, visit.caller, path, name, urlencode(query), replace=replace)
    return visit.redirect(path, **query)


def remove(visit: Visit) -> None:
    """Delete the view that an address names."""
    delete_view(visit.state.store, visit.caller.project, visit.path["id"])
