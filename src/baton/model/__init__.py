"""The record, cases, scores, the seams between parts, and views of the record.

Imports nothing of the rest of Baton.
"""

from .case import (
    Case,
    CaseRubric,
    ExpectedDispatch,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    Location,
    Scenario,
    Session,
)
from .content import Content, Part
from .dataset import CaseIndex, Dataset, Override
from .errors import BatonError, InputError, Problem, ProviderError, nearest, suggestion
from .integrity import integrity_problems, usage_problems
from .known import known
from .ports import EvalContext, Evaluator, Provider
from .score import (
    STATUSES,
    CaseResult,
    Evaluation,
    EvaluatorCounts,
    Evidence,
    JudgeUse,
    Score,
    Status,
    Unit,
    case_status,
)
from .trace import (
    SCHEMA_VERSION,
    AgentCard,
    AgentRun,
    Dispatch,
    Dropped,
    GotBack,
    HandedOff,
    Said,
    Source,
    Step,
    ToolCall,
    Trace,
    Turn,
    Usage,
)

__all__ = [
    "SCHEMA_VERSION",
    "STATUSES",
    "AgentCard",
    "AgentRun",
    "BatonError",
    "Case",
    "CaseIndex",
    "CaseResult",
    "CaseRubric",
    "Content",
    "Dataset",
    "Dispatch",
    "Dropped",
    "EvalContext",
    "Evaluation",
    "Evaluator",
    "EvaluatorCounts",
    "Evidence",
    "ExpectedDispatch",
    "ExpectedToolCall",
    "ExpectedTurn",
    "ExpectedVisit",
    "GotBack",
    "HandedOff",
    "InputError",
    "JudgeUse",
    "Location",
    "Override",
    "Part",
    "Problem",
    "Provider",
    "ProviderError",
    "Said",
    "Scenario",
    "Score",
    "Session",
    "Source",
    "Status",
    "Step",
    "ToolCall",
    "Trace",
    "Turn",
    "Unit",
    "Usage",
    "case_status",
    "integrity_problems",
    "known",
    "nearest",
    "suggestion",
    "usage_problems",
]
