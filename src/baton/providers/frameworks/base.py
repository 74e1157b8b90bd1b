"""The interface of a framework for the ``python`` provider: one class per module.

Nothing of a framework is imported that the program has not imported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from baton.model import Message, ProviderError

Session = dict[str, Any]
Ask = Callable[[Any, Any, Session], Awaitable[Any]]
"""Asks an object of a framework: takes it, a message and the session; returns the answer."""
KEPT = "baton.history"
"""Where a session keeps what was said, so that the next message continues with it."""


class Text(NamedTuple):
    """A text of an agent or a tool that may be changed: how it is read, and how it is replaced."""

    read: Callable[[], str]
    write: Callable[[str], None]


def attribute(objects: Sequence[Any], name: str) -> Text:
    """Return the text that objects have as an attribute, all of them the same."""

    def write(text: str) -> None:
        for each in objects:
            setattr(each, name, text)

    return Text(lambda: getattr(objects[0], name), write)


class Framework:
    """A framework of agents.

    Attributes:
        package: the module by which a program uses it.
        needs_tool: whether an agent continues from the call of a tool, in an integration; one that
            goes through its work again needs none.
        asks: how its objects are asked, by the package and the name of their class. The first
            class of an object's ancestors that is listed counts.
    """

    package: ClassVar[str]
    needs_tool: ClassVar[bool] = True
    asks: ClassVar[Mapping[tuple[str, str], Ask]] = {}

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:  # noqa: ARG002
        """Yield the agents that an object of the framework is or holds, each with its name."""
        return ()

    def texts(self, agents: dict[str, Any]) -> dict[str, Text]:  # noqa: ARG002
        """Return what may be changed of some agents, by the name of the component.

        ``agent:NAME`` are the instructions of an agent, ``description:NAME`` is what routers read
        of it, ``tool:NAME`` what models read of a tool.
        """
        return {}

    async def go_on(
        self,
        agent: Any,  # noqa: ARG002
        messages: Sequence[Message],  # noqa: ARG002
        session: Session,  # noqa: ARG002
    ) -> Any:
        """Let an agent continue from what was said, and return its answer.

        The last message is of the user, or a call of a tool with its result.

        Raises:
            ProviderError: the framework has no way to do that.
        """
        raise ProviderError(
            f"dispatch cases cannot be played with `{self.package}`: it has no way to put an "
            "agent before messages of its own"
        )

    def stand_in(self) -> None:
        """Have all calls of tools and agents ask :func:`baton.stand_ins.current` from now on.

        Called before each case that has stand-ins; what exists already is left as it is.

        Raises:
            ProviderError: calls of the framework's tools cannot be answered by stand-ins.
        """
        raise ProviderError(
            f"stand-ins cannot answer for the tools of `{self.package}`, which the program has "
            "imported, so nothing was run: mark the functions of tools with `baton.tool` in a "
            "program without it"
        )


def classes_of(value: Any) -> list[tuple[str, str]]:
    """Name the classes of an object, each with the package of its framework."""
    names = []
    for each in type(value).__mro__:
        package, _, rest = each.__module__.partition(".")
        if package == "google":
            package = f"google.{rest.partition('.')[0]}"
        names.append((package, each.__name__))
    return names


def is_a(value: Any, package: str, name: str) -> bool:
    """Tell an object of a class of a framework, by names alone."""
    return (package, name) in classes_of(value)
