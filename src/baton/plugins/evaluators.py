"""The evaluators there are, and what other tools call them."""

from __future__ import annotations

from .entry import Alias, Entry

EVALUATORS = (
    Entry(
        "agent_chain",
        "baton.evaluators.agent_chain:AgentChain",
        "which agents ran in a turn, and in which order",
        (
            Alias("subagent_evaluator", "SubAgentEvaluator"),
            Alias(
                "parallel_chain",
                "ParallelChain",
                presets={"sequence_match_type": "exact", "min_match_ratio": 1.0},
            ),
        ),
    ),
    Entry(
        "tool_calls",
        "baton.evaluators.tool_calls:ToolCalls",
        "which tools were called, with which arguments, in which order",
        (
            Alias(
                "trajectory_evaluator",
                "TrajectoryEvaluator",
                presets={"mode": "exact", "arguments": "ignore", "threshold": 0.5},
                renames={
                    "argument_similarity_threshold": "argument_similarity",
                    "allow_extra_tools": "allow_extra",
                    "tool_name_match": "names",
                    "min_score_threshold": "threshold",
                },
                values=(
                    (
                        "sequence_match_type",
                        {
                            "exact": {"mode": "exact"},
                            "flexible": {"mode": "recall"},
                            "subset": {"mode": "recall"},
                            "superset": {"mode": "precision"},
                            "partial": {"mode": "partial"},
                        },
                    ),
                    ("compare_arguments", {True: {"arguments": "exact"}, False: {}}),
                    (
                        "argument_match_type",
                        {
                            "exact": {"arguments": "exact"},
                            "subset": {"arguments": "subset"},
                            "regex": {"arguments": "regex"},
                            "fuzzy": {"arguments": "similar"},
                        },
                    ),
                    ("compare_arguments", {True: {}, False: {"arguments": "ignore"}}),
                ),
            ),
            Alias(
                "trajectory_match",
                "TrajectoryMatch",
                presets={"mode": "exact"},
                values=(
                    (
                        "trajectory_match_mode",
                        {
                            "strict": {"mode": "exact"},
                            "unordered": {"mode": "f1", "threshold": 1.0},
                            "superset": {"mode": "any_order"},
                            "subset": {"mode": "precision", "threshold": 1.0},
                        },
                    ),
                    # There `subset` says of the actual arguments what ours says of the expected.
                    (
                        "tool_args_match_mode",
                        {
                            "exact": {"arguments": "exact"},
                            "ignore": {"arguments": "ignore"},
                            "subset": {"arguments": "superset"},
                            "superset": {"arguments": "subset"},
                        },
                    ),
                ),
            ),
        ),
    ),
    Entry(
        "tool_trajectory_avg_score",
        "baton.evaluators.tool_trajectory:ToolTrajectory",
        "tool calls, compared as Google ADK does",
    ),
    Entry(
        "adk_custom_metric",
        "baton.evaluators.adk_metric:AdkMetric",
        "a function of your own, written as a custom metric for Google ADK",
        runs_code=True,
    ),
    Entry(
        "response",
        "baton.evaluators.response:Response",
        "whether answers are what the case states, and meet rules of your own",
        (
            Alias(
                "response_evaluator",
                "ResponseEvaluator",
                presets={"match": "jaccard", "threshold": 0.8},
                renames={"similarity_threshold": "threshold"},
                values=(
                    (
                        "match_type",
                        {
                            "exact": {"match": "equals"},
                            "semantic": {"match": "jaccard"},
                            "rouge": {"match": "rouge1"},
                            "recall": {"match": "recall"},
                        },
                    ),
                ),
            ),
        ),
    ),
    Entry(
        "response_match",
        "baton.evaluators.response_match:ResponseMatch",
        "how many words an answer shares with the expected one, by ROUGE-1",
        (Alias("response_match_score", "ResponseMatchScore"),),
    ),
    Entry(
        "intermediate_responses",
        "baton.evaluators.intermediate_responses:IntermediateResponses",
        "whether agents on the way said what is expected of them",
    ),
    Entry(
        "interactions",
        "baton.evaluators.interactions:Interactions",
        "which agents had their turn, after whom, and what they said",
        (Alias("interactions", "InteractionsEvaluator"),),
    ),
    Entry(
        "structured_output",
        "baton.evaluators.structured_output:StructuredOutput",
        "how many of the expected fields an answer has, with their values",
        (Alias("structured_output", "StructuredOutputEvaluator"),),
    ),
    Entry(
        "equals",
        "baton.evaluators.equals:Equals",
        "whether an answer is exactly what is expected",
        (Alias("equals", "Equals"),),
    ),
    Entry(
        "contains",
        "baton.evaluators.contains:Contains",
        "whether the last answer holds a text",
        (Alias("contains", "Contains"),),
    ),
    Entry(
        "starts_with",
        "baton.evaluators.contains:StartsWith",
        "whether the last answer starts with a text",
        (Alias("starts_with", "StartsWith"),),
    ),
    Entry(
        "tool_called",
        "baton.evaluators.tool_called:ToolCalled",
        "whether a tool was called, how often, and by whom",
        (Alias("tool_called", "ToolCalled", renames={"tool_name": "tool"}),),
    ),
    Entry(
        "state_equals",
        "baton.evaluators.state_equals:StateEquals",
        "whether the session ends in the expected state",
        (Alias("state_equals", "StateEquals", renames={"name": "state"}),),
    ),
    Entry(
        "latency",
        "baton.evaluators.latency:Latency",
        "how long the turns took",
        (
            Alias(
                "latency_evaluator",
                "LatencyEvaluator",
                renames={"max_latency_seconds": "max_seconds"},
                unused=("percentile",),
            ),
        ),
    ),
    Entry(
        "cost",
        "baton.evaluators.cost:Cost",
        "what a case cost, in USD",
        (
            Alias(
                "cost_evaluator",
                "CostEvaluator",
                renames={"max_cost_per_case": "max_usd"},
                values=(("currency", {"USD": {}}),),
            ),
        ),
    ),
    Entry("tokens", "baton.evaluators.tokens:Tokens", "how many tokens a case used"),
    Entry(
        "dispatch_routing",
        "baton.evaluators.dispatch_routing:DispatchRouting",
        "whether work was handed to the agents that a case expects",
    ),
    Entry(
        "dispatch_target_known",
        "baton.evaluators.dispatch_target_known:DispatchTargetKnown",
        "whether there is such an agent as the one that work was handed to",
    ),
    Entry(
        "dispatch_scope",
        "baton.evaluators.dispatch_scope:DispatchScope",
        "whether agents that get work keep to the tools they may use",
    ),
    Entry(
        "dispatch_completed",
        "baton.evaluators.dispatch_completed:DispatchCompleted",
        "whether work that was handed over was done and answered",
    ),
    Entry(
        "result_used",
        "baton.evaluators.result_used:ResultUsed",
        "whether the caller made anything of the result of a hand-off",
    ),
    Entry(
        "context_carried",
        "baton.evaluators.context_carried:ContextCarried",
        "whether numbers, names and limits of a request went along with a hand-off",
    ),
    Entry(
        "handoff_loops",
        "baton.evaluators.handoff_loops:HandoffLoops",
        "whether agents go round in circles",
    ),
    Entry(
        "dispatch_limits",
        "baton.evaluators.dispatch_limits:DispatchLimits",
        "how many hand-offs a turn makes, how deep, how wide, to how many agents, at what cost",
    ),
    Entry(
        "panel",
        "baton.evaluators.panel:Panel",
        "several models judge by one rubric, and the majority counts",
    ),
)


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
