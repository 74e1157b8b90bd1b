"""Options that several commands take."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter, Token

from baton.model import InputError
from baton.model.redact import ON, Redaction

from .usage_messages import note, quieting, say

if TYPE_CHECKING:
    from baton.config.judge_config import JudgeFlags
    from baton.config.trust import Trust
    from baton.session.prepare import ScoreOptions


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """Read a whole number; by default, cyclopts rounds fractions."""
    return int(tokens[0].value)


MORE = Group("More options", sort_key=2)
"""The group of rarely needed options: the help shows it last."""
LATER = Parameter(group=MORE)
FEW = Group("Options", sort_key=1)
FIRST = Parameter(group=FEW)
Whole = Annotated[int, Parameter(converter=_whole)]
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Words = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
Paths = Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)]
Dataset = Annotated[Words, Parameter(name=["--dataset", "-d"])]
Evaluators = Annotated[Words, Parameter(name=["--evaluator", "-e"])]
ConfigPath = Annotated[Path | None, Parameter(name=["--config", "-c"])]
Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]
OutputFile = Annotated[Path, Parameter(name=["--output", "-o"])]
Keyword = Annotated[str | None, Parameter(name="-k")]
Changes = Annotated[Words, Parameter(name="--with")]
LastFailed = Annotated[Flag, Parameter(name=["--lf", "--last-failed"])]

# Option classes have no comparison and no `repr`, and are not frozen: a dataclass compiles each of
# these methods when it is defined, together 3 ms of every start. No command changes its options.


def trust_in(folders: Sequence[Path]) -> Trust:
    """Return the trust in found files; asks the user at a terminal."""
    from baton.config.trust import Trust

    def ask(question: str) -> bool:
        *lines, last = question.splitlines()
        for line in lines:
            say(line)
        sys.stderr.write(last)
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    has_person = sys.stdin.isatty() and sys.stderr.isatty()
    return Trust(folders, ask=ask if has_person else None)


@Parameter(name="*", group=MORE)
@dataclass(eq=False, repr=False)
class JudgeOptions:
    """How to judge; these options override `judge:` of the config.

    Parameters
    ----------
    judge
        The judge's model, as PROVIDER:NAME (openai:gpt-4o-mini).
    no_cache
        Neither read nor write cached verdicts.
    cache_only
        Send nothing to a judge: a verdict that is not cached is an error.
    max_cost
        The maximum cost of judging, in USD; verdicts requested after that are errors.
    max_judge_calls
        The maximum number of requests to judges.
    """

    judge: Annotated[str | None, FIRST] = None
    no_cache: Flag = False
    cache_only: Flag = False
    max_cost: float | None = None
    max_judge_calls: Whole | None = None

    def flags(self, *, rehearsal: bool = False) -> JudgeFlags:
        """Check them together; raises InputError for contradictions."""
        from baton.config.judge_config import judge_flags

        return judge_flags(**asdict(self), rehearsal=rehearsal)


AS_JUDGED = JudgeOptions()


@Parameter(name="*", group=MORE)
@dataclass(eq=False, repr=False)
class Redacting:
    """What to replace with tags; these options override `redact:` of the config.

    Parameters
    ----------
    redact
        Replace secrets in traces with tags, such as [key:9c1b]: keys of known forms, tokens,
        passwords, cookies. On unless the config says otherwise.
    redact_kind
        Also replace these: email, phone, card, iban, or personal for all four. May be given several
        times.
    """

    redact: bool | None = None
    redact_kind: Words = ()

    @property
    def asked(self) -> Redaction | None:
        """What to redact according to the options; ``None`` if they do not say."""
        return None if vars(self) == vars(AS_CONFIGURED) else self.over(ON)

    def over(self, configured: Redaction) -> Redaction:
        """Override a config's settings with the options; raises InputError for contradictions."""
        from baton.session.prepare import redaction_with

        return redaction_with(configured, self.redact, self.redact_kind)


AS_CONFIGURED = Redacting()


@Parameter(name="*")
@dataclass(eq=False, repr=False)
class Scoring:
    """Options for scoring that all commands that score have.

    Parameters
    ----------
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    """

    agents: Annotated[Path | None, LATER] = None
    judging: JudgeOptions = AS_JUDGED
    redacting: Redacting = AS_CONFIGURED

    def options(self, trust: Sequence[Path], *, rehearsal: bool) -> ScoreOptions:
        """Return the options of the functions that score; ``rehearsal`` asks no judge."""
        return {
            "agents": self.agents,
            "judge": self.judging.flags(rehearsal=rehearsal),
            "trust": trust_in(trust),
            "redact": self.redacting.redact,
            "redact_kinds": self.redacting.redact_kind,
            "note": note,
        }


USUAL = Scoring()


@Parameter(name="*", group=MORE)
@dataclass(eq=False, repr=False)
class Playing:
    """Which cases are played again, by whom, and how many at once.

    Parameters
    ----------
    keyword
        Only cases that match the expression, as for `baton eval`.
    limit
        The maximum number of cases.
    concurrency
        How many cases run at once, at most.
    timeout
        Seconds for one case.
    variant
        Which of a config's providers plays, by its agent_id or type.
    app
        The app of the server to talk to, if it has several.
    """

    keyword: Keyword = None
    limit: Whole | None = None
    concurrency: Whole | None = None
    timeout: float | None = None
    variant: str | None = None
    app: str | None = None

    def options(self) -> dict[str, Any]:
        """Return the given ones as options of a function of ``session``."""
        return given(**vars(self))


AS_PLAYED = Playing()


def given(**values: Any) -> dict[str, Any]:
    """Return the options that are given; the called function has the defaults of the others."""
    return {name: value for name, value in values.items() if value is not None}


@Parameter(name="*", group=MORE)
@dataclass(eq=False, repr=False)
class Proposing(JudgeOptions):
    """How to judge and propose; these options override `judge:` of the config.

    Parameters
    ----------
    judge
        The model that judges and proposes, as PROVIDER:NAME (openai:gpt-4o-mini).
    no_cache
        Neither read nor write cached verdicts.
    cache_only
        Send nothing to a judge: a verdict that is not cached is an error.
    max_cost
        The most that agents, judges and proposals may cost together, in USD; the search ends there.
    max_judge_calls
        The maximum number of requests to judges.
    """

    judge: Annotated[str | None, FIRST] = None
    max_cost: float | None = None


PROPOSING = Proposing()


@Parameter(name="*")
@dataclass(eq=False, repr=False)
class Improving(Scoring):
    """Models that score and propose.

    Parameters
    ----------
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    """

    judging: Proposing = PROPOSING


AS_IMPROVED = Improving()


@Parameter(name="*", group=MORE)
@dataclass(eq=False, repr=False)
class Workers:
    """Where the work is done; these options override `backend:` of the config.

    Parameters
    ----------
    backend
        Where the work runs: local (processes), ray, or module:function of your own.
    workers
        How many workers the backend has.
    """

    backend: str | None = None
    workers: Whole | None = None


HERE = Workers()

Format = Literal["terminal", "json", "junit", "html", "markdown", "csv", "github"]
"""What ``baton report --format`` prints: the reporters of the registry."""


@Parameter(name="*", group=MORE)
@dataclass(eq=False, repr=False)
class Reports:
    """Reports beside the one that is printed.

    Parameters
    ----------
    html
        Write one page with every case and trace to this file as well; it needs no network.
    markdown
        Write a comment for a pull request to this file as well.
    csv
        Write a row for each score to this file as well.
    junit
        Write a JUnit report to this file as well.
    github
        Print annotations for GitHub Actions, and add to the summary of its step.
    """

    html: Annotated[Path | None, FIRST] = None
    markdown: Path | None = None
    csv: Path | None = None
    junit: Path | None = None
    github: Flag = False

    def files(self) -> dict[str, Path]:
        """Return the files to write, by reporter."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if isinstance(value, Path)}


NONE = Reports()


@Parameter(name="*")
@dataclass(eq=False, repr=False)
class Showing:
    """How much of a report is printed.

    Parameters
    ----------
    verbose
        Print every case with all its scores.
    quiet
        Print the verdict in one line, and no progress and no notes.
    json
        Print the whole report as JSON.
    show
        How many of the cases that did not pass are printed in full.
    """

    verbose: Annotated[
        bool, Parameter(name=["--verbose", "-v"], negative="", show_default=False)
    ] = False
    quiet: Annotated[
        bool, LATER, Parameter(name=["--quiet", "-q"], negative="", show_default=False)
    ] = False
    json: Flag = False
    show: Annotated[Whole, LATER] = 10

    def begin(self) -> None:
        """Print no notes from now on if only the verdict is requested.

        Raises:
            InputError: options that contradict each other.
        """
        if self.quiet and (self.verbose or self.json):
            raise InputError(f"--quiet and {'--json' if self.json else '--verbose'}: give one")
        quieting.set(self.quiet)


SHORT = Showing()
