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
        "embedding_similarity_evaluator",
        "EmbeddingSimilarityEvaluator",
    }
)
"""Of judge-llm; a case may override their options although Baton has not been asked for them."""

ADK_JUDGED = frozenset(
    {
        "final_response_match_v2",
        "hallucinations_v1",
        "multi_turn_task_success_v1",
        "multi_turn_tool_use_quality_v1",
        "multi_turn_trajectory_quality_v1",
        "per_turn_user_simulator_quality_v1",
        "response_evaluation_score",
        "rubric_based_final_response_quality_v1",
        "rubric_based_multi_turn_trajectory_quality_v1",
        "rubric_based_tool_use_quality_v1",
        "safety_v1",
    }
)
"""Of Google ADK: metrics of a ``test_config.json``."""

JUDGED = STRANDS_JUDGED | JUDGE_LLM_JUDGED
