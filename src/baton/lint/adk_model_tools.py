"""ADK's tools that the model's provider runs."""

from __future__ import annotations

from collections.abc import Mapping

MODEL_TOOLS: Mapping[str, str] = {
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
"""A description of each, by the names of the variable, of the class and of older versions: cases
use all of these. The answer has grounding metadata, but no function call, so a case that expects
one never passes.
"""
