"""Finds evaluators by name: those in this package, and the rubrics, which are data.

Each evaluator's module in this package is named after its type, and the class declares the rest:
its summary and its names in other tools. So finding an evaluator takes importing one module. Only
another tool's name, or an unknown name, takes importing all of them.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from baton.model import InputError, nearest, suggestion
from baton.plugins import RUBRIC_SUFFIXES, Alias, Entry, module_names

if TYPE_CHECKING:
    from .judging.rubric import Rubric

STRANDS_JUDGED = frozenset(
    {
        "AttackSuccessEvaluator",
        "CoherenceEvaluator",
        "ConcisenessEvaluator",
        "CorrectnessEvaluator",
        "FailureCommunicationEvaluator",
        "FaithfulnessEvaluator",
        "GoalSuccessRateEvaluator",
        "HarmfulnessEvaluator",
        "HelpfulnessEvaluator",
        "InstructionFollowingEvaluator",
        "InteractionsEvaluator",
        "MultimodalCorrectnessEvaluator",
        "MultimodalFaithfulnessEvaluator",
        "MultimodalInstructionFollowingEvaluator",
        "MultimodalOutputEvaluator",
        "MultimodalOverallQualityEvaluator",
        "OutputEvaluator",
        "PartialCompletionEvaluator",
        "RecoveryStrategyEvaluator",
        "RefusalEvaluator",
        "ResponseRelevanceEvaluator",
        "SkillInstructionFollowingEvaluator",
        "SkillSelectionAccuracyEvaluator",
        "StereotypingEvaluator",
        "ToolParameterAccuracyEvaluator",
        "ToolSelectionAccuracyEvaluator",
        "TrajectoryEvaluator",
    }
)
"""Names from Strands. judge-llm has its own ``TrajectoryEvaluator``, which calls no judge."""

JUDGE_LLM_JUDGED = frozenset({"embedding_similarity_evaluator", "EmbeddingSimilarityEvaluator"})
"""Names from judge-llm. A case can override their options even if a config does not use them."""


@cache
def _entries_of(module: str) -> tuple[Entry, ...]:
    """Return the evaluators in a module: the classes that declare a purpose."""
    name = f"{__package__}.{module}"
    members: Iterable[Any] = vars(importlib.import_module(name)).values()
    classes: list[Any] = [each for each in members if inspect.isclass(each)]
    return tuple(
        Entry(each.type, each, each.summary, each.aliases, each.runs_code, each.takes_rubrics)
        for each in classes
        if each.__module__ == name and "summary" in vars(each)
    )


@cache
def evaluator_entries() -> tuple[Entry, ...]:
    """Return the evaluators in this package, sorted by name."""
    entries = (entry for module in module_names(__file__) for entry in _entries_of(module))
    return tuple(sorted(entries, key=lambda entry: entry.type))


def evaluator_entry(name: str, own: Sequence[Entry] = ()) -> Entry:
    """Find an evaluator by any of its names. ``own`` are the user's rubrics.

    Raises:
        InputError: no evaluator has this name. The error lists similar names.
    """
    usual = _entries_of(name) if name in module_names(__file__) else ()
    entry = next((each for each in (*own, *usual) if name in each.names), None)
    entry = entry or next((each for each in evaluator_entries() if name in each.names), None)
    if entry is not None:
        return entry
    known = {alias: each for each in (*own, *all_evaluators()) for alias in each.names}
    if name in known:
        return known[name]
    if name in STRANDS_JUDGED | JUDGE_LLM_JUDGED:
        raise InputError(f"Baton has no rubric for `{name}`; remove it")
    if "," in name and all(part.strip() in known for part in name.split(",")):
        raise InputError(f"`{name}` names several evaluators: name each separately")
    # There are about a hundred names, too many to read in an error message.
    hint = suggestion(name, known) if nearest(name, known) else "`baton list` shows all of them"
    raise InputError(f"unknown evaluator `{name}`; {hint}")


def requested_evaluator(
    name: str, folder: Path = Path(), own: Sequence[Entry] = ()
) -> tuple[Entry, str]:
    """Find an evaluator by any of its names, or by the file of a rubric, relative to ``folder``.

    Also return its name: that of the rubric for a file.

    Raises:
        InputError: no evaluator has this name, or the file has no valid rubric.
    """
    if name.endswith(RUBRIC_SUFFIXES):
        own = own_rubrics([folder / name])
        name = own[0].type
    return evaluator_entry(name, own), name


class ClassName(NamedTuple):
    """The class name that another tool has for an evaluator; called like that class."""

    asked: str

    def __call__(self, *, name: str | None = None, **options: Any) -> Any:
        """Create the evaluator, with the options that it has under this name.

        Raises:
            InputError: an option is wrong.
        """
        from .judged import Judged, RubricEntry, of_keyword

        entry = evaluator_entry(self.asked)
        if isinstance(entry.target, RubricEntry):
            return Judged(self.asked, name=name, **options)
        alias = entry.asked_as(self.asked)
        try:
            return entry.target.from_options(name or self.asked, alias.completed(options))
        except InputError as error:
            raise InputError(map(of_keyword, alias.in_its_words(error).problems)) from None


def evaluator_of_type(type_: str) -> Entry | None:
    """Find an evaluator by its canonical name, or return ``None`` for a user-defined one."""
    entries = _entries_of(type_) if type_ in module_names(__file__) else ()
    entry = next((each for each in entries if each.type == type_), None)
    if entry is not None or ":" in type_:
        return entry
    return next((each for each in rubric_entries() if each.type == type_), None)


def all_evaluators() -> tuple[Entry, ...]:
    """Return all evaluators, including rubrics."""
    return (*evaluator_entries(), *rubric_entries())


def known_evaluator_names() -> set[str]:
    """Return every name whose options a case can override, including other tools' evaluators."""
    ours = {name for entry in all_evaluators() for name in entry.names}
    return ours | JUDGE_LLM_JUDGED


@cache
def rubric_entries() -> tuple[Entry, ...]:
    """Return the rubrics that come with Baton. Their files are read on first use."""
    from .judging.rubric_files import shipped

    return tuple(map(_entry_of_rubric, shipped().values()))


def own_rubrics(folders: Iterable[Path]) -> tuple[Entry, ...]:
    """Return the user's rubrics from folders (or files).

    Raises:
        InputError: a folder is missing or empty, a rubric is faulty, or a name is already taken.
    """
    from .judging.rubric_files import load_folders

    return tuple(_entry_of_rubric(rubric) for rubric, _ in load_folders(folders).values())


_FLAGS: Mapping[str, Any] = {"true": True, "false": False}
"""YAML keys are texts. As the value of another tool's option, `"true"` means true."""


def _entry_of_rubric(rubric: Rubric) -> Entry:
    from .judged import RubricEntry

    aliases = []
    for alias in rubric.aliases:
        if isinstance(alias, str):
            aliases.append(Alias(alias, alias))
            continue
        values = tuple(
            (
                name,
                {_FLAGS.get(key, key): ours for key, ours in each.items()},
            )
            for name, each in alias.values.items()
        )
        aliases.append(
            Alias(
                alias.name,
                alias.class_name or alias.name,
                presets=alias.presets,
                renames=alias.renames,
                values=values,
                unused=tuple(alias.unused),
            )
        )
    return Entry(rubric.name, RubricEntry(rubric), rubric.summary, tuple(aliases))
