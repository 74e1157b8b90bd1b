"""``response``: whether answers match what cases state, and rules for every answer.

judge-llm calls it ``response_evaluator``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any

import msgspec

from baton.evaluators.matching.answers import (
    AnswerDetails,
    Row,
    answer_details,
    answer_text,
    below,
    evidence,
    mean,
    no_answer,
    quote,
    reason,
)
from baton.evaluators.matching.rouge import require_rouge
from baton.evaluators.matching.texts import (
    AnswerRules,
    CaseSensitive,
    Match,
    NormalizeWhitespace,
    Reading,
    Rules,
    stated_checks,
)
from baton.model import Case, EvalContext, Evidence, ExpectedTurn, Score, Trace
from baton.model.score import passes
from baton.plugins import FROM_CASES, Alias

from .base_evaluator import Pair, TurnEvaluator, Which, describe


class Response(TurnEvaluator[Row], frozen=True, kw_only=True, dict=True):
    """Checks answers against what turns state, and the last answer against the rules.

    The score is the mean over turns. A turn scores the lowest of its checks.
    """

    type = "response"
    summary = "whether answers are what the case states, and meet rules of your own"
    aliases = (
        Alias(
            "response_evaluator",
            "ResponseEvaluator",
            presets={"match": "jaccard", "threshold": 0.8},
            renames={"similarity_threshold": "threshold"},
            values=(
                (
                    "match_type",
                    {
                        "exact": {"match": "equals"},
                        "semantic": {"match": "jaccard"},
                        "rouge": {"match": "rouge1"},
                        "recall": {"match": "recall"},
                    },
                ),
            ),
        ),
    )
    checks = frozenset({"response", "response_contains", "response_not_contains"})
    states = ("response", "response_contains", "response_not_contains")
    stated_as = "an answer"
    details = AnswerDetails
    needs = ("output",)

    case_sensitive: CaseSensitive = False
    normalize_whitespace: NormalizeWhitespace = True
    equals: Annotated[str | None, FROM_CASES, describe("What the last answer has to be.")] = None
    contains: Annotated[
        str | None, FROM_CASES, describe("A text that the last answer must contain.")
    ] = None
    all_of: Annotated[
        list[str] | None, FROM_CASES, describe("Texts, all of which the last answer must contain.")
    ] = None
    any_of: Annotated[
        list[str] | None,
        FROM_CASES,
        describe("Texts, at least one of which the last answer must contain."),
    ] = None
    regex: Annotated[
        str | None, FROM_CASES, describe("A pattern that the last answer has to match somewhere.")
    ] = None
    json_schema: Annotated[
        dict[str, Any] | None,
        FROM_CASES,
        describe("A JSON Schema that the last answer has to fit, as JSON or in a fenced block."),
    ] = None
    match: Annotated[
        Match,
        describe(
            "How an answer is compared with the stated one. `jaccard`: words in both / in either; "
            "`recall`: share of the stated words; `rouge1`: the F-measure of ROUGE-1."
        ),
    ] = "equals"
    threshold: Annotated[
        float, msgspec.Meta(ge=0, le=1), describe("The minimum mean over turns to pass.")
    ] = 1.0

    def check(self) -> None:
        """Check the rules: none is empty, patterns and schemas are valid, libraries installed."""
        for name in ("contains", "all_of", "any_of", "regex"):
            wanted = getattr(self, name)
            if wanted is not None and not (wanted and all(wanted)):
                raise ValueError(
                    f"`{name}` is empty or contains an empty text, so it checks nothing"
                )
        _ = self._rules  # raises InputError for an invalid pattern or schema
        if self.match == "rouge1":
            require_rouge()

    @property
    def reading(self) -> Reading:
        """Which differences between texts do not matter."""
        return Reading.of(self)

    @cached_property
    def _rules(self) -> Rules:
        stated = AnswerRules(
            self.equals, self.contains, self.all_of, self.any_of, self.regex, self.json_schema
        )
        return Rules(stated, self.reading)

    def stating(self, turn: ExpectedTurn) -> bool:
        """Return whether a turn states an answer. Any answer meets an empty list of texts."""
        texts = turn.response_contains or turn.response_not_contains
        return bool(texts) or turn.response is not None

    def option_details(self) -> dict[str, Any]:
        """Return the options as plain data, without the schema, which can be long."""
        return {k: v for k, v in super().option_details().items() if k != "json_schema"}

    def which(self, case: Case | None) -> Which:  # noqa: ARG002
        """Select the turns that state an answer and, with rules, the last turn played."""
        return "stated and last" if self._rules else "stated"

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> Row:  # noqa: ARG002
        """Check the answer of one turn."""
        checks = list(stated_checks(pair.expected, pair.turn.output, self.match, self.reading))
        if self._rules and pair.turn is trace.turns[-1]:
            checks += self._rules.checks(pair.turn.output)
        least = min(checks, key=lambda check: check.score)
        if not pair.turn.output and least.score < 1:
            least = least._replace(problem=no_answer(pair.turn))
        rows: list[dict[str, Any]] = []
        for c in checks:
            row = {"check": c.name, "score": c.score}
            rows.append(row if passes(c.score, self.threshold) else {**row, "problem": c.problem})
        fields: dict[str, Any] = {"checks": rows}
        stated = pair.expected.response
        if stated is not None and not passes(least.score, self.threshold):
            fields["expected"] = quote(stated.plain())
        if left_out := self._left_out(pair):
            fields["left_out"] = left_out
        return Row(pair.number, pair.turn, least.score, least.problem, fields)

    def verdict(self, turns: Sequence[Row]) -> list[Score]:
        """Return one score: the mean over the turns."""
        wrong = below(turns, self.threshold)
        details = answer_details(turns, self.threshold)
        names = dict.fromkeys(check["check"] for row in turns for check in row.fields["checks"])
        text = reason(turns, wrong, f"the answer meets {', '.join(names)}")
        left_out = [each for row in wrong for each in row.fields.get("left_out", ())]
        if left_out:
            details.fix = "; ".join(_advice(each) for each in left_out[:3])
        proof = evidence(wrong)
        proof += [Evidence(ids=[each["dispatch"]], quote=each["texts"][0]) for each in left_out]
        return [self.scored(mean(turns), text, details, proof)]

    def _left_out(self, pair: Pair) -> list[dict[str, Any]]:
        """List the dispatches of a turn whose result has what is missing from the answer.

        A fact that a specialist found but the user never got shows which agent dropped it.
        """
        answer = answer_text(pair.turn)
        wanted = pair.expected.response_contains or ()
        missing = [text for text in wanted if not self.reading.found_in(text, answer)]
        left_out = []
        for dispatch in pair.turn.dispatches if missing else ():
            result = dispatch.result.plain() if dispatch.result else ""
            texts = [text for text in missing if self.reading.found_in(text, result)]
            if texts:
                ends = {"dispatch": dispatch.id, "from": dispatch.from_agent}
                left_out.append({**ends, "to": dispatch.to_agent, "texts": texts})
        return left_out


def _advice(left_out: dict[str, Any]) -> str:
    caller = f"`{left_out['from']}`" if left_out["from"] else "the program"
    texts = ", ".join(repr(quote(text, 60)) for text in left_out["texts"])
    dispatch = f"{left_out['dispatch']}: `{left_out['to']}`"
    return f"{dispatch} returned {texts}; check how {caller} used it"
