"""Policies: a file that says what agents may do, and what happens when they do more.

    version: "2"
    on_error: closed
    rules:
      - max_depth: 8
      - max_dispatches: 150
        reason: "That is enough help for one request. Finish with what you have."
      - allowed_tools: [Read, Grep]
        for: to:research*
      - output: {all: [{secrets: [secrets, email]}]}
        action: redact

Each rule has one check. Without a rule about depth, the limit is 10.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from baton.formats.document import Document, read_bytes
from baton.formats.explain_mistakes import Path as Steps
from baton.formats.patterns import BadPatternError, Pattern, compiled
from baton.model import InputError, Problem, suggestion
from baton.model.filter import NUMBER, TEXT, Field, Fields, Filter, filter_of
from baton.model.redact import Redaction, kinds_named, redaction_of

Moment = Literal["dispatch", "tool", "output"]
Action = Literal["block", "ask", "redact", "warn", "observe"]
"""What happens when a rule is broken. ``observe`` lets everything pass, and reports what would
not.
"""
DEEPEST = 25
"""The greatest depth that a policy may allow. Each level shortens the task; after 25 levels nothing
useful is left of it.
"""
USUAL_DEPTH = 10
"""The depth without a rule for it: far more than agents that share work need, and it stops those
that hand on the same work for ever. A program that needs more states its own."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,60}\Z")
PLACES: Fields = {
    "from": TEXT,
    "to": TEXT,
    "tool": TEXT,
    "depth": NUMBER,
    "on": Field("text", ("dispatch", "tool", "output")),
}
"""Fields that may limit a rule: the two ends of a dispatch, its depth, a tool, and the moment."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Texts = Annotated[list[str], msgspec.Meta(min_length=1)]
Found = Literal[
    "dispatch_completed",
    "context_carried",
    "claims_supported",
    "announced_dispatch",
    "result_contradicted",
    "result_used",
]
"""Findings that work while an agent runs: from a request, a prompt, an answer, and what the
answering agent did before.
"""
OF_WORK = ("claims_supported", "announced_dispatch", "result_contradicted", "result_used")
"""Findings that need the agent's steps."""


class _Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Check(_Strict, dict=True):
    """What to look for in an answer; exactly one field.

    ``pattern``, ``secrets`` (kinds, as in ``redact:`` of a config) and ``finding`` hit when they
    are found; ``lacks`` (a pattern) and ``json_schema`` when the answer does not match. ``rubric``
    (a name, or a file beside the policy) asks the policy's ``judge``, ``function`` calls a function
    registered by :func:`baton.guard.output_check`.
    """

    pattern: str | None = None
    lacks: str | None = None
    secrets: Texts | None = None
    json_schema: dict[str, Any] | None = None
    finding: Found | None = None
    rubric: str | None = None
    function: str | None = None

    @cached_property
    def judge(self) -> str | dict[str, Any] | None:
        """The judge, set by the policy."""
        return None

    @cached_property
    def folder(self) -> str:
        """The folder that the file of a rubric is in."""
        return "."

    @property
    def kind(self) -> str:
        """The name of the field that is set."""
        return next(name for name in self.__struct_fields__ if getattr(self, name) is not None)

    @cached_property
    def compiled(self) -> Pattern:
        """The pattern; searching in it ends in limited time."""
        return compiled(self.pattern or self.lacks or "")

    @cached_property
    def fits(self) -> Callable[[Any], str | None]:
        """The validator of the schema."""
        from baton.evaluators.matching.texts import schema_check  # imports jsonschema

        return schema_check(self.json_schema or {}, "json_schema")

    @cached_property
    def redaction(self) -> Redaction:
        """What to replace in an answer."""
        if self.secrets is not None:
            return Redaction(kinds=kinds_named(self.secrets, "secrets"))
        own = redaction_of({"patterns": {"pattern": self.pattern or ""}})
        return msgspec.structs.replace(own, kinds=())


class Output(_Strict):
    """Checks of an answer: a rule is broken when one of ``any`` hits, or when ``all`` hit."""

    any: Annotated[list[Check], msgspec.Meta(min_length=1)] | None = None
    all: Annotated[list[Check], msgspec.Meta(min_length=1)] | None = None

    @property
    def checks(self) -> list[Check]:
        """All of them."""
        return [*(self.any or ()), *(self.all or ())]


class Rule(_Strict, dict=True):
    """One check, the action when it is broken, and the dispatches and tools that it applies to.

    Limits apply to the tree of one user request. ``max_depth`` is the depth of a dispatch, 1 if the
    first agent makes it; ``max_dispatches`` counts those of the tree, ``max_per_parent`` those of
    one run, ``max_fan_out`` those of one run without an answer yet. ``max_tokens``,
    ``max_cost_usd`` and ``max_seconds`` allow nothing new once they are reached. ``max_same_task``
    is how often one agent may give another the same task. ``allowed_edges`` lists the receivers of
    each sender, ``allowed_tools`` lists tools like permissions (``Bash(git:*)``).
    ``required_context`` is ``ids``, or patterns: text of the request that matches has to be in the
    prompt. ``output`` is checked before the caller reads it. ``reason`` is the message to the
    caller; ``for`` is a filter like ``from:desk to:lab* depth:>=2``.
    """

    name: str = ""
    action: Action = "block"
    reason: str | None = None
    for_: str | dict[str, Any] | None = msgspec.field(default=None, name="for")
    max_depth: Annotated[int, msgspec.Meta(ge=0, le=DEEPEST)] | None = None
    max_dispatches: Count | None = None
    max_per_parent: Count | None = None
    max_fan_out: Count | None = None
    max_tokens: Count | None = None
    max_cost_usd: Amount | None = None
    max_seconds: Amount | None = None
    max_same_task: Count | None = None
    allowed_edges: dict[str, list[str]] | None = None
    allowed_tools: list[str] | None = None
    required_context: Literal["ids"] | Texts | None = None
    output: Output | None = None

    @property
    def kind(self) -> str:
        """The name of its check."""
        return next(name for name in CHECKS if getattr(self, name) is not None)

    @cached_property
    def places(self) -> Filter:
        """The moments that it applies to."""
        return filter_of(self.for_, PLACES)

    @cached_property
    def patterns(self) -> list[Pattern]:
        """The patterns of ``required_context``."""
        required = self.required_context
        return [compiled(each) for each in required] if isinstance(required, list) else []


CHECKS = tuple(Rule.__struct_fields__[4:])
"""The possible checks of a rule."""
_OF_SPENDING = ("max_tokens", "max_cost_usd", "max_seconds")
MOMENTS: dict[str, tuple[Moment, ...]] = {
    **dict.fromkeys(CHECKS, ("dispatch",)),
    **dict.fromkeys(_OF_SPENDING, ("dispatch", "tool")),
    "allowed_tools": ("tool",),
    "output": ("output",),
}
"""When each check is made."""


class Policy(_Strict):
    """Rules, and what happens when a rule cannot be decided.

    ``on_error`` is ``closed`` (what could not be decided does not pass) or ``open``. ``version`` is
    your own name for this state of the policy; decisions contain it. ``judge`` applies rubrics: a
    model, or a mapping as in a config.
    """

    version: str = ""
    on_error: Literal["closed", "open"] = "closed"
    judge: str | dict[str, Any] | None = None
    rules: list[Rule] = msgspec.field(default_factory=list)


def load_policy(file: Path | str) -> Policy:
    """Read a policy.

    Raises:
        InputError: every problem, with its line and a similar name.
    """
    text = str(file)
    return read_policy(Document(text, read_bytes(Path(file)), "yaml"))


def read_policy(document: Document) -> Policy:
    """Read the policy that a document holds; see :func:`load_policy`."""
    value = document.value()
    if not isinstance(value, dict):
        raise InputError(document.problem("a policy is a mapping with `rules:`"))
    policy = document.convert(value, Policy)
    folder = str(Path(document.file).parent)
    for each in (check for rule in policy.rules if rule.output for check in rule.output.checks):
        each.judge, each.folder = policy.judge, folder
    problems: list[Problem] = []
    named: set[str] = set()
    kinds: Counter[str] = Counter()
    for place, rule in enumerate(policy.rules):
        at: Steps = ("rules", place)
        stated = [name for name in CHECKS if getattr(rule, name) is not None]
        if len(stated) != 1:
            message = f"has {', '.join(stated)}" if stated else "has no check"
            hint = "a rule has one check; write several rules" if stated else suggestion("", CHECKS)
            problems.append(document.problem_at(at, f"{message}: {hint}"))
            continue
        problems += [document.problem_at((*at, *p), why) for p, why in _faults(rule)]
        if not rule.name:
            alike = kinds[rule.kind]
            rule.name = f"{rule.kind}_{alike + 1}" if alike else rule.kind
        elif _NAME.match(rule.name) is None:
            message = f"`{rule.name[:60]}` may only contain a-z, 0-9, `-` and `_`"
            problems.append(document.problem_at((*at, "name"), message))
        kinds[rule.kind] += 1
        if rule.name in named:
            message = f"there are two rules `{rule.name}`: give each its own `name`"
            problems.append(document.problem_at(at, message))
        named.add(rule.name)
    if problems:
        raise InputError(problems)
    return with_usual_depth(policy)


def with_usual_depth(policy: Policy) -> Policy:
    """Add the default limit of depth before the rules, unless one of them applies to all depths."""
    if any(rule.max_depth is not None and not rule.places for rule in policy.rules):
        return policy
    named = {rule.name for rule in policy.rules}
    name = "max_depth" if "max_depth" not in named else "usual_max_depth"
    usual = Rule(name=name, max_depth=USUAL_DEPTH)
    return msgspec.structs.replace(policy, rules=[usual, *policy.rules])


def named_agents(policy: Policy) -> set[str]:
    """Return the agents that a policy names as senders and receivers of work."""
    edges = [rule.allowed_edges or {} for rule in policy.rules]
    named = {name for each in edges for to in each.items() for name in (to[0], *to[1])}
    return {name for name in named if not set(name) & set("*?[")}


def _never(rule: Rule) -> Iterator[str]:
    """Say why a rule would never apply, such as `max_depth` for `tool:search`."""
    moments = MOMENTS[rule.kind]
    about = " or ".join({"tool": "call of a tool", "output": "answer"}.get(m, m) for m in moments)
    for term in rule.places.terms:
        if term.field == "on" and not any(map(term.meets, moments)):
            yield f"`{rule.kind}` is decided for each {about}, which `on:` leaves out"
        if term.field == "tool" and term.any_of and "tool" not in moments:
            yield f"`{rule.kind}` is decided for each {about}, which has no `tool:`"


def validated(policy: Policy) -> Policy:
    """Check a policy that a program made, and return it.

    Raises:
        InputError: lists every rule that is not valid.
    """
    problems: list[Problem] = []
    for each in (check for rule in policy.rules if rule.output for check in rule.output.checks):
        each.judge = each.judge or policy.judge
    for rule in policy.rules:
        stated = [name for name in CHECKS if getattr(rule, name) is not None]
        if len(stated) != 1:
            problems.append(Problem(message=f"the rule `{rule.name}` has {len(stated)} checks"))
            continue
        problems += [Problem(message=f"the rule `{rule.name}`: {why}") for _, why in _faults(rule)]
    if problems:
        raise InputError(problems)
    return policy


def _faults(rule: Rule) -> list[tuple[Steps, str]]:
    """Return the problems of a rule, with their paths."""
    faults: list[tuple[Steps, str]] = []

    def check(at: Steps, make: Callable[[], object]) -> None:
        try:
            make()
        except BadPatternError as error:
            faults.append((at, str(error)))
        except InputError as error:
            faults.extend((at, each.message) for each in error.problems)

    check(("for",), lambda: rule.places)
    if not faults:
        faults += ((("for",), why) for why in _never(rule))
    check(("required_context",), lambda: rule.patterns)
    if rule.output is None:
        if rule.action == "redact":
            message = f"`{rule.kind}` is decided before there is an answer to `redact`: write "
            faults.append((("action",), f"{message}`block`, `ask`, `warn` or `observe`"))
        return faults
    if not rule.output.checks:
        faults.append((("output",), "has no checks: list them under `any` or `all`"))
    for part in ("any", "all"):
        for place, each in enumerate(getattr(rule.output, part) or ()):
            at: Steps = ("output", part, place)
            stated = [name for name in each.__struct_fields__ if getattr(each, name) is not None]
            if len(stated) != 1:
                names = ", ".join(each.__struct_fields__)
                faults.append((at, f"a check has exactly one of {names}"))
                continue
            kind = stated[0]
            replaces = rule.action == "redact" or kind == "secrets"
            if rule.action == "redact" and kind not in ("pattern", "secrets"):
                message = f"`{kind}` finds no text that could be replaced: write `block`"
                faults.append(((*at, kind), message))
            elif kind == "rubric" and each.judge is None:
                message = "a rubric needs a model: name one as `judge:` of the policy"
                faults.append(((*at, kind), message))
            elif kind == "json_schema":
                check((*at, kind), lambda each=each: each.fits)  # type: ignore[misc]
            elif replaces:
                check((*at, kind), lambda each=each: each.redaction)  # type: ignore[misc]
            elif kind in ("pattern", "lacks"):
                check((*at, kind), lambda each=each: each.compiled)  # type: ignore[misc]
    return faults
