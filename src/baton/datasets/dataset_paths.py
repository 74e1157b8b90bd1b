"""Loading datasets: paths to one Dataset, or every problem."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from baton.datasets.files import CaseSequence, JoinedCases, Place
from baton.formats.own_files import LEADS_OUT
from baton.formats.storage_addresses import is_address, shown_address
from baton.model import AgentCard, CaseIndex, Dataset, InputError, Problem, suggestion
from baton.model.dataset import Format

from .files import About, FileCases, dataset_files, read_file

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def load_dataset(path: Paths, *, agents: Mapping[str, AgentCard] | None = None) -> Dataset:
    """Load cases from a file, a folder, ``FILE:case1,case2``, or several of these.

    The format of each file is detected from its content: eval sets of ADK (both shapes, and the two
    older formats), judge-llm's dialect in JSON or YAML, cases and experiments of Strands, test
    cases of AWS's accelerator, session-resume tests (``steps``), Baton's own YAML, JSON or JSON
    lines. Folders are walked; files in them that hold no cases are named in ``notes``. ``agents``
    are definitions, by name: a trajectory of Strands may name agents or tools, and does not say
    which.

    Raises:
        InputError: lists every problem of every file; nothing is loaded then.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    problems: list[Problem] = []
    parts: list[FileCases] = []
    notes: list[str] = []
    wanted: dict[str, list[str]] = {}
    # Files to read, each with the selected cases: several selections of a file add up.
    targets: dict[Path, list[str]] = {}
    for item in paths:
        spec = os.fspath(item)
        if is_address(spec):
            message = "is an address: cases are read from files, so download them first"
            problems.append(Problem(file=shown_address(spec), message=message))
            continue
        head, colon, tail = spec.rpartition(":")
        if Path(spec).exists() or not colon or not Path(head).exists():
            target, chosen = Path(spec), []
        else:
            target, chosen = Path(head), [name.strip() for name in tail.split(",") if name.strip()]
        if target not in targets:
            targets[target] = chosen
        elif targets[target] and chosen:
            targets[target] = [*targets[target], *chosen]
        else:
            targets[target] = []
    for target, chosen in targets.items():
        try:
            files = _read(target, agents, notes, problems)
            parts += files
            for part in files if chosen else ():
                wanted[part.file] = chosen
        except InputError as error:
            problems += error.problems
    if not problems:
        # An id may not occur twice in one file; two files may use the same id.
        for part in parts:
            first: dict[str, int] = {}
            lines = part.lookup.lines
            for place, case_id in enumerate(part.lookup.ids):
                earlier = first.setdefault(case_id, place)
                if earlier != place:
                    message = (
                        f"the case id `{case_id}` is a duplicate, first on line {lines[earlier]}"
                    )
                    problems.append(Problem(file=part.file, line=lines[place], message=message))
        for part in parts:
            ids = part.lookup.ids
            for name in wanted.get(part.file, ()):
                if name not in ids:
                    problems.append(
                        Problem(
                            file=part.file, message=f"no case `{name}`; {suggestion(name, ids)}"
                        )
                    )
    if not parts and not problems:
        problems.append(Problem(message=f"no cases in {', '.join(map(str, paths))}"))
    if problems:
        raise InputError(problems)
    formats: set[Format] = {part.format for part in parts}
    cases: CaseSequence = parts[0].cases
    index = parts[0].lookup
    if len(parts) > 1 or wanted:
        cases, index = _chosen(parts, wanted, notes)
    return Dataset(
        cases,
        name="+".join(part.name for part in parts[:3]) + ("+…" if len(parts) > 3 else ""),
        format=formats.pop() if len(formats) == 1 else "mixed",
        index=index,
        notes=[*notes, *(note for part in parts for note in part.notes)],
        files={part.file: part.format for part in parts},
    )


def _read(
    target: Path,
    agents: Mapping[str, AgentCard] | None,
    notes: list[str],
    problems: list[Problem],
) -> list[FileCases]:
    if not target.exists():
        raise InputError(Problem(file=str(target), message="no such file or folder"))
    if not target.is_dir():
        cases = read_file(target, About(target.name.split(".")[0], agents))
        if cases is None:
            raise InputError(Problem(file=str(target), message=_NOT_A_DATASET))
        return [cases]
    parts = []
    links: list[Path] = []
    for file in dataset_files(target, links):
        stem = file.relative_to(target).with_name(file.name.split(".")[0]).as_posix()
        try:
            cases = read_file(file, About(stem, agents))
        except InputError as error:
            problems += error.problems
            continue
        if cases is None and file.name != _CRITERIA:
            notes.append(f"{file}: contains no cases")
        elif cases is not None:
            parts.append(cases)
    problems += [Problem(file=str(link), message=LEADS_OUT) for link in links]
    return parts


_CRITERIA = "test_config.json"  # is beside ADK's cases, and says how to score them


_NOT_A_DATASET = (
    "contains no cases: an eval set has `eval_cases`, a dataset of Baton `cases`, "
    "a flat test file a list of turns with `query`, test cases of Strands `input` and `name`, "
    "session-resume tests `test_case` and `steps`"
)


def _chosen(
    parts: list[FileCases], wanted: dict[str, list[str]], notes: list[str]
) -> tuple[CaseSequence, CaseIndex]:
    """Join the selected cases; an id that several files use gets the file's label as prefix."""
    places = [
        (part, position, case_id)
        for part in parts
        for position, case_id in enumerate(part.lookup.ids)
        if part.file not in wanted or case_id in wanted[part.file]
    ]
    shared = {id_ for id_, count in Counter(place[2] for place in places).items() if count > 1}
    labels = Counter(part.label for part in parts)
    index = CaseIndex()
    for part, position, case_id in places:
        label = part.label if labels[part.label] == 1 else part.file
        index.take(part.lookup, position, f"{label}/{case_id}" if case_id in shared else case_id)
    if shared:
        some = ", ".join(f"`{id_}`" for id_ in sorted(shared)[:3])
        notes.append(f"duplicate ids were prefixed with their file's name: {some}")
    return JoinedCases([Place(p.cases, n) for p, n, _ in places], index.ids), index
