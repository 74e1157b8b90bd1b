"""Texts of agents that Baton cannot reach itself: files that a config names.

A server, or a program with its own store of prompts, gets the changed texts: in a header, in the
request, in the environment, or through a function.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from baton import components
from baton.formats.document import read_bytes
from baton.model import InputError, Problem, ProviderError, suggestion
from baton.plugins.user_code import load_function

from .base_provider import PromptsOptions, Surroundings
from .user_functions import worded

ENVIRONMENT = "environment"
"""The value of `prompts_to:` for a program that reads the environment itself."""


class Prompts:
    """The texts of `prompts:`, and which of them are changed.

    ``are_taken``: `prompts_to` names who gets the changed texts.

    Raises:
        InputError: a file cannot be read, or a name is not a component's.
    """

    def __init__(self, options: PromptsOptions, around: Surroundings) -> None:
        self.texts: dict[str, str] = {}
        problems = []
        for name, file in options.prompts.items():
            try:
                self.texts[name] = read_text(name, file, around.folder)
            except InputError as error:
                where = f"prompts.{name}"
                for problem in error.problems:
                    place = f"{problem.file}: " if problem.file is not None else ""
                    problems.append(Problem(path=where, message=f"{place}{problem.message}"))
        if problems:
            raise InputError(problems)
        self._function = None if options.prompts_to == ENVIRONMENT else options.prompts_to
        self.are_taken = options.prompts_to is not None
        self._folder = around.folder
        self._changed = around.texts
        self.changed = {n: text for n, text in around.texts.items() if n in self.texts}

    def check(self, *, of_server: bool = False) -> None:
        """Raise InputError for options without effect.

        These are `prompts_to` without `prompts:`, and the environment of a server, which belongs to
        the person who starts it.
        """
        if of_server:
            for name in self._changed:
                if name not in self.texts:
                    hint = suggestion(name, self.texts) or "`prompts:` names none"
                    raise InputError(
                        Problem(path="prompts", message=f"no component `{name}`; {hint}")
                    )
            if self.are_taken and self._function is None:
                message = "`environment` is for programs that Baton starts; a server gets a header"
                raise InputError(Problem(path="prompts_to", message=message))
        if self.are_taken and not self.texts:
            raise InputError(
                Problem(
                    path="prompts_to",
                    message="gets the texts of `prompts:`, which is empty: name some",
                )
            )

    def as_header(self) -> dict[str, str]:
        """Return the header with the changed texts; empty if a function of the user gets them."""
        if not self.changed or self._function is not None:
            return {}
        return {components.HEADER: components.to_header(self.changed)}

    def known(self, kind: str) -> dict[str, str]:
        """Return the current texts; raises ProviderError if there are none."""
        if not self.texts:
            raise ProviderError(
                f"`{kind}` does not know the texts of its agents: name their files with `prompts:`"
            )
        return dict(self.texts)

    def begin(self, texts: Mapping[str, str]) -> None:
        """Make changed texts available to programs that this process loads from now on.

        Programs read them with ``baton.prompts.get``. Processes that they start find them in the
        environment, and the user's function gets those of `prompts:`.

        Raises:
            InputError: they are too long for the environment, or the function raised.
        """
        components.use(texts)
        if texts:
            value = components.to_environment(texts)
            if len(value.encode()) > _LONGEST:
                size = f"{len(value.encode()) >> 10} KiB of changed texts"
                raise InputError(f"{size} do not fit into an environment variable")
            os.environ[components.ENVIRONMENT] = value
        self.hand_over()

    def hand_over(self) -> None:
        """Pass the changed texts to the user's function; raises InputError if it raises."""
        if self._function is None or not self.changed:
            return
        function = load_function(self._function, self._folder)
        try:
            function(dict(self.changed))
        except Exception as error:
            message = f"`{self._function}` raised {worded(error)}"
            raise InputError(Problem(path="prompts_to", message=message)) from error


_LONGEST = 120_000
"""Bytes. Linux accepts 128 KiB for one variable; with a longer one, no process can be started."""


def read_text(name: str, file: str, folder: Path = Path()) -> str:
    """Read the text of a component from a file, or the cases that are chosen as examples.

    Editors end a file with a newline that is not part of the text.

    Raises:
        InputError: the name or the file has a fault.
    """
    if components.are_examples(name):
        return components.chosen(file, folder)
    data = read_bytes(folder / file)
    try:
        return data.decode("utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            Problem(file=str(folder / file), message=f"is not UTF-8: {error}")
        ) from None
