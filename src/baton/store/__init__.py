"""Evaluation folders: written while an evaluation runs, read by everything that reports."""

from .read import Header, StoredEvaluation, latest_evaluation, read_evaluation
from .rows import IndexRow, body_of, index_row, score_row
from .write import EvaluationWriter, FolderStatus

__all__ = [
    "EvaluationWriter",
    "FolderStatus",
    "Header",
    "IndexRow",
    "StoredEvaluation",
    "body_of",
    "index_row",
    "latest_evaluation",
    "read_evaluation",
    "score_row",
]
