"""The base of evaluators: options as fields, and checks before scoring.

An evaluator is a frozen struct whose fields are its options. Its class declares the rest as data:
its name, its purpose, its names in other tools, what a case has to state, and what has to be
recorded. The checks that follow from these declarations are made here, in one place.
"""

from __future__ import annotations

import builtins
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
)

import msgspec

from baton.findings.finding import Answer, Clear, NotRecorded
from baton.formats.explain_mistakes import explain, path_text
from baton.formats.patterns import BadPatternError
from baton.model import (
    AgentRun,
    Case,
    Content,
    Dispatch,
    EvalContext,
    Evidence,
    ExpectedTurn,
    InputError,
    Problem,
    Score,
    Status,
    Trace,
    Turn,
    Unit,
    counted,
    known,
)
from baton.model.score import passes
from baton.model.views import broken
from baton.plugins import FROM_CASES, Alias, Origin, refused_options


def describe(text: str) -> msgspec.Meta:
    """Describe an option for editors, the JSON Schema, `baton list` and the reference."""
    return msgspec.Meta(description=text)


@cache
def options_of(evaluator: type[BaseEvaluator]) -> type[msgspec.Struct]:
    """Return an evaluator's options as a struct: all its fields except the name."""
    fields: list[tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(evaluator):
        if field.default_factory is not msgspec.NODEFAULT:
            default: Any = msgspec.field(default_factory=field.default_factory)
        elif field.default is not msgspec.NODEFAULT:
            default = msgspec.field(default=field.default)
        else:
            default = msgspec.field()
        if field.name != "name":
            fields.append((field.name, field.type, default))
    return msgspec.defstruct(
        f"{evaluator.__name__}Options",
        fields,
        namespace={"__doc__": f"Options of `{evaluator.type}`."},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


class _Construction(msgspec.StructMeta, ABCMeta):
    """Creates evaluators from keywords, and reports all problems in one error."""

    @property
    def options_type(cls) -> type[msgspec.Struct]:
        """The options as a struct."""
        return options_of(cls)

    if not TYPE_CHECKING:  # type checkers take the signature from the fields

        def __call__(cls, *values: object, name: str | None = None, **options: Any) -> Any:
            if values:
                raise TypeError(f"{cls.__name__} takes its options by name, not by position")
            if cls.__abstractmethods__:
                lacking = ", ".join(sorted(cls.__abstractmethods__))
                raise TypeError(f"{cls.__name__} is abstract: it lacks {lacking}")
            return cls.from_options(name, options, ())


class EvaluatorTraits(ABC):
    """Attributes of evaluators beyond :class:`baton.model.Evaluator`, with defaults.

    Baton's own evaluators inherit from it and override what differs. User-defined evaluators need
    not: :func:`baton.evaluators.user_defined.traits_of` returns the traits of any evaluator.
    """

    __slots__ = ()

    @property
    def needs_judge(self) -> bool:
        """Whether it asks the judge of the context."""
        return False

    @property
    def runs_user_code(self) -> bool:
        """Whether it calls code of the user's, which may keep something from case to case."""
        return False

    @property
    def judge_options(self) -> Sequence[Mapping[str, Any]]:
        """The evaluator's own judge settings, one mapping for each model it calls."""
        return ()

    @property
    def checks(self) -> frozenset[str] | None:
        """The parts of a case that it checks (``response``), or ``None`` if unknown."""
        return None

    @property
    def rubric_hash(self) -> str | None:
        """The hash of the rubric it gives to a judge, for provenance."""
        return None

    @property
    def lower_is_better(self) -> bool:
        """Whether a low value passes."""
        return False

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest possible value, or ``None`` if unknown."""
        return None

    @property
    def lacks(self) -> str | None:
        """What is missing to score recorded runs, or ``None`` if nothing is."""
        return None

    @abstractmethod
    def refused_options(self, options: Mapping[str, Any], origin: Origin) -> list[str]:
        """Return the options that data may not set, as paths of our names (`judge.base_url`)."""


class Details(msgspec.Struct, kw_only=True):
    """What a score states in addition to its verdict and the options.

    :attr:`Score.details` is a mapping. It omits fields that are ``UNSET``.
    """

    def mapping(self) -> dict[str, Any]:
        """Return the fields by name, including those of nested parts."""
        mapping: dict[str, Any] = {}
        names, values_of = _fields_of(self.__class__)
        for name, value in zip(names, values_of(self), strict=True):
            kind = type(value)
            if kind is list and value:
                kind = type(value[0])
            if kind in _PLAIN:  # most are
                mapping[name] = value
            elif value.__class__ is list:
                if issubclass(kind, Details):
                    mapping[name] = [each.mapping() for each in value]
                elif issubclass(kind, msgspec.Struct):
                    mapping[name] = msgspec.to_builtins(value)
                else:
                    mapping[name] = value
            elif value is not msgspec.UNSET:
                mapping[name] = value.mapping() if isinstance(value, Details) else value
        return mapping


_PLAIN = frozenset({bool, int, float, str, NoneType, list, dict})


@cache
def _fields_of(
    details: type[Details],
) -> tuple[tuple[str, ...], Callable[[Details], tuple[Any, ...]]]:
    """Return the output names of a details class's fields, and a function to read their values."""
    return details.__struct_encode_fields__, _reader_of(details.__struct_fields__)


def _reader_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads several attributes at once, always as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda made: tuple(getattr(made, name) for name in names)


class BaseEvaluator(
    EvaluatorTraits,
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    metaclass=_Construction,
):
    """A frozen evaluator: a name and checked options, nothing else.

    Create it with keywords, as in ``AgentChain(sequence_match_type="exact")``.

    Raises:
        InputError: for each wrong option, with the option that was probably meant.
    """

    type: ClassVar[str]
    version: ClassVar[str] = "1"
    unit: ClassVar[Unit] = "trace"
    summary: ClassVar[str]
    aliases: ClassVar[tuple[Alias, ...]] = ()
    checks: ClassVar[frozenset[str]] = frozenset()
    runs_code: ClassVar[bool] = False
    takes_rubrics: ClassVar[bool] = False
    details: ClassVar[builtins.type[Details] | None] = None
    states_options: ClassVar[bool] = True

    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            msgspec.structs.force_setattr(self, "name", self.type)
        self.check()

    @classmethod
    def from_options(
        cls, name: str | None, options: Mapping[str, Any], path: Sequence[str] = ("config",)
    ) -> Self:
        """Create an evaluator from plain-data options found at ``path``. Raises InputError."""
        values = cls.respelled(options)
        if "name" not in values:
            try:
                return msgspec.convert({**values, "name": name or cls.type}, cls)
            except InputError as error:
                problems = [
                    msgspec.structs.replace(each, path=".".join(filter(None, (*path, each.path))))
                    for each in error.problems
                ]
                raise InputError(problems) from None
            except msgspec.ValidationError:
                pass
        faults = explain(values, options_of(cls), tuple(path))
        if not faults:  # each option is valid, but they contradict each other
            faults = explain({**values, "name": cls.type}, cls, tuple(path))
        raise InputError(Problem(path=path_text(f.path), message=f.message) for f in faults)

    @classmethod
    def respelled(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options with alternative spellings replaced by the declared ones."""
        return dict(options)

    def check(self) -> None:
        """Check options against one another.

        Raises:
            ValueError: the options contradict each other.
            InputError: an option is an invalid pattern or schema, or needs a missing library.
        """

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a copy with some options replaced. Raises InputError for a wrong option."""
        if not override:
            return self
        return self.from_options(self.name, {**self._given(), **override})

    @property
    def options_type(self) -> builtins.type[msgspec.Struct]:
        """The options as a struct."""
        return options_of(self.__class__)

    def refused_options(self, options: Mapping[str, Any], origin: Origin) -> list[str]:
        """Return the options that data may not set, as marked by the field types."""
        return refused_options(self.options_type, options, origin)

    @property
    def threshold(self) -> float:
        """The lowest value that passes."""
        return 1.0

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest possible value: 0 and 1 for Baton's own evaluators."""
        is_own = self.__class__.__module__.startswith(f"{__package__}.")
        return (0.0, 1.0) if is_own and not self.runs_user_code else None

    @abstractmethod
    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Score one trace."""

    def scored(
        self,
        value: float,
        reason: str,
        details: Details | None = None,
        evidence: Sequence[Evidence] = (),
    ) -> Score:
        """Return a verdict: passed at or above the threshold (to within 1e-9), else failed.

        The details are the options (unless ``states_options`` is false) and those given.
        """
        return Score(
            evaluator=self.name,
            type=self.type,
            version=self.version,
            unit=self.unit,
            status="passed" if passes(value, self.threshold) else "failed",
            value=value,
            threshold=self.threshold,
            reason=reason,
            details={
                **(self.option_details() if self.states_options else {}),
                **(details.mapping() if details is not None else {}),
            },
            evidence=list(evidence),
        )

    def unscored(self, status: Status, reason: str, details: Details | None = None) -> Score:
        """Return why there is no verdict: ``skipped`` or ``error``."""
        return Score(
            evaluator=self.name,
            type=self.type,
            version=self.version,
            unit=self.unit,
            status=status,
            threshold=self.threshold,
            reason=reason,
            details={
                **self.option_details(),
                **(details.mapping() if details is not None else {}),
            },
        )

    def option_details(self) -> dict[str, Any]:
        """Return the options as plain data, as results state them. Options left out are omitted."""
        names, values_of = _options_of(self.__class__)
        pairs = zip(names, values_of(self), strict=True)
        return {name: value for name, value in pairs if value is not None}

    def _given(self) -> dict[str, Any]:
        names, values_of = _options_of(self.__class__)
        return dict(zip(names, values_of(self), strict=True))


@cache
def _options_of(
    evaluator: type[BaseEvaluator],
) -> tuple[list[str], Callable[[BaseEvaluator], tuple[Any, ...]]]:
    """Return the names of an evaluator's options, and a function to read their values."""
    names = [name for name in evaluator.__struct_fields__ if name != "name"]
    return names, _reader_of(names)


class Pair(msgspec.Struct, frozen=True):
    """An expected turn and the played one; ``number`` counts from 1."""

    number: int
    expected: ExpectedTurn
    turn: Turn


class Unscored(msgspec.Struct, frozen=True):
    """The reason why a case cannot be scored."""

    status: Status
    reason: str


class Unknown(str):
    """Unknown data that decides a turn's verdict, and what would supply it."""

    __slots__ = ()


NO_DEFINITION = "whether `{}` is a tool or an agent is not recorded: give definitions of the agents"
"""Why a verdict about a call is unknown."""


def misspelt_fix(expected: str, actual: str) -> str:
    """Say how to fix a dispatch whose receiver has nearly the expected name."""
    return f"`{expected}` is expected and `{actual}` ran; is one of them misspelt?"


def wrong_target_fix(sender: str, actual: str, expected: str) -> str:
    """Say how to fix a dispatch to the wrong agent; the same words from every evaluator.

    Reports print the same advice once for a case.
    """
    return (
        f"`{sender}` handed to `{actual}`, not to `{expected}`: look at its instructions and at "
        "the descriptions of both"
    )


Compared = TypeVar("Compared")
Which = Literal["stated", "last", "stated and last", "every"]
"""Which turns are compared: those that state something, the last one played, or all."""


class TurnEvaluator(BaseEvaluator, Generic[Compared], frozen=True, kw_only=True):
    """Compares the turns that state something with those that were played.

    ``states`` names fields of an expected turn, at least one of which has to be stated.
    ``stated_as`` is what messages call them. ``needs`` are the fields of a played turn that have
    to be recorded. With ``compares_broken``, the recorded part of a broken turn is compared.
    """

    states: ClassVar[tuple[str, ...]]
    stated_as: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    compares_broken: ClassVar[bool] = False

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Score the turns that state something.

        The score is ``error`` if a planned turn was not played, a turn to compare broke, or the
        case states an invalid pattern. It is ``skipped`` if nothing is stated, or if the deciding
        data was not recorded.
        """
        pairs = self.turns(trace, case)
        if isinstance(pairs, Unscored):
            return [self.unscored(pairs.status, pairs.reason)]
        if "output" in self.needs:
            silent = [str(p.number) for p in pairs if not known(trace, p.turn, "output")]
            if silent:
                supply = "the answer was not recorded; record the final response"
                return [self.unscored("skipped", f"turn {', '.join(silent)}: {supply}")]
        compared: list[Compared] = []
        for pair in pairs:
            try:
                result = self.compare(trace, pair, context)
            except BadPatternError as error:
                return [self.unscored("error", f"turn {pair.number}: {error}")]
            except InputError as error:
                return [self.unscored("error", str(error))]
            if isinstance(result, Unknown):
                return [self.unscored("skipped", f"turn {pair.number}: {result}")]
            compared.append(result)
        return self.verdict(compared)

    def stating(self, turn: ExpectedTurn) -> bool:
        """Return whether a turn states what is compared."""
        for field in self.states:  # noqa: SIM110 - runs per turn; a generator takes twice as long
            if getattr(turn, field) is not None:
                return True
        return False

    def which(self, case: Case | None) -> Which:  # noqa: ARG002 - most look at none
        """Return which turns are compared. Options can select more than those that state it."""
        return "stated"

    def turns(self, trace: Trace, case: Case | None) -> list[Pair] | Unscored:
        """Return the turns to compare, or the reason why there are none."""
        which = self.which(case)
        if which == "every":
            return every_turn(trace, case)
        stated: list[Pair] | Unscored = []
        if which != "last":
            stated = stated_turns(
                trace, case, self.stating, self.stated_as, broken_too=self.compares_broken
            )
            if which == "stated" or (isinstance(stated, Unscored) and stated.status == "error"):
                return stated
        last = last_turn(trace, case)
        if isinstance(last, Unscored):
            return last
        pairs = [] if isinstance(stated, Unscored) else stated
        return pairs if any(pair.number == last.number for pair in pairs) else [*pairs, last]

    @abstractmethod
    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> Compared | Unknown:
        """Compare one turn."""

    @abstractmethod
    def verdict(self, turns: Sequence[Compared]) -> list[Score]:
        """Score the turns that were compared."""


def stated_turns(
    trace: Trace,
    case: Case | None,
    states: Callable[[ExpectedTurn], bool],
    what: str,
    *,
    broken_too: bool = False,
) -> list[Pair] | Unscored:
    """Pair the turns that state something with the played ones, or return why that fails.

    ``states`` decides whether a turn states it, and ``what`` names it (``tool calls``). The
    result is ``error`` if a planned turn was not played, or if a turn that states something broke
    (unless ``broken_too``). It is ``skipped`` if no turn states anything.
    """
    if case is None:
        return Unscored("skipped", "no expectation: the trace is scored without a case")
    if case.scenario is not None:
        return Unscored("skipped", "no expectation: the case needs a simulated user")
    stating = [(i, expected) for i, expected in enumerate(case.turns) if states(expected)]
    if not stating:
        return Unscored("skipped", f"no expectation: no turn of the case states {what}")
    missing = not_played(trace, case)
    if missing is not None:
        return Unscored("error", missing)
    pairs = [Pair(index + 1, expected, trace.turns[index]) for index, expected in stating]
    for pair in pairs:
        trouble = broken(pair.turn)
        if trouble is not None and not broken_too:
            return Unscored("error", f"turn {pair.number} {trouble}")
    return pairs


def every_turn(trace: Trace, case: Case | None) -> list[Pair] | Unscored:
    """Pair all turns, whatever they state. For a scenario or without a case, only those played."""
    if case is None or case.scenario is not None:
        played = [ExpectedTurn(input=Content()) for _ in trace.turns]
        case = Case(id=trace.id, turns=played)
    if not case.turns:
        return Unscored("skipped", "the trace has no turns")
    return stated_turns(trace, case, lambda _: True, "anything")


def last_turn(trace: Trace, case: Case | None) -> Pair | Unscored:
    """Return the last turn that was played, or the reason why its answer can't be judged."""
    trouble = not_played(trace, case) if case is not None else None
    if trouble is None and not trace.turns:
        trouble = "no turn was played"
    if trouble is not None:
        return Unscored("error", trouble)
    number, turn = len(trace.turns), trace.turns[-1]
    how = broken(turn)
    if how is not None:
        return Unscored("error", f"turn {number} {how}")
    return Pair(number, ExpectedTurn(input=Content()), turn)


def not_played_or_broken(trace: Trace, case: Case | None) -> str | None:
    """Return which turn was not played or broke, or ``None`` if every turn finished."""
    missing = not_played(trace, case) if case is not None else None
    if missing is not None:
        return missing
    for number, turn in enumerate(trace.turns, 1):
        if (how := broken(turn)) is not None:
            return f"turn {number} {how}"
    return None


def unfinished(trace: Trace, case: Case | None) -> Unscored | None:
    """Return why counts may be incomplete: turns that were not played or did not end."""
    trouble = not_played_or_broken(trace, None if case and case.scenario is not None else case)
    if trouble is not None:
        return Unscored("error", trouble)
    for number, turn in enumerate(trace.turns, 1):
        if turn.status == "incomplete":
            return Unscored("skipped", f"turn {number} is incomplete: record it to its end")
    return None


def not_played(trace: Trace, case: Case) -> str | None:
    """Return how many of the planned turns were played, if some were not.

    A recording of one session contains only the turns of that session.
    """
    played = len(trace.turns)
    if played >= len(case.turns):
        return None
    message = f"{played} of {len(case.turns)} planned turns were played"
    if played and case.turns[played].new_session:
        message += f"; turn {played + 1} opens a new session, which is not in this trace"
    return message


def nothing_to_judge(trace: Trace, what: str) -> Unscored:
    """State that a trace has no ``what``. It is an error if a broken turn may be the reason."""
    trouble = next((how for turn in trace.turns if (how := broken(turn)) is not None), None)
    if trouble is not None:
        return Unscored("error", f"{what}: a turn {trouble}")
    return Unscored("skipped", f"{what} to judge")


class WholeTrace(msgspec.Struct, frozen=True):
    """What a :class:`TraceEvaluator` scores. ``doubt`` is why the trace may be incomplete."""

    trace: Trace
    case: Case | None
    context: EvalContext
    doubt: Unscored | None


class TraceEvaluator(BaseEvaluator, frozen=True, kw_only=True):
    """Gives one score for a trace as a whole.

    Doubt about a trace gives ``error`` if a turn failed or was not played, and ``skipped`` if a
    turn is incomplete. ``takes`` selects the unfinished turns whose recorded part is scored: none,
    incomplete ones, or also broken ones. With ``doubt_decides``, a trace in doubt is not scored,
    because nothing in it could decide.
    """

    takes: ClassVar[Literal["whole", "incomplete", "broken"]] = "whole"
    doubt_decides: ClassVar[bool] = False

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Return one score for the trace; see :meth:`score`."""
        doubt: Unscored | None
        if self.takes == "whole":
            doubt = unfinished(trace, case)
        else:
            if self.takes == "incomplete":
                trouble = not_played_or_broken(trace, case)
            else:
                trouble = not_played(trace, case) if case is not None else None
            doubt = Unscored("error", trouble) if trouble is not None else None
        if doubt is not None and self.doubt_decides:
            return [self.unscored(doubt.status, doubt.reason)]
        result = self.score(WholeTrace(trace, case, context, doubt))
        if isinstance(result, Unscored):
            result = self.unscored(result.status, result.reason)
        return [result]

    @abstractmethod
    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Score a trace, even one in doubt if the known part decides; or return why not."""


class FindingDetails(Details, kw_only=True):
    """Details of a score that rests on findings."""

    findings: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    """Each has ``kind``, ``says``, ``warning`` (not a fault) and the fields of its kind."""
    clear: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET

    def mapping(self) -> dict[str, Any]:
        """Return the fields by name: the subject, the findings, and the fields of ``clear``."""
        mapping = super().mapping()
        findings, clear = mapping.pop("findings", None), mapping.pop("clear", {})
        return {**mapping, **({} if findings is None else {"findings": findings}), **clear}


class DispatchDetails(FindingDetails, kw_only=True):
    """Details of a judged dispatch."""

    from_: str | None = msgspec.field(name="from")
    to: str
    kind: str


_BY_ORDER = (
    "no dispatch to judge except {} known only from the order of runs: record the inputs of "
    "models, or set `order: true`; for events of ADK, definitions of the workflow with its "
    "`sub_agents` (`agents`) also help"
)


class DispatchEvaluator(BaseEvaluator, frozen=True, kw_only=True):
    """Gives one score for each dispatch in question."""

    unit: ClassVar[Unit] = "dispatch"
    details: ClassVar[builtins.type[Details] | None] = DispatchDetails
    states_options: ClassVar[bool] = False

    order: Annotated[
        bool, describe("Whether to also judge dispatches known only from the order of runs.")
    ] = False
    agents: Annotated[
        list[str] | None, FROM_CASES, describe("Judge only dispatches to these agents.")
    ] = None

    def evaluate(
        self,
        trace: Trace,
        case: Case | None,  # noqa: ARG002 - the case's expectations are not used here
        context: EvalContext,
    ) -> list[Score]:
        """Judge every dispatch except returns. Gives one ``skipped`` score if there is none.

        In a turn that broke, the recorded part of a dispatch is judged.
        """
        scores: list[Score] = []
        by_order = 0
        for turn in trace.turns:
            for dispatch in turn.dispatches:
                names = (dispatch.to_agent, context.agent_names.get(dispatch.to_agent))
                wanted = self.agents
                meant = wanted is None or any(name in wanted for name in names)
                sure = self.order or dispatch.basis != "order"
                is_wanted = context.only is None or dispatch.id in context.only
                if dispatch.kind == "return" or not meant or not is_wanted:
                    continue
                if not sure:
                    by_order += 1
                    continue
                answer = self.answer(trace, turn, dispatch, context)
                if isinstance(answer, NotRecorded):
                    score = self.unscored("skipped", answer.says)
                elif isinstance(answer, Clear):
                    details = _about(dispatch, clear=dict(answer.details))
                    score = self.scored(answer.share, answer.says, details)
                else:
                    faults = [finding for finding in answer if not finding.warning]
                    worst = min(faults or answer, key=lambda finding: finding.share)
                    more = f"; {len(answer) - 1} more" if len(answer) > 1 else ""
                    rows = [
                        {"kind": f.kind, "says": f.says, "warning": f.warning, **f.details}
                        for f in answer
                    ]
                    evidence: list[Evidence] = [e for finding in answer for e in finding.evidence]
                    details = _about(dispatch, findings=rows)
                    value = worst.share if faults else 1.0
                    score = self.scored(value, f"{worst.says}{more}", details, evidence)
                score.subject = [dispatch.id]
                scores.append(score)
        if scores:
            return scores
        nothing = nothing_to_judge(trace, "no dispatch")
        if by_order and nothing.status == "skipped":
            return [self.unscored("skipped", _BY_ORDER.format(counted(by_order, "dispatch")))]
        return [self.unscored(nothing.status, nothing.reason)]

    @abstractmethod
    def answer(self, trace: Trace, turn: Turn, dispatch: Dispatch, context: EvalContext) -> Answer:
        """Answer this evaluator's question about one dispatch."""


def _about(dispatch: Dispatch, **more: Any) -> DispatchDetails:
    return DispatchDetails(
        from_=dispatch.from_agent, to=dispatch.to_agent, kind=dispatch.kind, **more
    )


class RunDetails(FindingDetails, kw_only=True):
    """Details of a judged run."""

    agent: str


class RunEvaluator(BaseEvaluator, frozen=True, kw_only=True):
    """Gives one score for each run it applies to. ``nothing`` is the reason if there is none."""

    unit: ClassVar[Unit] = "run"
    details: ClassVar[builtins.type[Details] | None] = RunDetails
    states_options: ClassVar[bool] = False
    nothing: ClassVar[str]

    def evaluate(
        self,
        trace: Trace,
        case: Case | None,  # noqa: ARG002 - the case's expectations are not used here
        context: EvalContext,
    ) -> list[Score]:
        """Judge every run it applies to. Gives one ``skipped`` score if there is none."""
        scores: list[Score] = []
        for turn in trace.turns:
            for run in turn.runs:
                answer = self.answer(trace, turn, run, context)
                if answer is None:
                    continue
                if isinstance(answer, NotRecorded):
                    score = self.unscored("skipped", answer.says)
                elif isinstance(answer, Clear):
                    details = RunDetails(agent=run.agent, clear=dict(answer.details))
                    score = self.scored(answer.share, answer.says, details)
                else:
                    worst = min(answer, key=lambda finding: finding.share)
                    more = f"; {len(answer) - 1} more" if len(answer) > 1 else ""
                    rows = [{"kind": f.kind, "says": f.says, **f.details} for f in answer]
                    evidence = [each for finding in answer for each in finding.evidence]
                    details = RunDetails(agent=run.agent, findings=rows)
                    score = self.scored(worst.share, f"{worst.says}{more}", details, evidence)
                score.subject = [run.id]
                scores.append(score)
        if scores:
            return scores
        trouble = nothing_to_judge(trace, self.nothing)
        text = self.nothing if trouble.status == "skipped" else trouble.reason
        return [self.unscored(trouble.status, text)]

    @abstractmethod
    def answer(
        self, trace: Trace, turn: Turn, run: AgentRun, context: EvalContext
    ) -> Answer | None:
        """Answer this evaluator's question about one run, or ``None`` if it does not apply."""
