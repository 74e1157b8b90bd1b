"""An evaluation in memory: its results, its reports and its folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

from baton import model
from baton.config.git import git_state
from baton.evaluators.registry import evaluator_of_type
from baton.formats.evaluation_header import VERSION
from baton.formats.storage_addresses import is_address, shown_address
from baton.model import (
    STATUSES,
    AgentsSeen,
    CaseResult,
    InputError,
    Problem,
    Provenance,
    Score,
    Status,
    suggestion,
)
from baton.reports.registry import report_entry
from baton.store import (
    EvaluationWriter,
    FoundTrace,
    Header,
    IndexRow,
    recorded_of,
    row_of,
)

PathLike = str | os.PathLike[str]


class Evaluation(model.Evaluation, kw_only=True):
    """One execution of a dataset, or one scoring of recorded traces.

    ``results`` are in the order of the dataset, with the repeats of a case together. ``about``
    says how the evaluation was made, as `evaluation.json` does. ``keep_traces``: whether a saved
    folder contains the traces; otherwise they are read again from the files that were scored.
    """

    about: Header = msgspec.field(default_factory=Header)
    keep_traces: bool = True

    @classmethod
    def of(cls, evaluation: model.Evaluation, about: Header, *, keep_traces: bool) -> Self:
        """Return a scored evaluation with reports and a folder."""
        if not keep_traces:
            for result in evaluation.results:
                if result.trace is not None:
                    result.recorded = recorded_of(result.trace)
        fields = {name: getattr(evaluation, name) for name in evaluation.__struct_fields__}
        return cls(**fields, about=about, keep_traces=keep_traces)

    def scores(self, evaluator: str | None = None) -> list[tuple[CaseResult, Score]]:
        """Return scores, each with the result of its case.

        In your own loop, check for missing scores before you compare with a threshold::

            for result, score in evaluation.scores("DispatchCorrectness"):
                assert score.value is not None and score.value >= 0.85, result.case_id

        Args:
            evaluator: any name of an evaluator; all evaluators by default.

        Raises:
            InputError: no evaluator has this name.
        """
        wanted = {each.evaluator for each in self.evaluators}
        if evaluator is not None and evaluator not in wanted:
            also = [
                each.evaluator
                for each in self.evaluators
                if (entry := evaluator_of_type(each.type)) and evaluator in entry.names
            ]
            if not also:
                message = f"`{evaluator}` was not asked for; {suggestion(evaluator, wanted)}"
                raise InputError(message)
            wanted = set(also)
        elif evaluator is not None:
            wanted = {evaluator}
        return [
            (result, score)
            for result in self.results
            for score in result.scores
            if score.evaluator in wanted
        ]

    @property
    def header(self) -> Header:
        """The contents of `evaluation.json`, without an id, as this is not stored."""
        return msgspec.structs.replace(
            self.about,
            version=VERSION,
            name=self.name,
            status=self.status,
            evaluators=self.evaluators,
            problems=self.problems,
            notices=self.notices,
            routing=self.routing,
            efficiency=self.efficiency,
            by_agent=self.by_agent,
            gate=self.gate,
            provenance=self._provenance,
            timings=self.timings,
            cases=self._cases,
        )

    @property
    def _cases(self) -> dict[Status, int]:
        cases: dict[Status, int] = dict.fromkeys(STATUSES, 0)
        for result in self.results:
            cases[result.status] += 1
        return cases

    @property
    def _provenance(self) -> Provenance:
        """Return the provenance from the start, with the current commit and the recorded agents."""
        before = self.about.provenance or Provenance()
        provenance = msgspec.structs.replace(before, git=git_state(Path()))
        agents = AgentsSeen()
        for result in self.results:
            if result.trace is not None:
                agents.add(result.trace.agents)
            if result.efficiency is not None:
                agents.add_models(result.efficiency.models)
        contents = [each.content for each in self.results if each.content is not None]
        return provenance.with_agents(agents.hashes()).with_recordings(contents)

    @property
    def folder(self) -> None:
        """``None``, as this evaluation is in memory."""

    def __len__(self) -> int:
        return len(self.results)

    def rows(self) -> Iterator[IndexRow]:
        """Yield a summary of each result; ``offset`` is its position in ``results``."""
        for place, result in enumerate(self.results):
            row = row_of(result)
            row.offset = place
            yield row

    def result(self, row: IndexRow) -> CaseResult:
        """Return the result of a row."""
        return self.results[row.offset]

    def with_traces(self) -> Iterator[tuple[CaseResult, FoundTrace]]:
        """Yield each result with its trace."""
        for result in self.results:
            why = "nothing was recorded" if result.trace is None else None
            yield result, FoundTrace(result.trace, why)

    def save(self, path: PathLike) -> Path:
        """Write an evaluation folder, as the command line does, and return it.

        `baton report`, `baton compare` and all other commands that take a folder accept it.
        Traces that were scored from files are not copied: the folder says where they are.

        Args:
            path: the folder; it must not exist yet.

        Raises:
            InputError: it exists, is an address, or cannot be written.
        """
        if is_address(os.fspath(path)):
            message = "is an address: save a folder, then `baton push FOLDER --out ADDRESS`"
            raise InputError(Problem(file=shown_address(os.fspath(path)), message=message))
        folder = Path(path)
        writer = EvaluationWriter(
            folder.parent,
            self.name,
            header=msgspec.structs.replace(self.about, timings=self.timings),
            keep_traces=self.keep_traces,
            repeats=self.about.repeats,
            folder=folder,
        )
        try:
            for result in self.results:
                writer.write(result)
            writer.finish(
                self.status if self.status != "skipped" else "error",
                evaluators=self.evaluators,
                cases=self._cases,
                problems=self.problems,
                routing=self.routing,
                efficiency=self.efficiency,
                by_agent=self.by_agent,
                gate=self.gate,
                provenance=self._provenance,
                notices=self.notices,
            )
        finally:
            writer.close()
        return folder

    def to_html(self, path: PathLike) -> None:
        """Write the page with every case and trace; raises InputError if that fails."""
        self._report("html", path)

    def to_junit(self, path: PathLike) -> None:
        """Write the JUnit report; raises InputError if that fails."""
        self._report("junit", path)

    def to_markdown(self, path: PathLike) -> None:
        """Write the report for a pull request; raises InputError if that fails."""
        self._report("markdown", path)

    def to_csv(self, path: PathLike) -> None:
        """Write a row for each score; raises InputError if that fails."""
        self._report("csv", path)

    def to_json(self, path: PathLike) -> None:
        """Write the JSON report; raises InputError if that fails."""
        self._report("json", path)

    def _report(self, kind: str, path: PathLike) -> None:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                report_entry(kind).target(self, file)
        except OSError as error:
            message = f"the report cannot be written: {error.strerror}"
            raise InputError(Problem(file=os.fspath(path), message=message)) from None
