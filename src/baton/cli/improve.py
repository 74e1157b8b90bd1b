"""``baton improve``: improvements, and the most that they can take."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
from cyclopts import Parameter

from baton.improvements.result import RESULT, Improvement
from baton.model import InputError, counted
from baton.model.option_spelling import option
from baton.model.visible import visible_line
from baton.session.apply import apply_improvement, read_improvement
from baton.session.improve import ImprovementEstimate, estimate_improvement, has_plays, improve
from baton.session.improve_rubric import RubricEstimate, estimate_rubric, improve_rubric
from baton.session.replay import target_and_moments

from .options import (
    AS_IMPROVED,
    AS_PLAYED,
    LATER,
    MORE,
    ConfigPath,
    Evaluators,
    Flag,
    Improving,
    Paths,
    Playing,
    Whole,
    Words,
    given,
    trust_in,
)
from .output import readers_may_leave
from .signals import note_ignored_interrupts
from .usage_messages import note, say

if TYPE_CHECKING:
    from baton.session.improve import ImproveOptions
    from baton.session.improve_rubric import RubricOptions

Finished = Annotated[Path | None, Parameter(name="--from", group=MORE)]
_OF_FINISHED = ("finished", "writing", "json", "show", "variant", "app", "trust")
"""Options that apply to a finished improvement; all others are about finding one."""
_OF_RUBRIC = (
    *("rubric", "labels", "config", "agents", "strategy", "seed", "candidates", "max_words"),
    *("judge", "no_cache", "cache_only", "max_cost", "max_judge_calls", "dry_run", "resume"),
    *("out", "json", "show", "apply", "branch", "html"),
)
"""Options that apply when a rubric is improved; all others are about agents."""


@Parameter(name="*", group=MORE)
@dataclass(frozen=True)
class Writing:
    """Where a finished improvement is written.

    Parameters
    ----------
    apply
        Write the texts that are proven to be better into the files with the old ones. The old files
        are kept in the improvement's folder.
    branch
        Commit these texts to a new git branch instead. No file changes, and nothing is pushed.
    html
        Also write one page with everything to this file; it needs no network.
    """

    apply: Flag = False
    branch: str | None = None
    html: Path | None = None

    @property
    def puts_texts_in_place(self) -> bool:
        """Whether files or a branch get the texts."""
        return self.apply or self.branch is not None

    def check(self, read: list[Path]) -> None:
        """Make sure that the page can be written; raises InputError or OSError."""
        if self.html is not None:
            from baton.improvements.html_page import (
                check_page,  # it loads the parts of reports in HTML
            )

            check_page(self.html, read)


NOTHING = Writing()


def improve_command(
    *words: str,
    config: ConfigPath = None,
    agent: Words = (),
    component: Words = (),
    strategy: str = "gepa",
    candidates: Whole | None = None,
    repeat: Annotated[Whole | None, LATER] = None,
    seed: Whole = 0,
    rubric: Annotated[str | None, LATER] = None,
    labels: Annotated[str | None, LATER] = None,
    issues: Annotated[Words, LATER] = (),
    writing: Writing = NOTHING,
    finished: Finished = None,
    dry_run: Flag = False,
    resume: Path | None = None,
    json: Flag = False,
    aim: Annotated[str | None, LATER] = None,
    witness: Annotated[Words, LATER] = (),
    second_judge: Annotated[str | None, LATER] = None,
    evaluators: Annotated[Evaluators, LATER] = (),
    max_calls: Annotated[Whole | None, LATER] = None,
    max_words: Annotated[Whole | None, LATER] = None,
    live_tools: Annotated[Words, LATER] = (),
    out: Annotated[Path | None, LATER] = None,
    show: Annotated[Whole, LATER] = 10,
    playing: Playing = AS_PLAYED,
    scoring: Improving = AS_IMPROVED,
    name: Annotated[str | None, LATER] = None,
    trust: Annotated[Paths, LATER] = (),
) -> int:
    """Find better texts for agents, and prove on held-out cases that they are better.

    `baton improve [AGENT|CONFIG] CASES...` has a model propose texts, plays them on the cases with
    every tool answered by a stand-in, and proves the winner on held-out cases. No file of the
    agents is written without --apply. With --rubric, `baton improve --rubric NAME --labels FILE
    RECORDINGS...` does the same for the text of a rubric: a judge has to agree better with people
    on held-out labels. The exit code is 0 when a gain is proven, 1 when none is, and 3 when it was
    stopped before. --judge names the model that proposes, too, and --max-cost counts agents, judges
    and proposals.

    Parameters
    ----------
    words
        A config (by default `baton.yaml`) or an agent, as for `baton eval`, then cases or
        recordings.
    config
        A config. With an agent, that one plays instead of the config's.
    agent
        Change the instructions of this agent. By default, those of the agents that failures point
        to. May be given several times.
    component
        Change this text, by its name in `baton components`. May be given several times.
    strategy
        How texts are proposed: gepa, random, bayesian, meta_prompt, protegi or prompt_wizard.
    candidates
        How many texts are tried for a component (default 40), or for a rubric (24).
    repeat
        How often each case is played with each text.
    seed
        The seed of random choices.
    rubric
        Improve the text of this rubric instead of an agent's.
    labels
        With --rubric, people's labels for it: a file of `baton label`, a dataset with labels, or
        server://HOST/PROJECT. Without --rubric, labels of dispatches, which show which agent fails.
    issues
        More evidence of which agent fails: a file of `baton issues --json`, server://HOST/PROJECT,
        evaluations or recordings. May be given several times.
    finished
        Show the improvement in this folder, or apply or commit it. Nothing is played or asked.
    dry_run
        Only print the maximum number of plays, verdicts and requests, and their cost.
    resume
        Resume the improvement in this folder; finished work is not repeated.
    json
        Print everything as JSON.
    aim
        The axis that has to improve: an evaluator, or `cases passed`. By default, the evaluator
        that fails most at the agent.
    witness
        An evaluator that has to agree if a judge decides the aim. By default all that need no
        judge, and the second judge. May be given several times.
    second_judge
        A model that judges everything as well, so that a text which only flatters the first judge
        is refused.
    evaluators
        An evaluator to score with: NAME, or NAME:0.8 with its threshold; +NAME adds it to those
        for what the cases expect. May be given several times.
    max_calls
        The maximum number of plays for all texts together.
    max_words
        The maximum length of a text in words; by default twice the old one, or 150 words more.
    live_tools
        A tool that really runs. May be given several times.
    out
        Where to create the folder of the improvement; by default in .baton/improvements.
    show
        How many candidates of a component are printed.
    name
        Name of the improvement.
    trust
        A folder whose baton.yaml may name code, although it was only found.
    """
    _check_together(locals())
    if finished is not None:
        improvement = read_improvement(finished)
        writing.check([finished / RESULT])
        print_improvement(improvement, show, as_json=json)
        _write(finished, writing, playing, trust, aside=json)
        return exit_code_of(improvement)
    note_ignored_interrupts()
    folders: list[Path] = []
    search = {
        **given(candidates=candidates, max_words=max_words, out=out, resume=resume),
        "config": config,
        "strategy": strategy,
        "seed": seed,
        "on_start": folders.append,
        "on_step": note,
    }
    if rubric is not None and labels is not None:
        of_rubric = cast(
            "RubricOptions",
            {
                **search,
                "judge": scoring.judging.flags(),
                "agents": scoring.agents,
                "is_applied": writing.puts_texts_in_place,
                "note": note,
            },
        )
        if dry_run:
            print_rubric_estimate(estimate_rubric(rubric, labels, words, **of_rubric), as_json=json)
            return 0
        make = partial(improve_rubric, rubric, labels, words, **of_rubric)
    else:
        target, moments = target_and_moments(words)
        options = cast(
            "ImproveOptions",
            {
                **search,
                **playing.options(),
                **scoring.options(trust, rehearsal=dry_run),
                **given(max_calls=max_calls, max_cost=scoring.judging.max_cost, repeat=repeat),
                "name": name,
                "agent": agent,
                "component": component,
                "aim": aim,
                "witness": witness,
                "second_judge": second_judge,
                "live_tools": live_tools,
                "issues": issues,
                "labels": [labels] if labels is not None else [],
            },
        )
        if dry_run:
            estimate = estimate_improvement(moments, target, evaluators or None, **options)
            print_improvement_estimate(estimate, as_json=json)
            return 0
        make = partial(improve, moments, target, evaluators or None, **options)
    writing.check([Path(word.partition(":")[0]) for word in (*words, labels or "") if word])
    return _made(make, folders, writing, playing, trust, show, as_json=json)


def _made(
    make: Callable[[], Improvement],
    folders: list[Path],
    writing: Writing,
    playing: Playing,
    trust: Sequence[Path],
    show: int,
    *,
    as_json: bool,
) -> int:
    """Make an improvement, show and write it; ``folders`` gets its folder at the start."""
    try:
        with redirect_stdout(sys.stderr):  # what agents print is not part of the report
            improvement = make()
    except BaseException:
        if folders and has_plays(folders[0]):
            note(f"what was done is kept: add --resume {folders[0]} to continue")
        raise
    (folder,) = folders
    print_improvement(improvement, show, as_json=as_json)
    if improvement.texts and not writing.puts_texts_in_place:
        note(f"kept in {folder}: `baton improve --from {folder} --apply` writes what is proven")
    elif improvement.stopped is None:
        note(f"kept in {folder}")
    if improvement.stopped is not None and has_plays(folder):
        note(f"what was done is kept: add --resume {folder} to continue")
    try:
        _write(folder, writing, playing, trust, aside=as_json)
    except InputError:
        note(f"the texts are kept: `baton improve --from {folder} --apply` writes them")
        raise
    return exit_code_of(improvement)


def _write(
    folder: Path, writing: Writing, playing: Playing, trust: Sequence[Path], *, aside: bool
) -> None:
    """Write the improvement in a folder, and say what was written: ``aside`` on stderr."""
    improvement = read_improvement(folder)
    if writing.html is not None:
        from baton.improvements.html_page import write_page

        write_page(improvement, writing.html)
        note(f"the page is in {writing.html}")
    if not writing.puts_texts_in_place:
        return
    if not improvement.texts:
        say("no gain is proven: nothing is written")
        return
    applied = apply_improvement(
        folder,
        app=playing.app,
        variant=playing.variant,
        branch=writing.branch,
        trust=trust_in(trust),
    )
    with readers_may_leave():
        for line in applied.lines:
            if aside:
                say(line)
            else:
                print(visible_line(line))


def _check_together(stated: Mapping[str, Any]) -> None:
    """Raise InputError for options that contradict each other."""
    writing: Writing = stated["writing"]
    if writing.apply and writing.branch is not None:
        raise InputError(
            f"{option('apply')} changes files and {option('branch')} does not: give one of them"
        )
    if stated["dry_run"] and writing != NOTHING:
        (name, *_) = _stated("writing", writing, NOTHING)
        raise InputError(
            f"{option(name)} cannot be used with {option('dry_run')}, which plays nothing"
        )
    if stated["finished"] is None and stated["rubric"] is not None:
        if stated["labels"] is None:
            raise InputError(
                f"{option('rubric')} and {option('labels')} belong together: give the rubric, and "
                "the labels of people"
            )
        for name, parameter in inspect.signature(improve_command).parameters.items():
            for each in () if name == "words" else _stated(name, stated[name], parameter.default):
                if each not in _OF_RUBRIC:
                    raise InputError(
                        f"{option(each)} cannot be used with {option('rubric')}, which plays no "
                        "agent"
                    )
    if stated["finished"] is None:
        return
    if stated["words"]:
        raise InputError(
            f"{option('finished')} plays nothing: leave `{stated['words'][0]}` out, or leave "
            f"{option('finished')} out"
        )
    for name, parameter in inspect.signature(improve_command).parameters.items():
        for each in _stated(name, stated[name], parameter.default):
            if name not in (*_OF_FINISHED, "words") and each not in _OF_FINISHED:
                raise InputError(
                    f"{option(each)} cannot be used with {option('finished')}, which plays nothing"
                )


def _stated(name: str, value: Any, default: Any) -> Iterator[str]:
    """Name the options that differ from their defaults, also those inside groups."""
    if is_dataclass(default):
        for field in fields(default):
            yield from _stated(field.name, getattr(value, field.name), getattr(default, field.name))
    elif value != default:
        yield name


def print_improvement(improvement: Improvement, limit: int, *, as_json: bool) -> None:
    """Print the result of an improvement, with ``limit`` candidates of each component."""
    from baton.improvements.report import not_finished
    from baton.improvements.report import print_improvement as print_report

    with readers_may_leave():
        if as_json:
            plain = msgspec.json.encode(improvement)
            print(msgspec.json.format(plain, indent=2).decode())
            if (unfinished := not_finished(improvement)) is not None:
                note(unfinished)
        else:
            print_report(improvement, sys.stdout, limit=limit)


def exit_code_of(improvement: Improvement) -> int:
    """Return 0 if a gain is proven, 1 if none is, and 3 if it was stopped before."""
    from baton.improvements.report import exit_code

    return exit_code(improvement)


def print_improvement_estimate(estimate: ImprovementEstimate, *, as_json: bool) -> None:
    """Print the most that an improvement of agents can take."""
    if as_json:
        print(msgspec.json.encode({"dry_run": estimate}).decode())
        return
    print(
        f"{estimate.train} train, {estimate.select} select and {estimate.held_out} held-out cases\n"
        f"up to {counted(estimate.studies, 'component')}, "
        f"at most {counted(estimate.plays, 'play')}\n"
        f"at least {counted(estimate.fewest_plays, 'play')} for one component: train and select "
        "once, and held-out cases twice\n"
        f"at most {estimate.calls:,} requests to {estimate.model} for proposals, about "
        f"{estimate.input_tokens:,} + {estimate.output_tokens:,} tokens\n"
        f"cost of proposals: {_cost_at_most(estimate.cost_usd, estimate.model)}"
    )
    for line in _estimate_of_plays(estimate):
        print(line)
    for text in estimate.notes:
        note(text)


def _estimate_of_plays(estimate: ImprovementEstimate) -> Iterator[str]:
    agents, judging = estimate.agents, estimate.judging
    if agents.recorded:
        yield (
            f"agents: about {agents.input_tokens:,} + {agents.output_tokens:,} tokens in all plays,"
            f" as recorded in {agents.recorded} of {counted(agents.cases, 'case')}"
        )
    if agents.cost_usd is not None:
        yield f"cost of agents: at most {agents.cost_usd:.2f} USD"
    else:
        yield f"cost of agents: unknown, as is {' and '.join(map(visible_line, agents.unknown))}"
    if judging is not None:
        yield (
            f"at most {judging.calls:,} requests to judges, about {judging.input_tokens:,} + "
            f"{judging.output_tokens:,} tokens: {', '.join(estimate.judged)}"
        )
        yield f"cost of judges: {_cost_at_most(judging.cost_usd, judging.model)}"
    if estimate.total_usd is None:
        yield "total cost: unknown; `--max-cost` limits it"
    else:
        yield f"total cost: at most {estimate.total_usd:.2f} USD; `--max-cost` limits it"


def print_rubric_estimate(estimate: RubricEstimate, *, as_json: bool) -> None:
    """Print the most that an improvement of a rubric can take."""
    if as_json:
        print(msgspec.json.encode({"dry_run": estimate}).decode())
        return
    cost = _cost_at_most(estimate.cost_usd, estimate.model)
    print(
        f"{estimate.train} train, {estimate.select} select and {estimate.held_out} "
        f"held-out labelled things\n"
        f"at most {counted(estimate.verdicts, 'verdict')} of {estimate.model}, at least "
        f"{estimate.fewest_verdicts:,}, and at most {counted(estimate.proposals, 'proposal')}\n"
        f"at most {counted(estimate.calls, 'request')}, about {estimate.input_tokens:,} + "
        f"{estimate.output_tokens:,} tokens\n"
        f"cost: {cost}"
    )
    for text in estimate.notes:
        note(text)


def _cost_at_most(cost_usd: float | None, model: str) -> str:
    if cost_usd is None:
        return f"unknown, as the price of {model} is not known"
    return f"at most {cost_usd:.2f} USD"
