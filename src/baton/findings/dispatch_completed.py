"""Whether dispatched work was completed with a real answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from baton.formats.nesting import is_too_deep
from baton.model import AgentRun, Content, Dispatch, Evidence, Trace, Turn, known
from baton.model.views import in_short

from .finding import (
    NO_NAMES,
    Answer,
    Clear,
    Finding,
    NotRecorded,
    has_run,
    receiver_name,
    receivers_of,
    sender_of,
    steps_of,
)
from .lazy_patterns import regex

# Texts that agent runtimes themselves return in place of an answer to any request. `API Error:
# 529` and `<tool_use_error>` come from Claude Code, `Error executing tool. coworker mentioned not
# found` from CrewAI. Each is matched at the start of the answer: "An API Error can be retried." is
# an ordinary sentence about errors.
_OF_RUNTIMES = regex(
    r"""(?:
        API\ Error (?:\ \d{3})? \s* :
        | Error\ (?:executing|running|calling|invoking)\ (?:tool|agent)\b
        | Agent\ error:
        | <tool_use_error>
    )""",
    re.VERBOSE,
)
# Texts with which a program reports its own failure. A helper that was asked to read a log can
# quote one of these as a genuine answer, so they count only if the request is not about errors
# (`_ABOUT_ERRORS`). "Error: none" and "Error: 0" report that all is well.
_OF_PROGRAMS = regex(
    r"""(?:
        (?:ERROR|Error) (?:\ \d{3})? \s* :
            (?!\s*(?:none|nothing|0|no(?:\ errors?)?(?:\ found)?)\W*\Z)
        | (?<![\w.])(?:[A-Za-z_][\w.]*\.)? [A-Z]\w*(?:Error|Exception) (?:\(['"]|:\s)
        | Traceback\ \(most\ recent\ call\ last\):
    )""",
    re.VERBOSE,
)
# "ValueError: x" can be the right answer to "What does the last line of the log say?".
_ABOUT_ERRORS = regex(
    r"error|exception|traceback|fail|crash|bug|\blogs?\b|broken|wrong", re.IGNORECASE
)
# An answer about an error is longer than the error itself.
_LONGEST = 600
# Values of a `status` field that mean by themselves that the work failed. `{"status": "ok", ...}`
# and any unknown value count as an answer.
_STATES = ("error", "failed", "failure")
# Keys that describe an error. Any other key means that there is a result too: `{"error": "E1",
# "rows": [1, 2]}` returns rows, and `E1` may describe what happened to the rest.
_BESIDE_ERROR = frozenset(
    {"error", "errors", "status", "code", "message", "type", "detail", "details", "success", "ok"}
)


def error_in(content: Content | None, asked: Content | None = None) -> str | None:
    """Return the error that an answer consists of; ``None`` if it says anything else.

    A text counts if it opens like a runtime's error report (``API Error: ``, ``Error executing
    tool``), or like a program's (``Error: ``, ``ValueError: ``, a traceback) unless ``asked`` is
    itself about errors. Apart from tracebacks, it has at most 600 characters. JSON counts if it
    is an object with an ``error``, or with a ``status`` of ``error``, and otherwise only keys that
    describe an error.
    """
    if content is None:
        return None
    text = (content.text or "").strip()
    data = _object(text) if text else content.data
    if data is not None:
        return _quote(data)
    if len(text) > _LONGEST and not text.startswith("Traceback"):
        return None
    if _OF_RUNTIMES.match(text):
        return text
    if asked is not None and _ABOUT_ERRORS.search(asked.plain()):
        return None
    return text if _OF_PROGRAMS.match(text) else None


def _object(text: str) -> Any:
    if not (text.startswith("{") and text.endswith("}")) or is_too_deep(text.encode()):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _quote(data: Any) -> str | None:
    if not isinstance(data, dict) or not _BESIDE_ERROR.issuperset(data):
        return None
    failed = data.get("error") or data.get("errors")
    if not failed and data.get("status") not in _STATES:
        return None
    return json.dumps(data, ensure_ascii=False)


# Characters of a result that a finding quotes.
_QUOTE = 200
# Frameworks' messages for an agent that was stopped. This is reported as `killed`, not as `failed`,
# because the agent did nothing wrong.
_STOPPED = ("the agent was stopped", "was stopped", "was cancelled", "was canceled", "was killed")


def completed(
    trace: Trace, turn: Turn, dispatch: Dispatch, renames: Mapping[str, str] = NO_NAMES
) -> Answer:
    """Return whether a dispatch was completed.

    Findings are ``failed``, ``killed``, ``refused``, ``unanswered``, ``empty_answer`` and
    ``error_answer``, and ``receiver_failed`` if control passed to an agent that failed.
    """
    name = receiver_name(trace, dispatch, renames)
    status = dispatch.status
    if not known(trace, dispatch, "status") or status == "unknown":
        return NotRecorded(
            says=f"the end of the dispatch to {name} is not recorded: record the agents' calls "
            "with their answers"
        )
    if status == "waiting":
        return NotRecorded(says=f"{name} has not answered yet: record the conversation to its end")
    runs = receivers_of(trace, dispatch)
    if status in ("failed", "refused"):
        return [_ended_badly(trace, dispatch, runs, name)]
    if status == "unanswered":
        return _unanswered(trace, turn, dispatch, name)
    if dispatch.kind == "delegate":
        return _answered(trace, dispatch, runs, name)
    return _arrived(trace, turn, dispatch, runs, name)


def _ended_badly(trace: Trace, dispatch: Dispatch, runs: Sequence[AgentRun], name: str) -> Finding:
    why = dispatch.error
    said = f": {in_short(why)}" if why else ""
    if dispatch.status == "refused":
        return _finding(trace, dispatch, "refused", f"{name} was not started{said}", why)
    if any(run.status == "cancelled" for run in runs) or _stopped(why):
        says = f"{name} was stopped before it answered{said}"
        return _finding(trace, dispatch, "killed", says, why, runs)
    who = name if runs or not known(trace, dispatch, "runs") else f"the dispatch to {name}"
    return _finding(trace, dispatch, "failed", f"{who} failed{said}", why, runs)


def _unanswered(trace: Trace, turn: Turn, dispatch: Dispatch, name: str) -> Answer:
    """Judge an unanswered dispatch. It is a fault only if what came later was recorded."""
    if turn.status == "incomplete":
        return NotRecorded(says="the turn is incomplete: record it to its end")
    # A background agent can answer in a later turn. If the dispatch is in the last turn, the
    # recording just stopped too early for the answer.
    if dispatch.mode == "background" and turn is trace.turns[-1]:
        return NotRecorded(
            says=f"{name} was still at work when the recording ends: record what came later"
        )
    if dispatch.kind == "delegate":
        return [_finding(trace, dispatch, "unanswered", f"{name} gave no answer")]
    if not known(trace, turn, "output") or not known(trace, turn, "runs"):
        return NotRecorded(
            says=f"whether {name} took over is not recorded: record all agents of a turn in "
            "one trace, with their answers"
        )
    # The agent did run, but no id links its run to this hand-off. Either it took over, or another
    # agent started it. Both cases look the same in the record.
    if has_run(trace, dispatch.to_agent):
        return NotRecorded(
            says=f"{name} ran, but it is unknown whether this dispatch started it: record all "
            "agents of a turn in one trace"
        )
    return [_finding(trace, dispatch, "unanswered", f"{name} never took over")]


def _answered(trace: Trace, dispatch: Dispatch, runs: Sequence[AgentRun], name: str) -> Answer:
    result = dispatch.result
    if not known(trace, dispatch, "result"):
        return NotRecorded(
            says=f"the answer of {name} is not recorded: record results of tool calls"
        )
    if _empty(result):
        if any(run.output and not _empty(run.output) for run in runs):
            return NotRecorded(says=f"{name} spoke, but it is not recorded what reached its caller")
        says = f"the answer of {name} is empty"
        return [_finding(trace, dispatch, "empty_answer", says, None, runs)]
    error = error_in(result, dispatch.prompt)
    if error is not None:
        says = f"{name} answered with an error: {in_short(error)}"
        return [_finding(trace, dispatch, "error_answer", says, error, runs)]
    return Clear(says=f"{name} answered")


def _arrived(
    trace: Trace, turn: Turn, dispatch: Dispatch, runs: Sequence[AgentRun], name: str
) -> Answer:
    for run in runs:
        if run.status in ("failed", "cancelled"):
            how = "failed" if run.status == "failed" else "was stopped"
            why = f": {in_short(run.error)}" if run.error else ""
            says = f"{name} got control and {how}{why}"
            return [_finding(trace, dispatch, "receiver_failed", says, run.error, [run])]
        # No result comes back after a transfer, so the receiver's own last words are judged.
        error = error_in(run.output, run.input or turn.input)
        if error is not None:
            says = f"{name} got control and answered with an error: {in_short(error)}"
            return [_finding(trace, dispatch, "error_answer", says, error, [run])]
    if runs and all(run.status == "waiting" for run in runs):
        return NotRecorded(says=f"{name} waits: record the conversation to its end")
    if runs and all(run.status == "unknown" for run in runs):
        return NotRecorded(says=f"{name} got control; it is not recorded how its work ended")
    return Clear(says=f"{name} got control" + (" and completed" if runs else ""))


def _finding(
    trace: Trace,
    dispatch: Dispatch,
    kind: str,
    says: str,
    quote: str | None = None,
    runs: Sequence[AgentRun] = (),
) -> Finding:
    ids = steps_of(trace, sender_of(trace, dispatch), dispatch) + [run.id for run in runs]
    return Finding(
        kind=kind, says=says, evidence=[Evidence(ids=ids, quote=quote[:_QUOTE] if quote else None)]
    )


def _empty(content: Content | None) -> bool:
    if content is None:
        return True
    return content.data in (None, "") and not content.parts and not (content.text or "").strip()


def _stopped(why: str | None) -> bool:
    return why is not None and any(word in why.casefold() for word in _STOPPED)


# Used for one question: after a dispatch failed, did the caller report it? The list is broad,
# because any of these words in the answer suppresses the finding: a caller that writes "Billing is
# down, please try again later" reported the failure in plain words. `later`, `again` and `instead`
# are here for callers that only mention the way out ("Please ask again in an hour", "I looked it up
# myself instead"). They can hide a real fault if `later` was about something else. That misses a
# finding, but without them a polite answer would be a false alarm. They change nothing on the texts
# of benchmarks/accuracy, as these results did not fail.
_WORDS = (
    r"fail(?:s|ed|ing|ure|ures)?|errors?|exceptions?|unable|unavailable|unreachable|impossible|"
    r"refused?|denied|rejected|broken?|crashed|crash|down|locked|stopped|killed|cancelled|canceled|"
    r"aborted|timed out|timeout|unfortunately|sorry|apolog\w+|trouble|problem|issue|went wrong|"
    r"unknown|missing|invalid|"
    r"(?:can|could|did|does|do|was|were|is|are|will|would|has|have|may)(?:n't|n’t| not)|cannot|"
    r"not (?:able|possible|available|found|known|allowed|permitted|reachable|respond\w*|answer\w*)|"
    r"no (?:answer|response|reply|result|results|such|access|luck)|nothing (?:could|came|was)|"
    r"nobody|without (?:success|result)|later|again|instead|"
    r"fehler\w*|leider|gescheitert|fehlgeschlagen|nicht|kein\w*|unmöglich|"
    r"erreur|échou\w+|échec|impossible|malheureusement|ne \w+ pas|"
    r"falló|fallado|fallo|imposible|lamentablemente|no (?:pude|puedo|se pudo|pudo|hay|es posible)"
)
_PATTERN = regex(rf"(?<!\w)(?:{_WORDS})(?!\w)", re.IGNORECASE)


def reports_failure(text: str) -> bool:
    """Return whether a text mentions a failure at all, in English, German, French or Spanish."""
    return _PATTERN.search(text) is not None
