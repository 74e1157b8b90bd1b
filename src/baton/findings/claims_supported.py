"""Does the record contain calls that support what an agent claims to have done?

A claim is *backed* by a call that may have done it, *contradicted* if all such calls failed or show
otherwise, and *unsupported* if all possible calls are recorded and can't have done it. Otherwise it
is undecided, because most tools can do more than their names suggest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from baton.model import AgentRun, Dispatch, Evidence, Said, ToolCall, Trace, Turn, known
from baton.model.views import TooMuchTextError, charge_work, index_of

from .claims import ACTIONS, BY_NAME, WEAK, Claim, claims_of, done_by
from .dispatch_completed import completed, error_in, reports_failure
from .facts import as_json, language, plain_text, without_style
from .finding import (
    NO_NAMES,
    TOO_LONG,
    Answer,
    Clear,
    Finding,
    NotRecorded,
    name_key,
    receivers_of,
)
from .lazy_patterns import regex

# Tools with these prefixes only read: `get_order`, `search_web`, `Read`.
_LOOKS = frozenset(
    """
    get list read search find lookup look fetch query check view show describe grep glob ls cat
    count calculate calc compute convert retrieve scan inspect analyze analyse estimate compare
    rank summarize summarise verify validate translate track locate websearch webfetch load think
    """.split()  # noqa: SIM905
)
# And those with these suffixes: `weather`, `web_search`, `WikipediaLookup`.
_ONLY_LOOKS = frozenset(
    "search lookup weather forecast calculator clock wikipedia finder reader news".split()  # noqa: SIM905
)
# A tool with one of these words does two things, or anything its arguments state:
# `search_and_replace`, `get_or_create`, `run_query`, `http_request`.
_ANYTHING = frozenset(
    """
    and or run exec execute bash shell terminal command cmd python code script sql http request api
    rest call invoke browser computer browse navigate click type use tool tools mcp action actions
    function perform do process handle agent task manage manager update set submit eval repl
    notebook sandbox workflow job operate control apply out
    """.split()  # noqa: SIM905
)
_SPECIFIC = frozenset().union(*(action.tools for action in ACTIONS)) - _ANYTHING - WEAK
# Changing commands in the arguments of a reading tool: `query("DELETE FROM users")`.
_CHANGING = regex(r"\b(?:insert|update|delete|drop|alter|create|merge|post|put|patch)\b", re.I)
# Commands that do only one thing, with the actions that they can be.
_COMMANDS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("pytest", "jest", "vitest", "mocha", "tox", "nox", "ruff", "mypy", "eslint", "ctest"),
        frozenset({"ran"}),
    ),
    **dict.fromkeys(
        ("ls", "cat", "grep", "rg", "head", "tail", "wc", "pwd", "cd", "find", "diff", "which"),
        frozenset(),
    ),
}
# Commands that run tests: `pytest -q`, `npm test`, but not `latest.sh`.
_TEST_RUN = regex(
    r"(?<![a-z])(?:pytest|unittest|jest|vitest|mocha|rspec|tox|nox|ctest|phpunit|tests?)(?![a-z])",
    re.IGNORECASE,
)
# Outputs of test runners: "2 failed", "FAILED", "failures=1", but not "0 failed".
_FAILED_TESTS = regex(
    r"\b[1-9]\d* (?:tests? )?fail(?:ed|ures?|ing)?\b|\bFAILED\b|\bfailures?[=:] ?[1-9]"
    r"|\bexit (?:code|status):? [1-9]"
)
# "41 passed" and "passed: 41": with the claimed number, some failures do not contradict it.
_PASSED_TESTS = regex(r"\b(\d+) (?:tests? )?pass(?:ed|ing)?\b|\bpassed[=:] ?(\d+)", re.I)
# Words in the request or instructions that indicate a role play.
_PLAY = regex(
    r"\b(?:role-?play|pretend|simulat\w+|imagin\w+|fiction\w*|act as if|stor(?:y|ies)|dialogue"
    r"|mock)\b",
    re.IGNORECASE,
)
# A text written for another person uses "I" for them: "Write a status mail for me".
_WRITES = regex(
    r"\b(?:write|draft|compose|rewrite|rephrase|translate|proofread|reword"
    r"|summari[sz]e)\b[^.!?\n]{0,40}"
    r"\b(?:e-?mail|mail|message|letter|post|status|update|reply|report|note|announcement|speech"
    r"|blog|minutes|text|cv|changelog|release notes|headline|caption|tweet)\b"
    r"|\b(?:reply|respond) to (?:the|this|that|an?) (?:\w+ )?(?:review|comment|tweet|letter"
    r"|complaint|post)\b",
    re.IGNORECASE,
)
# What a caller states about an agent that died: "The billing agent has processed it".
_SUCCEEDED = regex(
    r"\b(?:complet\w+|finish\w+|found|confirm\w+|report\w+|return\w+|succe\w+|done|handled"
    r"|says?|said"
    r"|provid\w+|verif\w+|process\w+|approv\w+|fixed|wrote|created)\b",
    re.IGNORECASE,
)
# Only words with this many letters count in a quote. It is invented if less than this share of them
# occurs anywhere.
_LONG_WORD = 4
_QUOTED_SHARE = 0.5
# With more calls, one of them can nearly always be the claimed one, and comparing all of them takes
# long.
_MOST_CALLS = 400
# The cost of following a dispatch down, in compared texts.
_PER_RUN = 3


class ClaimVerdict(NamedTuple):
    """A claim, its verdict, and the steps that decide it."""

    claim: Claim
    verdict: str
    """``backed``, ``contradicted``, ``unsupported`` or ``untold``."""
    why: str
    ids: list[str]


class _Scope(NamedTuple):
    """The calls that could support a claim, and whether they are complete."""

    calls: list[ToolCall]
    whole: bool


class _At:
    """A run with its turn and trace, and its inputs."""

    def __init__(self, trace: Trace, turn: Turn, run: AgentRun) -> None:
        self.trace, self.turn, self.run = trace, turn, run

    @cached_property
    def heard(self) -> list[str]:
        """Texts that users, agents and tools gave to the run or nearby, and its instructions.

        Raises:
            TooMuchTextError: there is too much text to read for each run.
        """
        texts = list(_heard(self.trace, self.turn, self.run))
        # Each claim searches all of them: a million characters in about 10 ms.
        if not index_of(self.trace).spend(len(texts) + sum(map(len, texts)) // 100):
            raise TooMuchTextError
        return texts


def claims_supported(
    trace: Trace, turn: Turn, run: AgentRun, renames: Mapping[str, str] = NO_NAMES
) -> Answer | None:
    """Compare a run's claims with its calls and those of the agents it started.

    Faults: ``unsupported_claim`` (no call could have done it) and ``contradicted_claim`` (all
    calls for it failed, tests did not pass, or the answer reports success for an agent that died).
    ``None``: the run claims nothing. ``NotRecorded``: the deciding data is not recorded, or not in
    English.
    """
    answer = _answer_of(turn, run)
    if not answer or (answer[0] in "[{" and as_json(answer) is not None):
        return None
    dead = list(_of_dead_agents(trace, turn, run, answer, renames))
    claims = claims_of(answer)
    failed = list(_failed_tools(trace, run))
    if not claims and not dead and not failed:
        return None
    if language(answer) not in (None, "en"):
        return NotRecorded(says="only English claims are read")
    if run.status in ("failed", "waiting", "cancelled"):
        return NotRecorded(says="the run is incomplete: record the conversation to its end")
    try:
        at = _At(trace, turn, run)
        verdicts = dead + [_verdict_of(at, claim) for claim in claims]
        at_fault = {each.claim.sentence for each in verdicts if each.verdict != "untold"}
        verdicts += [
            each
            for each in _of_failed_tools(at, answer, failed)
            if each.claim.sentence not in at_fault
        ]
    except TooMuchTextError:
        return NotRecorded(says=TOO_LONG)
    return _answered(run, verdicts) if verdicts else None


def claims_of_receivers(
    trace: Trace, turn: Turn, dispatch: Dispatch, renames: Mapping[str, str] = NO_NAMES
) -> Answer:
    """Compare the claims of a dispatch's receivers with their calls."""
    runs = receivers_of(trace, dispatch)
    answers = [claims_supported(trace, turn, run, renames) for run in runs]
    faults = [f for answer in answers if isinstance(answer, list) for f in answer]
    if faults:
        return faults
    checked = [answer for answer in answers if answer is not None]
    clear = next((answer for answer in checked if isinstance(answer, Clear)), None)
    return clear or next(iter(checked), NotRecorded(says="the answer claims nothing that was done"))


def _answered(run: AgentRun, verdicts: list[ClaimVerdict]) -> Answer:
    faults = [each for each in verdicts if each.verdict in ("contradicted", "unsupported")]
    rows = [
        {"claim": each.claim.sentence[:200], "what": each.claim.what, "verdict": each.verdict}
        for each in verdicts
    ]
    sure = [each for each in verdicts if each.verdict != "untold"]
    if not sure:
        return NotRecorded(says=f"can't tell whether its claim is true: {verdicts[0].why}")
    if not faults:
        names = dict.fromkeys(_NAMED.get(each.claim.what, each.claim.what) for each in sure)
        says = f"the recorded calls support its claims: {', '.join(names)}"
        return Clear(says=says, details={"claims": rows})
    share = 1 - len(faults) / len(sure)
    return [
        Finding(
            kind=f"{each.verdict}_claim",
            says=f'`{run.agent}` says "{_short(each.claim.sentence)}": {each.why}',
            share=share,
            evidence=[Evidence(ids=[run.id, *each.ids], quote=each.claim.sentence[:200])],
            details={"claims": rows} if each is faults[0] else {},
        )
        for each in faults
    ]


_NAMED = {"id": "an id", "quote": "a quotation"}
"""What claims are called that have no verb, unlike ``refunded`` and ``tests pass``."""


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= 100 else f"{sentence[:97]}..."


def _answer_of(turn: Turn, run: AgentRun) -> str:
    """Return the answer of a run, or the turn's answer if only this run speaks."""
    content = run.output or (turn.output if len(turn.runs) == 1 else None)
    return without_style(content.text or "") if content is not None else ""


# ------------------------------------------------------------------------------ one claim


def _verdict_of(at: _At, claim: Claim) -> ClaimVerdict:
    scope = _scope(at, claim)
    if not scope.calls and at.run.model is None and at.run.usage is None:
        why = "no model is recorded for it: it may be a program, which needs no tools"
        return ClaimVerdict(claim, "untold", why, [])
    if not scope.whole:
        why = "not all calls that may support it are recorded: record the steps of all agents"
        return ClaimVerdict(claim, "untold", why, [])
    if len(scope.calls) > _MOST_CALLS:
        return ClaimVerdict(claim, "untold", "too many calls may support it", [])
    if claim.what == "tests pass":
        # An agent without calls can be explaining what a green build is.
        others = [
            c for c in claims_of(_answer_of(at.turn, at.run)) if c.by_me and c.what in BY_NAME
        ]
        if not scope.calls and not others:
            return ClaimVerdict(claim, "untold", "it may refer to tests in general", [])
        return _tests(at, claim, scope)
    if claim.what in ("id", "quote"):
        return _value(at, claim)
    return _action(at, claim, scope)


def _action(at: _At, claim: Claim, scope: _Scope) -> ClaimVerdict:
    may = [call for call in scope.calls if _may_do(call, claim.what)]
    worked = [call for call in may if _worked(call)]
    if claim.what == "looked up" and may:
        looked = next((call for call in worked if _only_looks(call)), None)
        if looked is not None:
            return ClaimVerdict(claim, "backed", "a call looked it up", [looked.id])
        return ClaimVerdict(claim, "untold", f"`{may[0].name}` may have looked", [may[0].id])
    sure = [call for call in worked if _is_for(call, claim.what)]
    if sure and not (claim.value and _is_of_other_file(claim.value, sure, scope)):
        return ClaimVerdict(claim, "backed", "a call did it", [sure[0].id])
    if worked and not sure:
        return ClaimVerdict(
            claim, "untold", f"can't tell what `{worked[0].name}` did", [worked[0].id]
        )
    if _may_be_meant_otherwise(at, claim, scope):
        return ClaimVerdict(claim, "untold", "it may refer to its answer, or to a dispatch", [])
    if _was_told(at, claim.what) or _speaks_for_another(at):
        return ClaimVerdict(claim, "untold", "another agent or a person may have done it", [])
    if not claim.by_me and not _asks_for(at, claim.what):
        return ClaimVerdict(claim, "untold", "it may refer to an earlier state", [])
    failed = [call for call in may if _is_for(call, claim.what)]
    if failed and not sure:
        call = failed[-1]
        return ClaimVerdict(claim, "contradicted", f"its call of `{call.name}` failed", [call.id])
    if sure:
        why = f"no call names `{claim.value}`"
    else:
        match scope.calls:
            case []:
                why = "no call was made"
            case [call]:
                why = f"the only call, of `{call.name}`, does not do that"
            case calls:
                why = f"none of the {len(calls)} calls does that"
    return ClaimVerdict(claim, "unsupported", why, [call.id for call in scope.calls[:5]])


# Tools that a provider runs itself, so many sources do not record their calls.
_HOSTED = regex(
    r"code_?interpreter|code_?execution|computer|web_?search|google_?search|file_?search|image_?gen"
    r"|url_?context|text_?editor|hosted|mcp",
    re.IGNORECASE,
)
# An answer without any call and with this many characters or lines is requested content. In such an
# answer, "I've updated the file" means that the new file follows.
_TEXT, _LINES = 600, 6


def _may_be_meant_otherwise(at: _At, claim: Claim, scope: _Scope) -> bool:
    answer = _answer_of(at.turn, at.run)
    if any(_HOSTED.search(tool) for tool in at.run.tools_offered or ()):
        return True
    if claim.what in ("changed a file", "made a record", "booked", "deployed") and not scope.calls:
        if "```" in answer or len(answer) >= _TEXT or answer.count("\n") >= _LINES:
            return True
    if claim.what == "sent" and index_of(at.trace).made_by.get(at.run.id):
        # "I've forwarded your case" can refer to a dispatch to an agent.
        return not re.search(r"\be-?mail|\bsms\b|\bslack\b|\btext", claim.sentence, re.IGNORECASE)
    return False


def _is_of_other_file(path: str, calls: list[ToolCall], scope: _Scope) -> bool:
    """Return whether calls name files, but not this one."""
    name = re.split(r"[/\\]", path)[-1].casefold()
    texts = [plain_text(call.arguments).casefold() for call in calls]
    if not all(re.search(r"\w\.[a-z]{1,5}\b", text) for text in texts):
        return False
    every = (t for call in scope.calls for t in (plain_text(call.arguments), _result(call)))
    return not any(name in text.casefold() for text in every)


def _tests(at: _At, claim: Claim, scope: _Scope) -> ClaimVerdict:
    runs = [call for call in scope.calls if _runs_tests(call)]
    if runs:
        last = runs[-1]
        said = _result(last)
        if not _worked(last):
            return ClaimVerdict(claim, "contradicted", f"`{last.name}` failed", [last.id])
        passed = [a or b for a, b in _PASSED_TESTS.findall(said)]
        if _FAILED_TESTS.search(said) and claim.value not in passed:
            return ClaimVerdict(claim, "contradicted", "tests failed in the last run", [last.id])
        if claim.value and passed and claim.value not in re.findall(r"\d+", said):
            why = f"{passed[-1]} tests passed in the last run"
            return ClaimVerdict(claim, "contradicted", why, [last.id])
        return ClaimVerdict(claim, "backed", "tests were run", [last.id])
    unsure = [call for call in scope.calls if _may_do(call, "ran")]
    if unsure:
        return ClaimVerdict(
            claim, "untold", f"can't tell what `{unsure[0].name}` did", [unsure[0].id]
        )
    if any(
        re.search(r"\btests?\b", text, re.I) and re.search("pass|green|succe", text, re.I)
        for text in at.heard
    ) or _speaks_for_another(at):
        return ClaimVerdict(claim, "untold", "another agent or a person may have run the tests", [])
    return ClaimVerdict(
        claim, "unsupported", "no call ran tests", [call.id for call in scope.calls[:5]]
    )


def _value(at: _At, claim: Claim) -> ClaimVerdict:
    trace, turn, run = at.trace, at.turn, at.run
    calls = list(_calls(trace, turn))
    if not all(_is_complete(trace, call) for call in calls):
        return ClaimVerdict(claim, "untold", "the results of calls are not fully recorded", [])
    if not (known(trace, run, "input") and known(trace, turn, "input")):
        return ClaimVerdict(claim, "untold", "its request is not recorded", [])
    texts = [*at.heard, *(f"{call.name} {plain_text(call.arguments)}" for call in calls)]
    if not any(call.dispatch is None for call in calls):
        # It may come from instructions, or from a program that replaces tools.
        return ClaimVerdict(
            claim, "untold", "it may come from elsewhere, as no call is recorded", []
        )
    if claim.what == "id":
        wanted = _folded(claim.value)
        folded: dict[str, str] = index_of(trace).once("folded", dict)
        if any(wanted in _folded_once(text, folded) for text in texts):
            return ClaimVerdict(claim, "backed", "it was mentioned before", [])
        return ClaimVerdict(claim, "unsupported", f"nothing in the record says `{claim.value}`", [])
    words = {word for word in _words(claim.value) if len(word) >= _LONG_WORD}
    there = words & set().union(*(_words(text) for text in texts)) if texts else set()
    if not words or len(there) >= _QUOTED_SHARE * len(words):
        return ClaimVerdict(
            claim,
            "backed" if words <= there else "untold",
            "its words were found in the record",
            [],
        )
    return ClaimVerdict(claim, "unsupported", "nothing in the record says this", [])


def _failed_tools(trace: Trace, run: AgentRun) -> Iterator[ToolCall]:
    """Yield the last call of each tool of a run that changes something and failed every time.

    Yield none if any other call may have changed something, as it may have done the same.
    """
    calls = [step for step in run.steps if isinstance(step, ToolCall)]
    if any(call.dispatch for call in calls) or len(calls) > _MOST_CALLS:
        return
    if index_of(trace).made_by.get(run.id) or not known(trace, run, "steps"):
        return
    changing = [call for call in calls if not (_only_looks(call) or _commands(call) == _NOTHING)]
    if any(_worked(call) for call in changing):
        return
    yield from {call.name: call for call in changing}.values()


def _of_failed_tools(at: _At, answer: str, failed: list[ToolCall]) -> Iterator[ClaimVerdict]:
    """Find claims of an action in the words of a tool that failed every time.

    `cancel_flight` failed, and "Your flight QX3 has been cancelled." If the first word of the tool
    can also refer to text, its other words have to occur: `create_invoice`, "Invoice 7 was
    created".
    """
    if not failed or _INSTEAD.search(answer) or _speaks_for_another(at):
        return
    errors = [f"{call.error or ''} {_result(call)}" for call in failed]
    # "Your post was published on 3 May" is true if `publish_post` failed because the post exists.
    if any(_DONE_BEFORE.search(text) for text in errors):
        return
    heard = (*at.heard, *errors)
    if not reports_failure(answer):
        for sentence in done_by(answer, _SUCCESS):
            claim = Claim("success", sentence, by_me=False)
            why = f"its call of `{failed[-1].name}` failed"
            yield ClaimVerdict(claim, "contradicted", why, [failed[-1].id])
            return
    for call in failed:
        words = _name_words(call.name)
        for word in words:
            done = _participle(word)
            others = [each for each in words if each != word and len(each) > _SHORT_WORD]
            # "Cancelled" itself is a failure word.
            if reports_failure(done.sub("", answer)) or any(done.search(text) for text in heard):
                continue
            for sentence in done_by(answer, done):
                named = any(re.search(rf"\b{each}", sentence, re.IGNORECASE) for each in others)
                if named or not (word in _LOOSE or word in WEAK):
                    claim = Claim(f"call of {call.name}"[:80], sentence, by_me=False)
                    why = f"its call of `{call.name}` failed"
                    yield ClaimVerdict(claim, "contradicted", why, [call.id])
                    return


# An error after which the claim is still true: "already cancelled", "no changes". "Not found" is
# none.
_DONE_BEFORE = regex(
    r"\b(?:already|duplicate\w*|exists?|conflict|409|up to date|no changes?|nothing to|unchanged"
    r"|same)\b",
    re.IGNORECASE,
)
# Words of a tool's name with at most this many letters say nothing about it: the `to` of
# `send_to_customer` begins "tomorrow".
_SHORT_WORD = 2
_NOTHING: frozenset[str] = frozenset()
# "The deployment succeeded", "the payment went through", but not "the deployment started".
_SUCCESS = regex(
    r"(?<![\w-])(?:(?:build|compilation|import|export|deployment|migration|upload|installation"
    r"|backup|transfer|run|job|command|script|payment|update) (?:was )?"
    r"(?:succeeded|successful|went through)|completed successfully)(?![\w-])",
    re.IGNORECASE,
)
# First words of tools whose action an agent can also perform in its answer.
_LOOSE = frozenset(
    """
    change write edit make format draft plan prepare compose suggest propose select choose sort
    rename answer solve explain fill complete use try call note mark check confirm apply process
    handle resolve order schedule
    """.split()  # noqa: SIM905
)
# Words that show that an answer mentions the failure, or another way: "I sent a mail instead".
_INSTEAD = regex(r"\b(?:instead|alternatively|manually|so far|not|n['’]t|no|but)\b", re.I)


@lru_cache(maxsize=1024)
def _participle(word: str) -> re.Pattern[str]:
    """Return a pattern for the regular participle of a verb: `cancel`, "cancelled", "canceled"."""
    stem = word.removesuffix("e")
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return re.compile(rf"(?<![\w-]){re.escape(word[:-1])}ied(?![\w-])", re.IGNORECASE)
    return re.compile(
        rf"(?<![\w-]){re.escape(stem)}{re.escape(stem[-1:])}?ed(?![\w-])", re.IGNORECASE
    )


def _of_dead_agents(
    trace: Trace, turn: Turn, run: AgentRun, answer: str, renames: Mapping[str, str]
) -> Iterator[ClaimVerdict]:
    """Find agents that died although the answer reports their success."""
    made = index_of(trace).made_by.get(run.id, ())
    sent = [dispatch for dispatch in made if dispatch.kind == "delegate"]
    if not sent or reports_failure(answer):
        return
    times = Counter(dispatch.to_agent for dispatch in sent)
    for dispatch in sent:
        # Another attempt may have worked.
        if times[dispatch.to_agent] > 1 or not _names(answer, dispatch.to_agent):
            continue
        ended = completed(trace, turn, dispatch, renames)
        if not isinstance(ended, list):
            continue
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", answer):
            if _names(sentence, dispatch.to_agent) and _SUCCEEDED.search(sentence):
                claim = Claim("work of another agent", sentence.strip(), by_me=False)
                yield ClaimVerdict(claim, "contradicted", ended[0].says, [dispatch.id])
                break


def _names(sentence: str, agent: str) -> bool:
    # A shorter name can be part of a word: `ops` is in "stops".
    return len(name_key(agent)) > 3 and name_key(agent) in name_key(sentence)


# ---------------------------------------------------------------------------- what was done


def _scope(at: _At, claim: Claim) -> _Scope:
    """Return the calls that could support a claim.

    An agent that was started alone means its own calls and those of the agents below it by "I ran
    the tests". Any other agent can mean what others did in the conversation.
    """
    trace, turn, run = at.trace, at.turn, at.run
    if claim.by_me and _is_alone(trace, run):
        runs, whole = _below(trace, turn, run)
    else:
        turns = _turns_to(trace, turn)
        if not index_of(trace).spend(sum(len(one.runs) + len(one.dispatches) for one in turns)):
            raise TooMuchTextError
        runs = [each for one in turns for each in one.runs]
        whole = all(known(trace, one, "runs") and known(trace, one, "dispatches") for one in turns)
        whole = whole and all(
            d.runs or d.kind == "return" or _is_seen_through(trace, d)
            for one in turns
            for d in one.dispatches
        )
    whole = whole and all(known(trace, each, "steps.tool_call") for each in runs)
    if not index_of(trace).spend(sum(len(each.steps) for each in runs)):
        raise TooMuchTextError
    calls = [s for each in runs for s in each.steps if isinstance(s, ToolCall) and not s.dispatch]
    return _Scope(calls, whole)


def _is_alone(trace: Trace, run: AgentRun) -> bool:
    """Return whether a run was delegated to, and is not a later run of an agent that ran before."""
    by = [index_of(trace).dispatches.get(id_) for id_ in run.started_by]
    return (
        index_of(trace).runs_of[run.agent] == 1
        and bool(by)
        and all(d is not None and d.kind == "delegate" and d.continues is None for d in by)
    )


def _below(trace: Trace, turn: Turn, run: AgentRun) -> tuple[list[AgentRun], bool]:
    runs, whole, due, seen = [run], known(trace, run, "steps"), [run.id], {run.id}
    while due:
        made = index_of(trace).made_by.get(due.pop(), ())
        charge_work(_PER_RUN * (1 + len(made)))
        for dispatch in made:
            if dispatch.kind == "return":
                continue
            whole = whole and (bool(dispatch.runs) or _is_seen_through(trace, dispatch))
            for each in index_of(trace).chosen(set(dispatch.runs)):
                if each.id not in seen:
                    seen.add(each.id)
                    runs.append(each)
                    due.append(each.id)
    return runs, whole and known(trace, turn, "dispatches")


def _is_seen_through(trace: Trace, dispatch: Dispatch) -> bool:
    """Return whether a dispatch certainly started no agent."""
    return known(trace, dispatch, "runs") and dispatch.status in ("refused", "failed")


def _turns_to(trace: Trace, turn: Turn) -> list[Turn]:
    at = next(i for i, each in enumerate(trace.turns) if each.id == turn.id)
    return trace.turns[: at + 1]


def _calls(trace: Trace, turn: Turn) -> Iterator[ToolCall]:
    for one in _turns_to(trace, turn):
        for run in one.runs:
            yield from (step for step in run.steps if isinstance(step, ToolCall))


def _is_complete(trace: Trace, call: ToolCall) -> bool:
    return known(trace, call, "result") and not (call.result is not None and call.result.parts)


def _worked(call: ToolCall) -> bool:
    if call.status in ("failed", "refused", "unanswered"):
        return False
    return call.error is None and error_in(call.result) is None


def _result(call: ToolCall) -> str:
    return plain_text(call.result) if call.result is not None else call.error or ""


@lru_cache(maxsize=4096)
def _name_words(name: str) -> tuple[str, ...]:
    """Return the words of a tool's name: `send message` for `mcp__mail__sendMessage`."""
    last = re.split(r"__|[.:/]", name)[-1] or name
    return tuple(word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", last))


def _only_looks(call: ToolCall) -> bool:
    """Return whether a tool only reads, judging by its name."""
    words = _name_words(call.name)
    if not words or {"and", "or"} & set(words) or words[:2] == ("check", "out"):
        return False
    if words[0] not in _LOOKS and words[-1] not in _ONLY_LOOKS:
        return False
    return not (_CHANGING.search(_arguments(call)) and {"query", "sql"} & set(words))


def _may_do(call: ToolCall, what: str) -> bool:
    """Return whether a call may have done something, judging by tool name and arguments."""
    # Any tool can look something up, even one that fails: `grep` that finds nothing.
    if what == "looked up":
        return True
    words = _name_words(call.name)
    commands = _commands(call)
    if commands is not None:
        return what in commands
    if not words or not words[0].isascii():
        return True
    if _only_looks(call):
        return False
    if words[0] in _LOOKS and {"query", "sql"} & set(words):
        return True
    if BY_NAME[what].tools & set(words):
        return True
    # A tool named after another action is clear enough: `create_ticket` sends no mail, unless its
    # name also allows anything. Any other tool can do anything: `concierge`, `http_request`.
    return not (_SPECIFIC & set(words)) or bool((_ANYTHING - WEAK) & set(words))


def _is_for(call: ToolCall, what: str) -> bool:
    commands = _commands(call)
    if commands is not None:
        return what in commands
    words = set(_name_words(call.name))
    return bool(BY_NAME[what].tools & words) or bool(WEAK & words and not _SPECIFIC & words)


def _commands(call: ToolCall) -> frozenset[str] | None:
    """Return the possible actions of a command line, or ``None`` if missing or unclear."""
    if not {"bash", "shell", "terminal", "command", "cmd"} & set(_name_words(call.name)):
        return None
    text = _arguments(call)
    if not text or re.search(r"[>`$]|\|\s*(?:sh|bash|xargs|tee)\b", text):
        return None
    done: frozenset[str] = frozenset()
    for part in re.split(r"&&|\|\||[;|\n]", text):
        words = part.split()
        while words and (re.fullmatch(r"\w+=\S*", words[0]) or words[0] in ("uv", "run", "poetry")):
            words = words[1:]
        if not words:
            continue
        if words[0] == "git":
            verb = next((word for word in words[1:] if not word.startswith("-")), "")
            if verb in ("push", "merge"):
                done |= {"deployed", "changed a file", "made a record"}
            elif verb not in ("status", "log", "diff", "show"):
                done |= {"changed a file", "made a record"}
        elif words[0] in _COMMANDS:
            done |= _COMMANDS[words[0]]
        else:
            return None
    return done


def _arguments(call: ToolCall) -> str:
    value: Any = call.arguments
    if isinstance(value, dict):
        value = {name: each for name, each in value.items() if name != "description"}
    return plain_text(value)


def _runs_tests(call: ToolCall) -> bool:
    if "test" in _name_words(call.name) or "tests" in _name_words(call.name):
        return True
    return _may_do(call, "ran") and _TEST_RUN.search(_arguments(call)) is not None


# ------------------------------------------------------------------------- inputs of a run


def _heard(trace: Trace, turn: Turn, run: AgentRun) -> Iterator[str]:
    """Yield the inputs of a run: from users, agents and tools, and its instructions."""
    callers = _callers(trace, run)
    for one in _turns_to(trace, turn):
        if one.input is not None:
            yield plain_text(one.input)
        if one.id != turn.id and one.output is not None:
            yield plain_text(one.output)
        for dispatch in one.dispatches:
            own = run.id in dispatch.runs or callers & set(dispatch.runs)
            yield from _texts((dispatch.prompt, None if own else dispatch.result))
        for each in one.runs:
            # The run that started it repeats its answer afterwards.
            if each.id in callers:
                yield from _texts((each.input,))
            elif each.id != run.id:
                yield from _texts((each.input, each.output))
                yield from (plain_text(s.content) for s in each.steps if isinstance(s, Said))
            for step in each.steps:
                # The call of a dispatch can contain the dispatch's answer.
                if isinstance(step, ToolCall) and not step.dispatch and step.result is not None:
                    yield plain_text(step.result)
    yield from _texts((run.input,))
    yield from (ref.text for ref in run.context or () if ref.text)
    for card in trace.agents.values():
        yield from (text for text in (card.instructions, card.description) if text)


def _callers(trace: Trace, run: AgentRun) -> set[str]:
    """Return the ids of the runs that set this one to work, directly or not."""
    index = index_of(trace)
    callers: set[str] = set()
    due = list(run.started_by)
    while due:
        dispatch = index.dispatches.get(due.pop())
        sender = None if dispatch is None else index.runs.get(dispatch.from_run or "")
        if dispatch is not None and dispatch.kind == "delegate" and sender is not None:
            if sender.id not in callers:
                callers.add(sender.id)
                due += sender.started_by
    return callers


def _texts(contents: Iterable[Any]) -> Iterator[str]:
    return (plain_text(content) for content in contents if content is not None)


def _was_told(at: _At, what: str) -> bool:
    """Return whether another text may say that it is done, or that it happens automatically."""
    done = BY_NAME[what].done
    return any(done.search(text) for text in at.heard)


def _speaks_for_another(at: _At) -> bool:
    card = at.trace.agents.get(at.run.agent)
    texts = [*_texts((at.turn.input, at.run.input)), (card and card.instructions) or ""]
    return any(_PLAY.search(text) or _WRITES.search(text) for text in texts)


def _asks_for(at: _At, what: str) -> bool:
    """Return whether a run was asked to do this, so a passive sentence claims that it is done."""
    texts = list(_texts((at.run.input or at.turn.input,)))
    return any(
        BY_NAME[what].tools & {word.casefold() for word in re.findall(r"[A-Za-z]+", part)}
        for text in texts
        for part in re.split(r"(?<=[.!?])\s+|\n", text)
        if not part.endswith("?") or re.match(r"\W*(?:can|could|will|would) you\b", part, re.I)
    )


def _folded(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _folded_once(text: str, folded: dict[str, str]) -> str:
    """Fold a text of a trace once, since all runs search the same texts."""
    folded_text = folded.get(text)
    if folded_text is None:
        folded_text = folded[text] = _folded(text)
    return folded_text


def _words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"[^\W_]+", text)}
