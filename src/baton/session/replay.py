"""Plays recorded dispatches and conversations again, with one thing changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from baton.config import Config
from baton.datasets.selection import choose
from baton.formats.evaluation_folder import is_evaluation
from baton.model import (
    Case,
    Dataset,
    ExpectedHandling,
    InputError,
    RunOptions,
    Trace,
)
from baton.model import (
    Evaluation as Played,
)
from baton.model.option_spelling import option
from baton.providers.base_provider import ConfiguredProvider
from baton.readers import load_traces
from baton.replays.cases import Played as Form
from baton.replays.cases import StatedKey, conversation_cases, dispatch_cases, in_form
from baton.replays.outcome import Seen, recorded_conversation
from baton.replays.replay import MakeProvider, Moments, Replayed
from baton.replays.replay import replay as play_again
from baton.runner.costs import read_prices
from baton.runner.loop import run_anywhere
from baton.runner.plan import Specs
from baton.store import read_evaluation

from .agent_under_test import (
    agent_spec,
    build_agent,
    find_target,
    in_own_process,
    variant_names,
    variants_of,
)
from .evaluate import EvaluateOptions, run_options
from .evaluation import Evaluation
from .file_kinds import cases_in, is_kind
from .prepare import (
    Inputs,
    Note,
    PathLike,
    ScoreOptions,
    each_once,
    folder_header,
    inputs_of,
    log_note,
    prepare,
    refuse_unknown,
    trust_in,
)
from .recordings import recordings_in, with_copies

MomentsLike = Trace | Dataset | Sequence[Trace | Case | PathLike] | PathLike
"""What to play again: traces, cases, or the paths of either."""


def replay(
    moments: MomentsLike,
    target: str | Mapping[str, Any] | None = None,
    evaluators: Specs | None = None,
    *,
    dispatch: str | Sequence[str] = (),
    form: Form | None = None,
    expect: Sequence[str] = (),
    app: str | None = None,
    variant: str | None = None,
    keyword: str | None = None,
    limit: int | None = None,
    save: PathLike | None = None,
    **options: Unpack[EvaluateOptions],
) -> Replayed:
    """Play recorded dispatches again, unchanged and with changed texts, and compare them.

    The recording answers every tool call: nothing is paid, sent or deleted again. A call without a
    recorded answer is refused with an error that names the tool, and its case is an error.

    Args:
        moments: recorded traces, whose dispatches are all played again; or cases, of dispatches or
            any others; or the paths of either.
        target: the agent, as `baton eval` takes it, or the spec of a provider; that of ``config``
            when left out.
        evaluators: the evaluators; by default those for what the cases expect.
        dispatch: the id of the only dispatch of the traces to play, or of several; ``TRACE/ID``
            where several traces have one with that id.
        form: ``decision``, ``child`` or ``integration``; ``conversation`` plays all messages of a
            trace again. By default the form that a case states, else ``decision``.
        expect: the agents that the dispatch should go to, if ``dispatch`` names one.
        app: the app of an ADK server.
        variant: which of a config's providers plays.
        keyword: play only cases that match this expression, as for `-k` of `baton eval`.
        limit: the maximum number of cases.
        save: a new folder for both plays, ``unchanged`` and ``changed``, as evaluations.
        options: as for :func:`baton.evaluate`. ``texts`` are the changed texts; only ``live_tools``
            really run.

    Raises:
        InputError: a file with errors, no such agent, dispatch, text or tool, or a change that
            breaks a text. Nothing is played then.
    """
    known = [*ScoreOptions.__annotations__, *EvaluateOptions.__annotations__]
    refuse_unknown("`baton.replay`", options, known)
    ready = ready_moments(
        moments,
        target,
        evaluators,
        options,
        dispatches=[dispatch] if isinstance(dispatch, str) else list(dispatch),
        form=form,
        expect=expect,
        app=app,
        variant=variant,
        keyword=keyword,
        limit=limit,
        instead=_INSTEAD,
    )
    if save is not None and Path(save).exists():
        raise InputError(f"{option('save')}: {save} already exists: name a new folder")
    replayed = run_anywhere(play_again(ready.moments, options.get("texts")))
    if save is not None:
        _save(Path(save), replayed, ready.inputs, ready.moments, ready.played_by)
    return replayed


class Ready(NamedTuple):
    """The cases to play, the agent that plays them, and the files they came from.

    ``played_by`` is the type of the provider.
    """

    moments: Moments
    inputs: Inputs
    played_by: str


def ready_moments(
    moments: MomentsLike,
    target: str | Mapping[str, Any] | None,
    evaluators: Specs | None,
    options: EvaluateOptions,
    *,
    dispatches: Sequence[str] = (),
    form: Form | None = None,
    expect: Sequence[str] = (),
    app: str | None = None,
    variant: str | None = None,
    keyword: str | None = None,
    limit: int | None = None,
    instead: str,
) -> Ready:
    """Find the agent, the cases and the evaluators; nothing is played.

    Args:
        moments: as for :func:`replay`, as are all others.
        target: the agent.
        evaluators: the evaluators.
        options: the options; those that are found out are added.
        dispatches: the only dispatches of recordings.
        form: how they are played.
        expect: the agents that the dispatch should go to.
        app: the app of an ADK server.
        variant: which of a config's providers.
        keyword: only cases that this expression fits.
        limit: the maximum number of cases.
        instead: says what to write where the agent is missing.

    Raises:
        InputError: a file with errors, no such agent or dispatch, wrong options.
    """
    note = options.get("note", log_note)
    agent = _agent_of(target, options, app, variant, instead)
    options["config"] = agent.config
    chosen = _chosen(moments, agent, dispatches, form, expect, options)
    dataset = choose(Dataset(chosen.cases, name=chosen.name), [], limit, keyword)
    if agent.config is not None and agent.config.stand_ins is not None:
        dataset = dataset.with_stand_ins(agent.config.stand_ins)
    options["by_cases"] = True
    inputs = inputs_of(options, dataset)
    player = agent.make({}).options
    plan = prepare(
        inputs,
        evaluators,
        options,
        player_prices=read_prices(player.custom_pricing or {}, "custom_pricing"),
        player_model=player.model,
    )
    how = run_options(agent.config.run if agent.config else RunOptions(), options)
    ready = Moments(
        list(dataset),
        agent.make,
        plan,
        how,
        name=options.get("name") or chosen.name,
        live_tools=options.get("live_tools") or (),
        recorded=chosen.recorded,
        by_cases=evaluators is None and not (agent.config and agent.config.evaluators),
    )
    for text in dataset.notes:
        note(text)
    return Ready(ready, inputs, player.type)


_INSTEAD = "an agent before what is played again, as in `baton replay app.py:agent RECORDING`"


class _Agent(NamedTuple):
    config: Config | None
    make: MakeProvider


def _agent_of(
    target: str | Mapping[str, Any] | None,
    options: EvaluateOptions,
    app: str | None,
    variant: str | None,
    instead: str,
) -> _Agent:
    """Find the agent that plays: a named one, or one provider of a config; raises InputError."""
    config, spec = options.get("config"), None
    if isinstance(target, Mapping):
        spec = dict(target)
        loaded = inputs_of(options, Dataset([])).config
    else:
        words = [target] if target is not None else []
        if target is None and config is not None and not isinstance(config, Config):
            words, config = [os.fspath(config)], None
        config_file = None if config is None or isinstance(config, Config) else os.fspath(config)
        if target is None and isinstance(config, Config):
            loaded = config
        else:
            resolved = find_target(
                words, trust_in(options), app, config=config_file, instead=instead
            )
            loaded, spec = (
                config if isinstance(config, Config) else resolved.config,
                resolved.provider,
            )
    places = variants_of(loaded if spec is None else None, variant)
    if len(places) > 1 and loaded is not None:
        names = ", ".join(f"`{name}`" for name in variant_names(loaded))
        raise InputError(
            f"the config has several providers ({names}): name one with {option('variant')}"
        )
    options["config"] = loaded
    catalog = inputs_of(options, Dataset([])).catalog or {}
    apart, spec = in_own_process(loaded, spec)

    def make(texts: Mapping[str, str]) -> ConfiguredProvider[Any]:
        return build_agent(apart, spec, places[0], catalog, texts)

    return _Agent(loaded, make)


class _Chosen(NamedTuple):
    cases: list[Case]
    recorded: dict[str, Seen]
    name: str


def _chosen(
    moments: MomentsLike,
    agent: _Agent,
    dispatches: Sequence[str],
    form: Form | None,
    expect: Sequence[str],
    options: EvaluateOptions,
) -> _Chosen:
    """Make or read the cases to play; raises InputError."""
    if isinstance(moments, Trace | str | os.PathLike):
        some: list[Trace | Case | PathLike] = [moments]
    elif isinstance(moments, Dataset):
        some = list(moments)
    else:
        some = list(moments)
    paths = each_once(
        with_copies(each for each in some if isinstance(each, str | os.PathLike)),
        options.get("note", log_note),
    )
    cases = [each for each in some if isinstance(each, Case)]
    traces = [each for each in some if isinstance(each, Trace)]
    with_cases = [path for path in paths if _holds_cases(path)]
    recordings = [path for path in paths if path not in with_cases]
    if not some and agent.config is not None and agent.config.dataset:
        with_cases = list(agent.config.dataset)
    if not some and not with_cases:
        raise InputError("name the cases or recordings to play")
    if (with_cases or cases) and (recordings or traces):
        raise InputError("these are both recordings and cases: play one or the other")
    if with_cases or cases:
        if dispatches or expect:
            what = option("dispatch") if dispatches else option("expect")
            raise InputError(f"{what} is for recordings: a case states this itself")
        if with_cases:
            dataset = inputs_of(options, with_cases).dataset
            assert dataset is not None  # noqa: S101 - paths are named
        else:
            dataset = Dataset(cases)
        return _Chosen(in_form(dataset, form), {}, dataset.name)
    if expect and not dispatches:
        message = f"can only be used with {option('dispatch')}, which names one"
        raise InputError(f"{option('expect')} {message}")
    traces += _read(recordings, agent, options)
    name = Path(recordings[0]).stem.partition(".")[0] if recordings else traces[0].id
    if form == "conversation":
        if dispatches:
            message = f"{option('dispatch')} names one dispatch, and `conversation` plays them all"
            raise InputError(message)
        made = conversation_cases(traces)
        pairs = zip(made, traces, strict=True)
        recorded = {case.id: recorded_conversation(trace) for case, trace in pairs}
        return _Chosen(made, recorded, name or "replay")
    expected = ExpectedHandling(to=list(expect)) if expect else None
    form = form or "decision"
    made = dispatch_cases(
        traces,
        dispatches=dispatches,
        form=form,
        expected=expected,
        # The target of a dispatch can only be checked when it is decided again.
        stated=_stated(recordings) if form == "decision" else None,
    )
    return _Chosen(made, {}, name or "replay")


def _stated(paths: Iterable[str]) -> dict[StatedKey, ExpectedHandling]:
    """Return what cases expected of dispatches, as the scores in evaluation folders contain it.

    `dispatch_routing` compares each dispatch with the expected one at its position.
    """
    handlings: dict[StatedKey, ExpectedHandling] = {}
    for folder in filter(is_evaluation, map(Path, paths)):
        for result in read_evaluation(folder, partial=True):
            trace = result.trace or result.recorded
            if trace is None:
                continue
            for score in result.scores:
                expected = score.details.get("expected")
                if score.type != "dispatch_routing" or not isinstance(expected, dict):
                    continue
                stated = ExpectedHandling(
                    to=_texts([expected.get("to")]),
                    prompt_contains=_texts(expected.get("prompt_contains")),
                    tools=_texts(expected.get("tools")),
                )
                handlings |= {(trace.id, result.repeat, id_): stated for id_ in score.subject}
    return handlings


def _texts(value: Any) -> list[str] | None:
    texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return value if texts else None


def _holds_cases(path: str) -> bool:
    """Distinguish a dataset from recordings, by content."""
    place = Path(path)
    if place.exists():
        return not is_evaluation(place) and cases_in(place) == "only"
    file = Path(path.rpartition(":")[0])
    return file.is_file() and cases_in(file) is not None


def _read(paths: Iterable[str], agent: _Agent, options: EvaluateOptions) -> list[Trace]:
    note: Note = options.get("note", log_note)
    listed = list(paths)
    if not listed:
        return []
    read = recordings_in(listed, note)
    agents = options.get("agents") or (agent.config.agents if agent.config else None)
    redact = options.get("redact")
    traces = load_traces(
        [Path(path) for path in read.paths],
        agents=agents or read.agents,
        redact=True if redact is None else redact,
    )
    if not traces:
        raise InputError(f"no trace in {', '.join(listed)}")
    return list(traces)


def _save(
    folder: Path, replayed: Replayed, inputs: Inputs, moments: Moments, played_by: str
) -> None:
    sides: list[tuple[str, Played, bool]] = [("unchanged", replayed.unchanged, False)]
    if replayed.changed is not None:
        sides.append(("changed", replayed.changed, True))
    for name, side, is_changed in sides:
        about = folder_header(
            moments.plan,
            inputs,
            played_by,
            git=False,
            changes=replayed.changes if is_changed else (),
        )
        about.planned, about.repeats = len(side.results), moments.options.repeat
        side.notices += about.notices
        Evaluation.of(side, about, keep_traces=True).save(folder / name)


def target_and_moments(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Separate the agent or config, which is named first, from the recordings or cases."""
    listed = list(words)
    if listed and listed[0].endswith(".py"):
        raise InputError(f"{listed[0]}: name the agent in it, as in {listed[0]}:agent")
    if listed and (agent_spec(listed[0]) is not None or is_kind(Path(listed[0]), "config")):
        return listed[0], listed[1:]
    return None, listed
