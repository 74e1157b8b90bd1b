"""Evaluators of other tools that ask a model, by their names."""

from __future__ import annotations

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
"""Of Strands; judge-llm has a ``TrajectoryEvaluator`` of its own, which asks nobody."""

JUDGE_LLM_JUDGED = frozenset(
    {
        "llm_judge_evaluator",
        "LLMJudgeEvaluator",
        "embedding_similarity_evaluator",
        "EmbeddingSimilarityEvaluator",
    }
)
"""Of judge-llm; a case may override their options although Baton has not been asked for them."""

JUDGED = STRANDS_JUDGED | JUDGE_LLM_JUDGED
