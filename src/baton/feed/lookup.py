"""The data of an investigation: members of an issue, their passing twins, and definitions.

Everything is read-only, and has a label made by Baton (``m1.s4``, ``p1.r2``): a trace cannot forge
one, as each line of a list is one step, with its white space folded. Quotes are checked against the
text that was shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from baton.judges.fenced_prompts import neutral
from baton.model import AgentRun, Dispatch, InputError, Trace, known
from baton.model.step_lines import shown_steps

from .issue_progress import Progress, Quote
from .issues import Issue, Member

LONG = 3_000
"""The length from which a step is condensed, or read in parts."""
_LINE = 240
"""The most characters of a step in a list; `read_step` returns all of it."""
_MOST = 12_000
"""The most characters of an answer: some 3,000 tokens, so that 30 of them fit into any model."""
_HITS = 20
"""The most steps that a search returns: with their labels, 20 lines of up to 320 characters fit
into an answer. The number of the others is stated, so that the model can search for rarer words."""
_COMPARED = 1_000
"""The maximum number of steps of a run that are compared with its twin: the time is quadratic."""
_SHORTEST = 8
"""The minimum length of a quote, unless the text is shorter: `a` is in every record."""

TOOLS: dict[str, str] = {
    "list": "the members of the issue, and the passing runs with the same input; `about` is empty",
    "read_run": "the steps of a run, a line each; `about` is a run (m1.r2), or a member (m1) for "
    "everything that happened in it",
    "read_step": "all of one step; `about` is its label (m1.s4), `start` is where to continue",
    "children": "the runs that a run started, with their prompts and results; `about` is a run",
    "search": "steps that contain a text; `about` is the text",
    "diff": "a member beside the passing run with the same input; `about` is the member (m1)",
    "catalogue": "the agents, their tools, and the texts that may be changed; `about` is empty, "
    "or the name of a text (agent:desk) to read in full",
    "earlier": "other issues that were investigated; `about` is empty",
}


class InvestigationData(NamedTuple):
    """The data that an investigation may read.

    Attributes:
        issue: the investigated issue.
        members: some of its failures with their traces.
        twins: passing runs, by the place of the member that has the same input.
        texts: the texts of agents that may be changed, by name.
        earlier: other issues that were investigated.
    """

    issue: Issue
    members: Sequence[tuple[Member, Trace]]
    twins: Mapping[int, Trace]
    texts: Mapping[str, str]
    earlier: Sequence[Progress] = ()


class Line(NamedTuple):
    """Something that can be quoted: a step, a user message, an answer, a text of an agent."""

    trace: str
    id: str
    who: str
    text: str


class Lookup:
    """Answers the questions of an investigation; see :data:`TOOLS`."""

    def __init__(self, data: InvestigationData) -> None:
        self.data = data
        self._lines: dict[str, Line] = {}
        self._runs: dict[str, tuple[str, AgentRun]] = {}
        self._traces: dict[str, Trace] = {}
        self._label_of_run: dict[tuple[str, str], str] = {}
        for place, (_, trace) in enumerate(data.members, 1):
            self._take(f"m{place}", trace)
        for place, trace in sorted(data.twins.items()):
            self._take(f"p{place + 1}", trace)
        for name, text in data.texts.items():
            self._lines[name] = Line("", name, "definition", _folded(text))

    @property
    def tools(self) -> set[str]:
        """The names of tools in the record."""
        cards = [card for trace in self._traces.values() for card in trace.agents.values()]
        defined = {tool for card in cards if isinstance(card.tools, list) for tool in card.tools}
        runs = [run for _, run in self._runs.values()]
        called = {step.name for run in runs for step in run.steps if hasattr(step, "name")}
        return defined | called

    def look(self, tool: str, about: str, start: int = 0) -> str:
        """Answer one question.

        Raises:
            InputError: there is no such tool, or nothing with that label.
        """
        match tool:
            case "list":
                return self._list()
            case "read_run":
                return self._read_run(about)
            case "read_step":
                line = self.line(about)
                return f"{about}, {line.who}:\n{line.text[max(start, 0) :][:LONG]}"
            case "children":
                return self._children(about)
            case "search":
                return self._search(about)
            case "diff":
                return self._diff(about)
            case "catalogue":
                return self._catalogue(about)
            case "earlier":
                return self._earlier()
        raise InputError(f"there is no tool `{tool}`: {', '.join(TOOLS)}")

    def line(self, label: str) -> Line:
        """Return the line with a label; raises InputError if there is none."""
        entry = self._lines.get(label.strip())
        if entry is None:
            raise InputError(f"nothing has the label `{label[:80]}`: take one from an answer above")
        return entry

    def quote(self, label: str, text: str) -> Quote | None:
        """Return a quote as written in the record; ``None`` if it does not exist.

        White space is ignored; everything else has to match.
        """
        line = self._lines.get(label.strip())
        words = _folded(text)
        if line is None or not words or words not in line.text:
            return None
        whole = (line.text, line.text.partition(": ")[2])
        if len(words) < _SHORTEST and words not in whole:
            return None
        return Quote(trace=line.trace, step=line.id, text=words)

    def _take(self, name: str, trace: Trace) -> None:
        self._traces[name] = trace
        for number, run in enumerate((run for turn in trace.turns for run in turn.runs), 1):
            label = f"{name}.r{number}"
            self._runs[label] = name, run
            self._label_of_run[name, run.id] = label
        for number, turn in enumerate(trace.turns, 1):
            for letter, who, content in (("u", "user", turn.input), ("a", "answer", turn.output)):
                if content is not None:
                    text = _folded(content.plain())
                    self._lines[f"{name}.{letter}{number}"] = Line(trace.id, turn.id, who, text)
        for number, (id_, shown) in enumerate(shown_steps(trace).items(), 1):
            line = Line(trace.id, id_, _folded(shown.agent), _folded(shown.text))
            self._lines[f"{name}.s{number}"] = line

    def _list(self) -> str:
        lines = []
        for place, (member, trace) in enumerate(self.data.members, 1):
            steps = [
                label for label, line in self._of(f"m{place}").items() if line.id in member.evidence
            ]
            marked = f"; it points at {', '.join(steps[:5])}" if steps else ""
            lines.append(
                f"m{place}: {self._summary_of(trace)}; failed: {_short(member.says)}{marked}"
            )
        for place, trace in sorted(self.data.twins.items()):
            lines.append(f"p{place + 1}, which passes: {self._summary_of(trace)}")
        return "\n".join(lines)[:_MOST]

    def _summary_of(self, trace: Trace) -> str:
        request = next((turn.input for turn in trace.turns if turn.input is not None), None)
        runs = [run.agent for turn in trace.turns for run in turn.runs]
        return (
            f"{_short(request.plain()) if request else 'no message'} ({_short(' → '.join(runs))})"
        )

    def _of(self, name: str) -> dict[str, Line]:
        return {label: line for label, line in self._lines.items() if label.startswith(f"{name}.")}

    def _read_run(self, about: str) -> str:
        name = about.strip()
        if name in self._traces:
            lines = [self._in_short(label, line) for label, line in self._of(name).items()]
            return _ends(lines)
        name, run = self._run(name)
        own = {step.id for step in run.steps}
        lines = [f"{about.strip()}: {_folded(run.agent)}, {run.status}"]
        lines += [
            self._in_short(label, line) for label, line in self._of(name).items() if line.id in own
        ]
        return _ends(lines)

    def _run(self, label: str) -> tuple[str, AgentRun]:
        run = self._runs.get(label.strip())
        if run is None:
            listed = ", ".join(list(self._runs)[:8])
            raise InputError(f"there is no run `{label[:80]}`: {listed}")
        return run

    @staticmethod
    def _in_short(label: str, line: Line) -> str:
        left = len(line.text) - _LINE
        more = f" ⟨{left} more characters: read_step⟩" if left > 0 else ""
        return f"{label}, {line.who}: {line.text[:_LINE]}{more}"

    def _children(self, about: str) -> str:
        name, run = self._run(about)
        trace = self._traces[name]
        made = [
            each
            for turn in trace.turns
            for each in turn.dispatches
            if each.from_run == run.id and each.kind != "return"
        ]
        if not made:
            return f"{about.strip()} started no run"
        return _ends([self._child(name, trace, each) for each in made])

    def _child(self, name: str, trace: Trace, made: Dispatch) -> str:
        labels = [self._label_of_run.get((name, id_), "?") for id_ in made.runs]
        prompt = _short(made.prompt.plain()) if made.prompt is not None else "no prompt"
        back = made.result.plain() if made.result is not None else made.error or made.status
        to = made.to_agent if known(trace, made, "to_agent") else "?"
        return (
            f"{', '.join(labels) or 'no run'}: {made.kind} to {to}: {prompt}; back: {_short(back)}"
        )

    def _search(self, about: str) -> str:
        words = _folded(about).casefold()
        if not words:
            raise InputError("`about` is the text to look for")
        matches = []
        for label, line in self._lines.items():
            at = line.text.casefold().find(words)
            if at >= 0:
                begin = max(0, at - 80)
                matches.append(f"{label}, {line.who}: {line.text[begin : at + _LINE]}")
        more = f"\n{len(matches) - _HITS} more" if len(matches) > _HITS else ""
        return "\n".join(matches[:_HITS])[:_MOST] + more if matches else "no step contains it"

    def _diff(self, about: str) -> str:
        name = about.strip()
        number = name.removeprefix("m")
        place = int(number) - 1 if number.isascii() and number.isdigit() else -1
        if name not in self._traces or place not in self.data.twins:
            with_twin = ", ".join(f"m{each + 1}" for each in sorted(self.data.twins)) or "none"
            raise InputError(f"`{name[:80]}` has no passing run with the same input; {with_twin}")
        ours = list(self._of(name).items())[:_COMPARED]
        theirs = list(self._of(f"p{place + 1}").items())[:_COMPARED]
        # The same step: by the same agent, and of the same kind (`called look_up(`).
        first, second = (
            [(line.who, line.text.split("(")[0][:40]) for _, line in own] for own in (ours, theirs)
        )
        lines = []
        matcher = difflib.SequenceMatcher(a=first, b=second, autojunk=False)
        for what, a, b, c, d in matcher.get_opcodes():
            if what != "equal":
                lines += [f"- {self._in_short(label, line)}" for label, line in ours[a:b]]
                lines += [f"+ {self._in_short(label, line)}" for label, line in theirs[c:d]]
                continue
            for (label, line), (other, twin) in zip(ours[a:b], theirs[c:d], strict=True):
                if line.text == twin.text:
                    lines.append(f"  {label} = {other}")
                else:
                    lines += [
                        f"~ {self._in_short(label, line)}",
                        f"~ {self._in_short(other, twin)}",
                    ]
        return _ends(lines)

    def _catalogue(self, about: str) -> str:
        name = about.strip()
        if name:
            if name not in self.data.texts:
                listed = ", ".join(list(self.data.texts)[:20]) or "there are none"
                raise InputError(f"there is no text `{name[:80]}`: {listed}")
            return f"{name}:\n{neutral(self.data.texts[name])[:_MOST]}"
        lines = [f"{_folded(name)}: {_short(text)}" for name, text in self.data.texts.items()]
        named = {name.partition(":")[2] for name in self.data.texts}
        seen = {run.agent for _, run in self._runs.values()} - named
        lines += [f"{_folded(agent)}: nothing is known of its definition" for agent in sorted(seen)]
        return _ends(lines)

    def _earlier(self) -> str:
        lines = []
        for each in self.data.earlier:
            own = each.investigation
            text = " ".join(part.says for part in own.summary) if own is not None else ""
            fix = f"; fix ({each.fix.state}): {each.fix.why}" if each.fix is not None else ""
            lines.append(f"{_short(each.issue.title)}: {_folded(text + fix)[: 3 * _LINE]}")
        return _ends(lines) if lines else "there are none"


def _folded(text: str) -> str:
    return " ".join(neutral(text).split())


def _short(text: str) -> str:
    folded = _folded(text)
    return folded if len(folded) <= _LINE else f"{folded[:_LINE]} ⟨...⟩"


def _ends(lines: list[str]) -> str:
    """Keep the start and the end of a long list, and leave out the middle."""
    total = sum(map(len, lines)) + len(lines)
    if total <= _MOST:
        return "\n".join(lines)
    head: list[str] = []
    tail: list[str] = []
    room = _MOST
    for first, last in zip(lines, reversed(lines), strict=True):
        room -= len(first) + len(last) + 2
        if room < 0:
            break
        head.append(first)
        tail.append(last)
    left = len(lines) - len(head) - len(tail)
    return "\n".join([*head, f"⟨{left} lines are left out here⟩", *reversed(tail)])
