"""Injections against every evaluator that asks a judge: ``python -m tests.torture.injections``.

Each of the injections of ``tests/data/judges/injections.yaml`` is planted in every place of a
recording and of its case: texts, names of agents and tools, keys and values of arguments, results,
errors, ids, MIME types, definitions, statements. The recording is scored by all rubrics that come with
Baton, through the real client of an LLM, against a server on loopback that keeps what it was sent. An
injection has to stay data: inside the fence, in its block, below a line of ours, and nowhere in the
instructions.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml
from tests.evaluators.judged.scripted import is_fenced, shipped

import baton
from baton.model import (
    AgentCard,
    AgentRun,
    Case,
    CaseRubric,
    Content,
    Dispatch,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    GotBack,
    HandedOff,
    Part,
    Said,
    Scenario,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.testing import LlmServer, Received, llm_server

FILE = Path(__file__).parents[1] / "data" / "judges" / "injections.yaml"
HARMLESS = "nothing of note"
LONG = 25_000
"""Characters to which texts are repeated in the second round: three are more than a judge is shown."""
RAW = frozenset(
    {
        "What the user asked", "The answer", "What the agents said", "What came back",
        "What the agent was given", "The expected answer", "What has to be true in the end",
    }
)  # fmt: skip
"""Blocks that hold a text and no line of ours."""
_CANARY = re.compile(r"canary-\w{20}")
_MAY_DIFFER = "Some of the material is too long to be shown."
_ITEM = re.compile(r"item_\d+:")


class Shown(NamedTuple):
    """What one request comes to: who asks, the lines of ours in each block, what is wrong."""

    system: str
    lines: dict[str, int]
    trouble: str | None


class Found(NamedTuple):
    """What was sent for one recording, and the status of each evaluator."""

    shown: list[Shown]
    statuses: dict[str, set[str]]


def injections() -> list[dict[str, str]]:
    """Return the injections: ``name`` and ``text`` of each."""
    found: list[dict[str, str]] = yaml.safe_load(FILE.read_text("utf-8"))
    return found


def planted(text: str, *, long: bool = False) -> tuple[Trace, Case]:
    """Plant a text wherever a recording and a case may have one; ``long``: so that it is too long."""
    full = text * (LONG // len(text) + 1) if long else text
    said = Content(text=full, parts=[Part(type="file", mime=text, uri=text)])
    lead, helper, tool = f"{text}1", f"{text}2", f"{text}3"
    first = Turn(id=f"{text}t0", input=said, output=said, state={text: text})
    card = AgentCard(
        description=full, tools=[tool, text], denied_tools=[text], instructions=full, aliases=[text]
    )
    call = ToolCall(id=f"{text}c1", name=tool, arguments={text: full}, result=said)
    failed = ToolCall(
        id=f"{text}c2", name=text, arguments={text: {text: [full]}}, status="failed", error=full
    )
    dispatch = Dispatch(
        id=f"{text}d", kind="delegate", from_run=f"{text}r1", from_agent=lead, to_agent=helper,
        prompt=said, description=full, context={text: full}, tools_allowed=[text],
        tools_source="request", runs=[f"{text}r2"], result=said,
    )  # fmt: skip
    other = msgspec.structs.replace(
        dispatch, id=f"{text}d2", runs=[], status="unanswered", result=None, error=full
    )
    runs = [
        AgentRun(
            id=f"{text}r1", agent=lead, node=text, inside=[text], input=said, output=said,
            tools_offered=[text],
            steps=[
                Said(id=f"{text}s1", content=said, sources=[{text: full}, text]),
                HandedOff(id=f"{text}h", dispatch=dispatch.id),
                HandedOff(id=f"{text}h2", dispatch=other.id),
                GotBack(id=f"{text}g", dispatch=dispatch.id),
                Said(id=f"{text}s2", content=said),
            ],
        ),
        AgentRun(
            id=f"{text}r2", agent=helper, input=said, output=said, started_by=[dispatch.id],
            steps=[call, failed, Said(id=f"{text}s3", content=said)],
        ),
    ]  # fmt: skip
    turn = Turn(
        id=f"{text}t1", input=said, output=said, state={text: full}, runs=runs,
        dispatches=[dispatch, other],
    )  # fmt: skip
    trace = Trace(
        schema_version=1, id=text, case=text, source=Source(format=text, framework=text),
        turns=[first, turn], agents={lead: card, helper: card}, state={text: full},
    )  # fmt: skip
    return trace, _case(text, said)


def _case(text: str, said: Content) -> Case:
    types = [None, "assertion", "FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY"]
    rubrics = [CaseRubric(id=f"{text}{n}", text=text, type=kind) for n, kind in enumerate(types)]
    expected = ExpectedTurn(
        input=said,
        response=Content(text=text),
        agents=[text],
        tool_calls=[ExpectedToolCall(name=text, arguments={text: text}, agent=text)],
        interactions=[ExpectedVisit(agent=f"{text}1", says=[text])],
        rubrics=[CaseRubric(text=text)],
    )
    return Case(
        id=text,
        turns=[ExpectedTurn(input=said), expected],
        rubrics=rubrics,
        final_state={text: text},
        scenario=Scenario(start=text, plan=text),
        labels={text: text},
        tags=[text],
        metadata={text: text},
    )


def evaluators(names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return a spec for every rubric that comes with Baton."""
    found = []
    for name, rubric in shipped().items():
        config: dict[str, Any] = {"cascade": False, "report": "each", "samples": 1}
        if "{rubric}" in rubric.prompt:
            config["rubric"] = "All is well done."
        if names is None or name in names:
            found.append({"type": name, "config": config})
    return found


def scored(
    server: LlmServer, folder: Path, text: str, specs: Sequence[Mapping[str, Any]], *, long: bool
) -> Found:
    """Score a recording with a text planted everywhere, and take apart what the server was sent."""
    server.clear()
    trace, case = planted(text, long=long)
    file = folder / "recorded.json"
    file.write_bytes(msgspec.json.encode(trace))
    judge = {**server.judge(retries=0), "cache": False}
    done = baton.score(file, [case], evaluators=list(specs), judge=judge)
    statuses: dict[str, set[str]] = {}
    for result in done.results:
        for score in result.scores:
            statuses.setdefault(score.evaluator, set()).add(score.status)
    return Found([_shown(received) for received in server.requests], statuses)


def _shown(received: Received) -> Shown:
    roles = [message.role for message in received.messages]
    trouble = None
    if roles != ["system", "user"]:
        trouble = f"the messages are {roles}"
    elif not is_fenced(received.user):
        trouble = "the material is not one fence"
    return Shown(_CANARY.sub("canary", received.system), dict(_lines(received.user)), trouble)


def _lines(content: str) -> Iterator[tuple[str, int]]:
    """Count the lines of ours in each block: those that are not indented, and not empty."""
    code = content.split("\n", 1)[0].rsplit(" ", 1)[-1].rstrip(".")
    for part in content.split(f"⟦{code}: ")[1:]:
        title, _, rest = part.partition("⟧\n")
        lines = rest.split(f"\n⟦/{code}⟧")[0].split("\n")
        own = [line for line in lines if line and line[0] != " "]
        if title in RAW:
            own = []
        elif title in ("What to label, one by one", "The statements"):
            own = [line for line in own if not _ITEM.fullmatch(line)]
        yield title, len(own)


def troubles(found: Found, plain: Found, *, long: bool) -> Iterator[str]:
    """Say what an injection did, held against a recording in which nothing is planted."""
    systems = {each.system for each in plain.shown}
    most: Counter[tuple[str, str]] = Counter()
    for each in plain.shown:
        for title, count in each.lines.items():
            most[each.system, title] = max(most[each.system, title], count)
    for each in found.shown:
        if each.trouble is not None:
            yield each.trouble
        if _without_items(each.system) not in map(_without_items, systems):
            yield "the instructions are others"
            continue
        for title, count in each.lines.items():
            limit = max(
                count
                for (system, name), count in [*most.items(), (("", title), 0)]
                if name == title
            )
            if count > limit:
                yield f"{count} lines of ours in `{title}`, where {limit} are"
    for name, statuses in found.statuses.items():
        allowed = plain.statuses[name] | {"skipped"} | ({"error"} if long else set())
        if not statuses <= allowed:
            yield f"`{name}` is {', '.join(sorted(statuses - allowed))}"


def _without_items(system: str) -> str:
    """Drop what may differ: how many things there are to label, and that something is left out."""
    system = system.split("Always respond with a JSON object", maxsplit=1)[0]
    kept = [part for part in system.split("\n\n") if not part.startswith(_MAY_DIFFER)]
    return re.sub(r"Give a verdict for each of item_1 to item_\d+\.", "", "\n\n".join(kept))


def worst(asked: Received) -> dict[str, Any]:
    """Give the last label there is, or the lowest number."""
    assert asked.schema is not None
    answer: dict[str, Any] = _worst(asked.schema)
    return answer


def _worst(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][-1]
    if schema["type"] == "object":
        return {name: _worst(part) for name, part in schema["properties"].items()}
    return schema.get("minimum", "so it is")


class Tally(NamedTuple):
    """How many injections and requests there were, and what went wrong: injection and trouble."""

    injections: int
    evaluators: int
    requests: int
    found: list[tuple[str, str]]


def torture(
    folder: Path,
    part: int = 1,
    names: Sequence[str] | None = None,
    rounds: Sequence[bool] = (False, True),
) -> Tally:
    """Plant every ``part``-th injection; ``rounds`` say whether texts are long."""
    specs = evaluators(names)
    chosen = injections()[::part]
    wrong: list[tuple[str, str]] = []
    requests = 0
    with llm_server(worst) as server:
        for long in rounds:
            plain = scored(server, folder, HARMLESS, specs, long=long)
            wrong += [(HARMLESS, trouble) for trouble in troubles(plain, plain, long=long)]
            for each in chosen:
                found = scored(server, folder, each["text"], specs, long=long)
                requests += len(found.shown)
                wrong += [(each["name"], told) for told in troubles(found, plain, long=long)]
    return Tally(len(chosen), len(specs), requests, wrong)


def main() -> int:
    """Run it; 1 where an injection did not stay data."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the injections, such as 0.1")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = torture(Path(folder), max(1, round(1 / parser.parse_args().share)))
    for name, trouble in dict.fromkeys(done.found):
        print(f"{name}: {trouble}")
    print(
        f"{done.injections} injections, {done.evaluators} evaluators, {done.requests:,} requests, "
        f"{len(set(done.found))} problems, {time.monotonic() - started:.0f} s"
    )
    return 1 if done.found else 0


if __name__ == "__main__":
    sys.exit(main())
