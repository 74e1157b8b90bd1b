"""Splits a shell line into its commands: a permission has to cover each of them."""

from __future__ import annotations

import re

from .lazy_patterns import regex

# `<<'EOF'`, `<<-EOF`: what follows on the next lines is text, up to a line of that word.
_HEREDOC = regex(r"<<(?P<tabs>-?)[ \t]*(?P<quote>['\"\\]?)(?P<word>\w+)['\"]?")
_SUBSTITUTION = regex(r"(?<!\\)(?:\$\((?!\()|`)")
# `git commit -m "$(cat <<'EOF' ...)"`: Claude Code hands over long texts in this way.
_ONLY_TEXT = regex(r"cat\s*<<-?[ \t]*['\"\\]?\w+['\"]?")
# Deeper than any real line. A hostile line can be deeper.
_DEEPEST = 30


class _UnsureError(Exception):
    """Raised if the line can't be parsed here."""


def commands(line: str) -> list[str] | None:
    """Return a line's commands, including substitutions, or ``None`` if it can't be parsed.

    `git add . && git commit -m "a; b"` has two, `git log $(rm x)` has `rm x` as well. Quoted
    strings and here-documents are text, `2>&1` joins nothing, and comments are left out.
    """
    scanner = _Scanner(line)
    try:
        scanner.sequence("", 0)
    except _UnsureError:
        return None
    return scanner.found


class _Scanner:
    def __init__(self, line: str) -> None:
        self._line, self._at = line, 0
        self.found: list[str] = []

    def sequence(self, closing: str, depth: int) -> None:
        """Read commands up to their closing bracket, or the end."""
        if depth > _DEEPEST:
            raise _UnsureError
        line, part = self._line, ""
        texts: list[re.Match[str]] = []
        while self._at < len(line):
            start, char = self._at, line[self._at]
            self._at += 1
            if closing and char == closing:
                return self._add(part)
            heredoc = _HEREDOC.match(line, start) if char == "<" else None
            if heredoc is not None and not line.startswith("<<<", start):
                texts.append(heredoc)
                self._at = heredoc.end()
            elif char == "\n":
                self._add(part)
                part = ""
                self._skip_texts(texts)
                texts = []
                continue
            elif char == "#" and line[start - 1 : start] in ("", " ", "\t", "\n", ";"):
                end = line.find("\n", start)
                self._at = end if end >= 0 else len(line)
                continue
            elif char in "()":
                self._add(part)
                part = ""
                if char == "(":
                    self.sequence(")", depth + 1)
                continue
            elif char in ";|" or (char == "&" and not self._redirects(start)):
                self._add(part)
                part = ""
                continue
            elif line.startswith("\\\n", start):
                self._at = start + 2
                continue
            else:
                self._word(char, start, depth)
            part += line[start : self._at]
        if closing:
            raise _UnsureError
        return self._add(part)

    def _add(self, part: str) -> None:
        if part.strip():
            self.found.append(part.strip())

    def _redirects(self, start: int) -> bool:
        return self._line[start - 1 : start] in ("<", ">") or self._line[start + 1 :][:1] == ">"

    def _word(self, char: str, start: int, depth: int) -> None:
        """Skip the item that begins here: an escape, a quotation, a substitution, or one letter."""
        line = self._line
        if char == "\\":
            self._at = start + 2
        elif char == "'":
            self._at = self._after("'", start + 1)
        elif char == '"':
            while not line.startswith('"', self._at):
                if self._at >= len(line):
                    raise _UnsureError
                inner = line[self._at]
                self._at += 2 if inner == "\\" else 1
                if inner in "$`":
                    self._substitution(inner, self._at - 1, depth)
            self._at += 1
        else:
            self._substitution(char, start, depth)

    def _substitution(self, char: str, start: int, depth: int) -> None:
        if char == "`":
            self.sequence("`", depth + 1)
        elif char == "$" and self._line.startswith("$((", start):
            self._at = self._after("))", start)
        elif char in "$<>" and self._line.startswith("(", start + 1):
            self._at, before = start + 2, len(self.found)
            self.sequence(")", depth + 1)
            if [_ONLY_TEXT.fullmatch(each) is not None for each in self.found[before:]] == [True]:
                self.found.pop()

    def _after(self, end: str, start: int) -> int:
        place = self._line.find(end, start)
        if place < 0:
            raise _UnsureError
        return place + len(end)

    def _skip_texts(self, texts: list[re.Match[str]]) -> None:
        """Skip the here-documents that begin on this line."""
        for each in texts:
            begin, line = self._at, self._line
            tabs = r"\t*" if each["tabs"] else ""
            end = re.compile(rf"^{tabs}{re.escape(each['word'])}[ \t]*$", re.MULTILINE)
            last = end.search(line, begin)
            self._at = last.end() if last is not None else len(line)
            if not each["quote"] and _SUBSTITUTION.search(line, begin, self._at):
                raise _UnsureError  # commands inside a text: too unusual to parse here
