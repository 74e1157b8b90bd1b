"""The record, cases, scores, the seams between parts, and views of the record.

Imports nothing of the rest of Baton.
"""

from .agent_scores import AgentCounts, AgentScores, Asked, Low, plain_agent_scores
from .case import (
    AnyOrder,
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
from .efficiency import COUNTERS, Efficiency, EfficiencySums, Sum, plain_sums
from .errors import BatonError, InputError, Problem, ProviderError, counted, nearest, suggestion
from .evaluation import CaseResult, Evaluation, EvaluatorCounts, GateResult
from .integrity import integrity_problems, usage_problems
from .judging import Judge, JudgeError, JudgeErrorKind, JudgeRequest, JudgeResponse
from .known import known
from .ports import EvalContext, Evaluator, Provider
from .routing import OTHERS, Routed, RoutingCell, RoutingCounts
from .score import (
    STATUSES,
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
    "COUNTERS",
    "OTHERS",
    "SCHEMA_VERSION",
    "STATUSES",
    "AgentCard",
    "AgentCounts",
    "AgentRun",
    "AgentScores",
    "AnyOrder",
    "Asked",
    "BatonError",
    "Case",
    "CaseIndex",
    "CaseResult",
    "CaseRubric",
    "Content",
    "Dataset",
    "Dispatch",
    "Dropped",
    "Efficiency",
    "EfficiencySums",
    "EvalContext",
    "Evaluation",
    "Evaluator",
    "EvaluatorCounts",
    "Evidence",
    "ExpectedDispatch",
    "ExpectedToolCall",
    "ExpectedTurn",
    "ExpectedVisit",
    "GateResult",
    "GotBack",
    "HandedOff",
    "InputError",
    "Judge",
    "JudgeError",
    "JudgeErrorKind",
    "JudgeRequest",
    "JudgeResponse",
    "JudgeUse",
    "Location",
    "Low",
    "Override",
    "Part",
    "Problem",
    "Provider",
    "ProviderError",
    "Routed",
    "RoutingCell",
    "RoutingCounts",
    "Said",
    "Scenario",
    "Score",
    "Session",
    "Source",
    "Status",
    "Step",
    "Sum",
    "ToolCall",
    "Trace",
    "Turn",
    "Unit",
    "Usage",
    "case_status",
    "counted",
    "integrity_problems",
    "known",
    "nearest",
    "plain_agent_scores",
    "plain_sums",
    "suggestion",
    "usage_problems",
]
