"""The interface of a framework for the ``python`` provider: one class per module.

Modules of a framework are imported only if the program has imported them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from baton.model import Message, ProviderError

Session = dict[str, Any]
Ask = Callable[[Any, Any, Session], Awaitable[Any]]
"""Calls a framework object: takes the object, a message and the session; returns the answer."""
KEPT = "baton.history"
"""Where a session keeps the history, so that the next message continues the conversation."""


class Text(NamedTuple):
    """A changeable text of an agent or a tool: how to read it and how to replace it."""

    read: Callable[[], str]
    write: Callable[[str], None]


def attribute(objects: Sequence[Any], name: str) -> Text:
    """Return the text that several objects share as an attribute."""

    def write(text: str) -> None:
        for each in objects:
            setattr(each, name, text)

    return Text(lambda: getattr(objects[0], name), write)


class Framework:
    """A framework of agents.

    Attributes:
        package: the module that a program imports to use the framework.
        needs_tool: whether an agent continues from a tool call in an integration. An agent that
            repeats its work from the start does not need one.
        asks: how to call its objects, by the package and the name of their class. The first listed
            class among an object's ancestors counts.
    """

    package: ClassVar[str]
    needs_tool: ClassVar[bool] = True
    asks: ClassVar[Mapping[tuple[str, str], Ask]] = {}

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:  # noqa: ARG002
        """Yield the name and object of each agent that a framework object is or contains."""
        return ()

    def texts(self, agents: dict[str, Any]) -> dict[str, Text]:  # noqa: ARG002
        """Return the texts of some agents that can be changed, by the name of the component.

        ``agent:NAME`` is the instructions of an agent, ``description:NAME`` is the description that
        routers read, and ``tool:NAME`` is the description of a tool that models read.
        """
        return {}

    async def go_on(
        self,
        agent: Any,  # noqa: ARG002
        messages: Sequence[Message],  # noqa: ARG002
        session: Session,  # noqa: ARG002
    ) -> Any:
        """Let an agent continue from earlier messages, and return its answer.

        The last message is from the user, or is a tool call with its result.

        Raises:
            ProviderError: the framework has no way to do that.
        """
        raise ProviderError(
            f"dispatch cases cannot be played with `{self.package}`: it cannot start an agent "
            "with given messages"
        )

    def stand_in(self) -> None:
        """Make all calls of tools and agents ask :func:`baton.stand_ins.current` from now on.

        This is called before each case that has stand-ins. Patches that are already in place stay.

        Raises:
            ProviderError: calls of the framework's tools cannot be answered by stand-ins.
        """
        raise ProviderError(
            f"stand-ins cannot answer for the tools of `{self.package}`, which the program has "
            "imported, so nothing was run: mark the functions of tools with `baton.tool` in a "
            "program without it"
        )


def classes_of(value: Any) -> list[tuple[str, str]]:
    """Return the names of an object's classes, each with the package of its framework."""
    names = []
    for each in type(value).__mro__:
        package, _, rest = each.__module__.partition(".")
        if package == "google":
            package = f"google.{rest.partition('.')[0]}"
        names.append((package, each.__name__))
    return names


def is_a(value: Any, package: str, name: str) -> bool:
    """Return whether an object is of a framework's class, by comparing only names."""
    return (package, name) in classes_of(value)
