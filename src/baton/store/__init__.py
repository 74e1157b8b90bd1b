"""Evaluation folders: written while an evaluation runs, read by everything that reports."""

from baton.formats.evaluation_folder import Header, IndexRow

from .read import StoredEvaluation, latest_evaluation, read_evaluation, rows_of
from .resume import Kept, keep
from .rows import body_of, index_row, score_row
from .write import Encoded, EvaluationWriter, FolderStatus, encoded

__all__ = [
    "Encoded",
    "EvaluationWriter",
    "FolderStatus",
    "Header",
    "IndexRow",
    "Kept",
    "StoredEvaluation",
    "body_of",
    "encoded",
    "index_row",
    "keep",
    "latest_evaluation",
    "read_evaluation",
    "rows_of",
    "score_row",
]
