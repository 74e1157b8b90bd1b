"""Evaluation folders: written while an evaluation runs, and read by reports."""

from baton.formats.evaluation_folder import IndexRow
from baton.formats.evaluation_header import Header

from .read_evaluation import (
    FoundTrace,
    Reportable,
    StoredEvaluation,
    evaluation_traces,
    latest_evaluation,
    read_evaluation,
    recordings_of,
    repeat_of,
    rows_of,
)
from .remote import (
    NotUploaded,
    evaluation_at,
    holds_evaluation,
    temporary_folder,
    upload,
)
from .write_evaluation import (
    Encoded,
    EvaluationWriter,
    FolderStatus,
    Kept,
    encoded,
    keep,
    mark_interrupted,
    recorded_of,
    row_of,
    timings_of,
)

__all__ = [
    "Encoded",
    "EvaluationWriter",
    "FolderStatus",
    "FoundTrace",
    "Header",
    "IndexRow",
    "Kept",
    "NotUploaded",
    "Reportable",
    "StoredEvaluation",
    "encoded",
    "evaluation_at",
    "evaluation_traces",
    "holds_evaluation",
    "keep",
    "latest_evaluation",
    "mark_interrupted",
    "read_evaluation",
    "recorded_of",
    "recordings_of",
    "repeat_of",
    "row_of",
    "rows_of",
    "temporary_folder",
    "timings_of",
    "upload",
]
