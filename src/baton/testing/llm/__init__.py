"""A scripted LLM on loopback that real SDKs can talk to, for testing judges offline.

It speaks the APIs of OpenAI, Anthropic, Google, Mistral and Bedrock; see
``docs/testing-judges.md``.
"""

from __future__ import annotations

from .exchange import Api, FaultKind, Message, Received, Reply, ScriptError
from .script import Script
from .server import LlmServer, llm_server

__all__ = [
    "Api",
    "FaultKind",
    "LlmServer",
    "Message",
    "Received",
    "Reply",
    "Script",
    "ScriptError",
    "llm_server",
]
