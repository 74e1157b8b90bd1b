"""Writing cases: a dataset in another dialect, or one drafted from good runs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from baton.datasets import load_dataset
from baton.datasets.baton_cases import own_yaml
from baton.datasets.convert_cases import Converted, Loss, Target, states_session
from baton.datasets.convert_cases import convert as converted_as
from baton.datasets.dispatch_cases import dispatch_case
from baton.datasets.draft_case import draft_yaml
from baton.datasets.evalset import initial_session as read_session
from baton.datasets.recorded_dispatches import CONTEXT_TURNS, as_made, find_dispatch
from baton.formats.document import Document, read_bytes
from baton.formats.own_files import make_folder, naming, refuse_overwriting
from baton.model import Case, Dispatch, EvalContext, Form, InputError, Problem, Trace, counted
from baton.model.option_spelling import option
from baton.model.redact import RedactLike, redaction_of
from baton.readers import load_catalog, load_traces
from baton.runner.plan import PROVEN_SPECS, make_plan

from .file_kinds import IS_A_DATASET, given_as, not_a_dataset, unreadable
from .prepare import Note, PathLike, TracesLike, each_once, log_note, traces_or_paths
from .recordings import local_sources


class ConvertedFile(NamedTuple):
    """The result of a conversion, and the number of cases."""

    converted: Converted
    cases: int

    @property
    def losses(self) -> list[Loss]:
        """What the dialect cannot express, and what had to be added."""
        return self.converted.losses


def convert(
    dataset: PathLike | Sequence[PathLike],
    to: Target,
    out: PathLike,
    *,
    agents: PathLike | None = None,
    initial_session: PathLike | None = None,
    redact: RedactLike = True,
    note: Note = log_note,
) -> ConvertedFile:
    """Write a dataset in another dialect, and return what that cannot express.

    Args:
        dataset: files and folders with cases; ``FILE:case1,case2`` for some of them.
        to: the dialect: ``adk``, ``judge-llm``, ``strands`` or ``baton``.
        out: the file to write: JSON or YAML, by its suffix.
        agents: agent definitions, which distinguish a trajectory of agents from one of tools.
        initial_session: a JSON file with `app_name`, `user_id` and `state`, from which cases that
            state no session begin, as ADK's ``migrate_eval_data_to_new_schema`` takes it.
        redact: what is replaced by tags, as for :func:`baton.score`.
        note: takes what of the dataset is not read; the logger `baton` warns by default.

    Raises:
        InputError: files with errors, or a suffix that the dialect is not written with.
    """
    paths = [dataset] if isinstance(dataset, str | os.PathLike) else list(dataset)
    file = Path(out)
    if not paths:
        raise InputError("name the files or folders to convert")
    catalog = load_catalog(agents) if agents is not None else None
    try:
        cases = load_dataset(each_once(paths, note), agents=catalog)
    except InputError as error:
        drafts = "is a recording, not a dataset: `baton draft` turns it into cases"
        recordings = given_as(map(Path, paths), "traces", drafts)
        raise InputError(recordings or not_a_dataset(map(Path, paths)) or error.problems) from None
    extra_files = [Path(each) for each in (agents, initial_session) if each is not None]
    refuse_overwriting([file], [*cases.files, *extra_files])
    start = None
    if initial_session is not None:
        begins = Path(initial_session)
        start = read_session(Document(str(begins), read_bytes(begins), "json"))
    redaction = redaction_of(redact)
    converted = converted_as(cases, to, file, agents=catalog, redaction=redaction, start=start)
    make_folder(file.parent)
    with naming(file):
        file.write_text(converted.text, encoding="utf-8")
    for text in (*cases.notes, *converted.notes):
        note(text)
    if start is not None:
        own = [case.id for case in cases if states_session(case)]
        if own:
            some = ", ".join(own[:3]) + (", …" if len(own) > 3 else "")
            note(f"{counted(len(own), 'case')} already had a session and kept it: {some}")
    return ConvertedFile(converted, len(cases))


def draft(
    traces: TracesLike,
    *,
    agents: PathLike | None = None,
    redact: RedactLike = True,
    note: Note = log_note,
) -> str:
    """Return a dataset (YAML) that expects what recorded traces did; each becomes a case.

    Args:
        traces: traces, files and folders with recorded ones, and servers (``server://HOST``).
        agents: agent definitions.
        redact: what is replaced by tags, as for :func:`baton.score`.
        note: called with what the recordings lack; by default the logger `baton` warns.

    Raises:
        InputError: files with errors, or without a trace.
    """
    every = _recorded(traces, agents, redact, note)
    recorded = [trace for trace in every if trace.turns]
    empty = [trace.source.location or trace.id for trace in every if not trace.turns]
    if not recorded:
        raise InputError(f"no case: there is no message to an agent in {', '.join(empty[:5])}")
    for place in empty:
        note(f"{place}: no case, because there is no message to an agent")
    for trace in recorded:
        for number, turn in enumerate(trace.turns, 1):
            if turn.input is None:
                note(f"{trace.id}: turn {number}: the recording does not hold the user's message")
            if turn.status != "completed":
                note(f"{trace.id}: turn {number} is {turn.status}: is this a run to expect again?")
    for id_, count in Counter(trace.case or trace.id for trace in recorded).items():
        if count > 1:
            note(f"{count} recordings are called {id_}: their cases are {id_}, {id_}#2 and so on")
    return draft_yaml(recorded)


def draft_dispatches(
    traces: TracesLike,
    dispatches: Sequence[str],
    *,
    form: Form = "decision",
    context_turns: int = CONTEXT_TURNS,
    expect: bool = False,
    agents: PathLike | None = None,
    redact: RedactLike = True,
    note: Note = log_note,
) -> list[Case]:
    """Return a case for each of some dispatches of recorded traces.

    Faults that the record proves (``tool_attempted``) are added to the failure modes of the case.

    Args:
        traces: as for :func:`draft`.
        dispatches: ids of dispatches; ``TRACE/ID`` where several traces have one with that id.
        form: how the cases are played.
        context_turns: the number of turns before and after a dispatch that a case holds in full.
        expect: whether the case expects the target of the dispatch and the tools that it allowed;
            otherwise it expects nothing.
        agents: as for :func:`draft`.
        redact: as for :func:`draft`.
        note: as for :func:`draft`.

    Raises:
        InputError: as for :func:`draft`; there is no such dispatch, or several.
    """
    recorded = _recorded(traces, agents, redact, note)
    if context_turns < 0:
        raise InputError(f"{option('context_turns')} has to be at least 0, got {context_turns}")
    problems: list[str] = []
    cases: dict[str, Case] = {}
    for dispatch_id in dispatches:
        try:
            trace, made = find_dispatch(dispatch_id, recorded)
        except InputError as error:
            problems.append(str(error))
            continue
        case = dispatch_case(
            trace,
            made.id,
            form=form,
            context_turns=context_turns,
            expected=as_made(trace, made) if expect else None,
            failure_modes=_failure_modes(trace, made),
        )
        cases[case.id] = case
        turns = [turn for turn in trace.turns if made in turn.dispatches]
        if turns and turns[0].input is None:
            note(f"{case.id}: the recording does not hold the user's message")
    if problems:
        raise InputError([Problem(message=text) for text in problems])
    return list(cases.values())


def dispatch_yaml(cases: Sequence[Case]) -> str:
    """Return dispatch cases as a file that Baton reads."""
    return _RECORDED + own_yaml(cases)


_RECORDED = """\
# Drafted from recorded dispatches. `baton score` scores them as recorded, `baton eval` plays them.
"""


def write_dispatch_cases(
    cases: Sequence[Case], output: PathLike, inputs: Iterable[PathLike] = ()
) -> list[Path]:
    """Write dispatch cases into a file, or (without a suffix) into a folder, a file for each.

    Args:
        cases: the cases.
        output: the file or folder.
        inputs: what was read, and must not be overwritten.

    Raises:
        InputError: a file would be overwritten that was read, or two cases have one file name.
    """
    place = Path(output)
    files = {place: list(cases)}
    if place.is_dir() or place.suffix == "":
        files = {place / f"{_file_name(case)}.yaml": [case] for case in cases}
        if len(files) < len(cases):
            message = "two cases have the same file name: write them into one file"
            raise InputError(Problem(file=str(place), message=message))
    refuse_overwriting(list(files), [os.fspath(each) for each in inputs])
    for file, some in files.items():
        make_folder(file.parent)
        with naming(file):
            file.write_text(dispatch_yaml(some), encoding="utf-8")
    return list(files)


def _file_name(case: Case) -> str:
    """Return the id of a case, with characters that file names cannot contain replaced."""
    return re.sub(r"[^\w.-]+", "_", case.id).strip("._")[:120] or "case"


def _failure_modes(trace: Trace, made: Dispatch) -> list[str]:
    """Return the kinds of faults of a dispatch that the record proves."""
    plan = make_plan(PROVEN_SPECS)
    context = EvalContext(only=frozenset({made.id}))
    kinds = []
    for planned in plan.evaluators:
        scores = planned.evaluator.evaluate(trace, None, context)
        for score in scores if isinstance(scores, list) else ():
            if score.subject == [made.id] and score.status == "failed":
                rows = score.details.get("findings") or []
                kinds += [row["kind"] for row in rows if not row.get("warning")]
    return list(dict.fromkeys(kinds))


def _recorded(
    traces: TracesLike,
    agents: PathLike | None,
    redact: RedactLike,
    note: Note,
) -> list[Trace]:
    some = traces_or_paths(traces)
    if not some:
        raise InputError("name the traces to draft cases from")
    paths = [each for each in some if not isinstance(each, Trace)]
    hidden = redaction_of(redact)
    given = [hidden.trace(each) for each in some if isinstance(each, Trace)]
    if not paths:
        return given
    files = [Path(path) for path in local_sources(each_once(paths, note), note)]
    try:
        recorded = load_traces(files, agents=agents, redact=redact)
    except InputError as error:
        problems = unreadable(error.problems, files, "dataset", IS_A_DATASET)
        raise InputError(problems) from None
    if not recorded:
        raise InputError(f"no trace in {', '.join(map(str, files))}")
    return given + recorded
