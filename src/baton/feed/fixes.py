"""Fixes: changes of one named text, which are proposed, marked, and proven by playing them.

A fix may come from a model that read hostile text. So it is stored beside the old text, with
everything new and potentially harmful marked; a person applies it. Whether it works is shown by
playing members of its issue and passing neighbours again, with a stand-in for every tool.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from baton.changed_texts import faults_of_change
from baton.formats.document import Document, read_bytes
from baton.model import AgentCard, Form, InputError, text_hash
from baton.replays.replay import Counted, Replayed
from baton.replays.text_risks import new_in

from .issue_progress import FIX_KINDS, Fix, FixKind, Proof, Statement
from .taxonomy import Category, subtype_named

# What each kind of fix changes, by the prefix of the text's name. The other kinds change no text,
# so there is no diff.
OF_KIND: dict[FixKind, str] = {
    "supervisor_prompt": "agent:",
    "agent_description": "description:",
    "sub_agent_prompt": "agent:",
    "tool_list": "tools:",
    "tool_schema": "tool:",
}
TOOLS = "tools:"
"""The prefix for the name of a list of tools, one per line. It is not a component: it cannot be
played.
"""
FORMS: dict[Category, Form] = {
    "choosing": "decision",
    "asking": "decision",
    "working": "child",
    "using": "integration",
}
"""What to play again of a dispatch, by the step that broke; else the whole conversation."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A template for a fix, for some subtypes; see ``fix_patterns.yaml``."""

    name: str
    subtypes: list[str] = msgspec.field(name="for")
    kind: FixKind
    text: str

    def filled(self, sender: str, receiver: str) -> str:
        """Return the text for a dispatch; open parts are in «»."""
        return self.text.replace("{sender}", sender).replace("{receiver}", receiver).strip()


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return the patterns that come with Baton."""
    file = Path(__file__).with_name("fix_patterns.yaml")
    document = Document(str(file), read_bytes(file), "yaml")
    return tuple(document.convert(document.value(), list[Pattern]))


def pattern_for(subtype: str) -> Pattern | None:
    """Return the pattern for a subtype, if there is one."""
    return next((each for each in patterns() if subtype in each.subtypes), None)


def texts_in(cards: Mapping[str, AgentCard]) -> dict[str, str]:
    """Return the texts of agents that a record holds, by name, with their lists of tools."""
    texts: dict[str, str] = {}
    for name, card in sorted(cards.items()):
        if card.instructions is not None:
            texts[f"agent:{name}"] = card.instructions
        if card.description is not None:
            texts[f"description:{name}"] = card.description
        if isinstance(card.tools, list):
            texts[TOOLS + name] = "\n".join(card.tools)
    return texts


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a text, and its replacement. An empty ``find`` means the end of the text."""

    find: str
    replace: str


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return an edited text.

    Raises:
        InputError: a place is missing, or occurs more than once; or nothing is changed.
    """
    new = text
    for edit in edits:
        if not edit.find:
            new = f"{new.rstrip()}\n\n{edit.replace}".strip()
            continue
        times = new.count(edit.find)
        if times != 1:
            raise InputError(f"the text has `{edit.find[:80]}` {times} times, not exactly once")
        new = new.replace(edit.find, edit.replace)
    if new == text:
        raise InputError("nothing is changed")
    return new


def make_fix(
    kind: FixKind,
    text: str | None,
    after: str,
    texts: Mapping[str, str],
    *,
    why: str,
    tools: Collection[str] = (),
    because: Statement | None = None,
    pattern: str | None = None,
    by: str | None = None,
) -> Fix:
    """Make a fix, with new parts marked.

    Args:
        kind: what is changed.
        text: the name of the text; ``None`` for a kind that changes none.
        after: the changed text.
        texts: the existing texts.
        why: one sentence.
        tools: the names of tools that are known.
        because: its evidence in the record.
        pattern: its template.
        by: who wrote it.

    Raises:
        InputError: there is no such text, or this kind of fix does not apply to it.
    """
    begins = OF_KIND.get(kind)
    if text is None:
        if begins is not None:
            raise InputError(f"a fix of {FIX_KINDS[kind]} changes a text: name it")
        return Fix(kind=kind, why=why, because=because, marks=new_in("", why, tools), by=by)
    if begins is None or not text.startswith(begins):
        raise InputError(f"`{text}` is not {FIX_KINDS[kind]}")
    if text not in texts:
        raise InputError(f"there is no text `{text}`")
    before = texts[text]
    faults = faults_of_change(before, after, tools)
    faults += [f"«{gap}» is still to be written" for gap in _OPEN.findall(after)]
    return Fix(
        kind=kind,
        text=text,
        why=why,
        because=because,
        pattern=pattern,
        before=before,
        after=after,
        marks=new_in(before, f"{after}\n{why}", tools),
        faults=faults,
        by=by,
    )


def kind_of_text(text: str, sender: str | None) -> FixKind:
    """Return the kind of fix for a change of a text; the sender's prompt has a separate kind."""
    begins = text.partition(":")[0] + ":"
    if begins == "agent:":
        return "supervisor_prompt" if text == f"agent:{sender}" else "sub_agent_prompt"
    matching = next((kind for kind, own in OF_KIND.items() if own == begins), None)
    if matching is None:
        raise InputError(f"no kind of fix changes `{text}`")
    return matching


_OPEN = re.compile(r"«([^«»]*)»")


def diff_of(fix: Fix) -> list[str]:
    """Return the changes as lines of a unified diff; none if no text is changed."""
    if fix.text is None:
        return []
    return list(
        difflib.unified_diff(
            fix.before.splitlines(),
            fix.after.splitlines(),
            f"{fix.text} {text_hash(fix.before)}",
            f"{fix.text} {text_hash(fix.after)}",
            lineterm="",
        )
    )


def form_of(subtype: str, *, has_dispatch: bool) -> Form | None:
    """Return the form in which a failure is played again; ``None`` for the whole conversation."""
    known = subtype_named(subtype)
    return FORMS.get(known.category) if known is not None and has_dispatch else None


def playable(fix: Fix) -> str | None:
    """Say why a fix cannot be proven by playing it; ``None`` if it can."""
    if fix.text is None:
        return f"it changes {FIX_KINDS[fix.kind]}, not a text that could be played"
    if fix.text.startswith(TOOLS):
        return "it changes the tools of an agent; change them, and compare two evaluations"
    return "; ".join(fix.faults) or None


def proof_of(
    replayed: Replayed,
    members: Collection[str],
    fix: Fix,
    *,
    form: str,
    evaluators: Sequence[str],
    repeats: int,
    at: float,
) -> Proof:
    """Summarise the results of playing a fix.

    Args:
        replayed: members and passing neighbours, unchanged and with the fix.
        members: the ids of the cases of members; the others are neighbours.
        fix: the change that was played.
        form: how they were played.
        evaluators: what decided.
        repeats: how often each was played on either side.
        at: when, in seconds since the epoch.
    """
    own = [case for case in replayed.cases if case.id in members]
    fixed = sum(case.outcome == "fixed" for case in own)
    failing = sum(
        any(seen.status == "failed" for seen in case.unchanged)
        for case in own
        if case.outcome != "error"
    )
    return Proof(
        fixed=Counted.among(fixed, failing),
        broke=replayed.broke,
        members=len(own),
        neighbours=len(replayed.cases) - len(own),
        errors=len(replayed.errors),
        repeats=repeats,
        form=form,
        evaluators=list(evaluators),
        before=text_hash(fix.before),
        after=text_hash(fix.after),
        at=at,
    )
