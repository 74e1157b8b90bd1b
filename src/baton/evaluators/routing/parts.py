"""What an expected dispatch states beside its receiver, held against the one that was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from baton.evaluators.texts.answers import quote
from baton.evaluators.texts.matchers import Reading
from baton.model import Dispatch, ExpectedDispatch, Trace, Turn, known


class Part(NamedTuple):
    """One thing stated: its ``share`` that is right, 0 to 1, or ``None`` where it is not known.

    ``fault`` is a word for what is wrong, ``says`` a sentence on it, or what would supply it.
    """

    name: str
    share: float | None
    fault: str = ""
    says: str = ""


def parts_of(
    trace: Trace, turn: Turn, expected: ExpectedDispatch, made: Dispatch, reading: Reading
) -> list[Part]:
    """Compare what is stated: kind, words of the prompt, tools, parallel or not."""
    return list(_parts(trace, turn, expected, made, reading))


def _parts(
    trace: Trace, turn: Turn, expected: ExpectedDispatch, made: Dispatch, reading: Reading
) -> Iterator[Part]:
    if expected.kind is not None:
        yield _kind(trace, expected.kind, made)
    if expected.prompt_contains:
        yield _prompt(trace, expected.prompt_contains, made, reading)
    if expected.tools is not None:
        yield _tools(trace, expected.tools, made)
    if expected.parallel is not None:
        yield _parallel(trace, turn, expected.parallel, made)


def _kind(trace: Trace, wanted: str, made: Dispatch) -> Part:
    if not known(trace, made, "kind"):
        return Part("kind", None, says="its kind is not recorded: record the agents' spans")
    if made.kind == wanted:
        return Part("kind", 1.0)
    return Part("kind", 0.0, "wrong_kind", f"by {made.kind}, expected {wanted}")


def _prompt(trace: Trace, wanted: Sequence[str], made: Dispatch, reading: Reading) -> Part:
    if not known(trace, made, "prompt"):
        supply = "record the content of calls and messages as well"
        return Part("prompt", None, says=f"its prompt is not recorded: {supply}")
    text = "" if made.prompt is None else made.prompt.plain()
    lacking = [words for words in wanted if not reading.found_in(words, text)]
    if not lacking:
        return Part("prompt", 1.0)
    listed = ", ".join(repr(quote(words, 80)) for words in lacking)
    says = f"the prompt lacks {listed}" if text else "it was handed over without a prompt"
    return Part("prompt", 1 - len(lacking) / len(wanted), "prompt_lacks", says)


def _tools(trace: Trace, wanted: Sequence[str], made: Dispatch) -> Part:
    """Compare with the tools that it allows, as sets.

    Of tools that were only offered to the receiver a missing one is a fault, and a further one
    proves nothing: frameworks add tools of their own to what they offer.
    """
    supply = "give the agents' definitions (--agents)"
    allowed = made.tools_allowed
    if allowed is None:
        recorded = known(trace, made, "tools_allowed")
        what = "it names no tools" if recorded else "the tools it allows are not recorded"
        return Part("tools", None, says=f"{what}: {supply}")
    if allowed == "all":
        return Part("tools", 0.0, "wrong_tools", "it allows all tools")
    lacking = [tool for tool in dict.fromkeys(wanted) if tool not in allowed]
    further = [tool for tool in dict.fromkeys(allowed) if tool not in wanted]
    if further and not lacking and made.tools_source == "offered":
        what = "more tools were offered than are stated, some may be the framework's"
        return Part("tools", None, says=f"{what}: {supply}")
    if not lacking and not further:
        return Part("tools", 1.0)
    says = [f"without the tools {_listed(lacking)}"] if lacking else []
    says += [f"with the further tools {_listed(further)}"] if further else []
    shared = len(set(wanted) & set(allowed))
    return Part("tools", shared / len({*wanted, *allowed}), "wrong_tools", ", ".join(says))


def _parallel(trace: Trace, turn: Turn, wanted: bool, made: Dispatch) -> Part:
    """Tell work that goes on together: issued together, or overlapping in time.

    Overlap proves it; no overlap proves nothing, so that otherwise the group has to be known.
    """
    others = [
        other
        for other in turn.dispatches
        if other.id != made.id and other.kind != "return" and _same_sender(made, other)
    ]
    together = next((o for o in others if _in_one_group(made, o) or _overlap(made, o)), None)
    if together is not None:
        says = f"it went out in parallel with the one to `{together.to_agent}`"
        return Part("parallel", float(wanted), "" if wanted else "parallel", "" if wanted else says)
    if not known(trace, made, "group"):
        supply = "record when hand-offs start and end, or the calls of one message together"
        return Part("parallel", None, says=f"what was issued together is not recorded: {supply}")
    if not wanted:
        return Part("parallel", 1.0)
    return Part("parallel", 0.0, "not_parallel", "it was issued alone, expected in parallel")


def _same_sender(one: Dispatch, other: Dispatch) -> bool:
    return (one.from_run, one.from_agent) == (other.from_run, other.from_agent)


def _in_one_group(one: Dispatch, other: Dispatch) -> bool:
    return one.group is not None and one.group == other.group


def _overlap(one: Dispatch, other: Dispatch) -> bool:
    if one.started is None or one.ended is None or other.started is None or other.ended is None:
        return False
    return one.started < other.ended and other.started < one.ended


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
