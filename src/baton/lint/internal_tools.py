"""A tool that a model uses inside itself, expected among the calls."""

from __future__ import annotations

from collections.abc import Iterator

from .scope import CaseFile, Scope
from .warning import LintWarning

NAME = "internal-tool"
_INTERNAL = {
    "google_search": "Google Search",
    "GoogleSearchTool": "Google Search",
    "google_search_retrieval": "Google Search",
    "enterprise_web_search": "Enterprise Web Search",
    "url_context": "URL context",
    "UrlContextTool": "URL context",
    "code_execution": "code execution",
    "code_executor": "code execution",
    "built_in_code_execution": "code execution",
    "BuiltInCodeExecutor": "code execution",
    "vertex_ai_search": "Vertex AI Search",
    "VertexAiSearchTool": "Vertex AI Search",
}
_SCORES_CALLS = ("tool_trajectory_avg_score", "tool_calls")


def internal_tools(scope: Scope) -> Iterator[LintWarning]:
    """Warn of expected calls that no run can have.

    A call that was recorded, and a function of the user's own with such a name, are left alone.
    """
    for file in scope.cases:
        if file.adk and any(p.evaluator.type in _SCORES_CALLS for p in file.evaluators):
            yield from _in_file(file, scope.functions)


def _in_file(file: CaseFile, functions: frozenset[str]) -> Iterator[LintWarning]:
    own = functions.union(*(app.functions for app in file.apps))
    for case, written in file.written():
        if not any(_named(call.name, own) for t in case.turns for call in t.tool_calls or ()):
            continue
        for turn in range(len(case.turns)):
            for call in written.calls(turn):
                if _named(call.name, own) and not call.recorded:
                    yield LintWarning(
                        file=file.file,
                        line=call.line,
                        rule=NAME,
                        what=f"`{call.name}` is expected in case `{case.id}`, and "
                        f"{_INTERNAL[call.name]} happens inside the model: no call is recorded",
                        remedy="take it out, and check the answer instead",
                    )


def _named(name: str, own: frozenset[str]) -> bool:
    return name in _INTERNAL and name not in own
