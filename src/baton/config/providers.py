"""Options of providers, as far as a config names them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class AdkHttpOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A live server of Google ADK; ``endpoint_url`` is its ``/run`` or ``/run_sse``."""

    type: Literal["adk_http"]
    endpoint_url: str
    agent_id: str | None = None
    auth_type: Literal["none", "bearer", "api_key", "basic"] = "none"
    api_key: str | None = None
    auth_header: str = "X-API-Key"
    username: str | None = None
    password: str | None = None
    timeout: float = 60
    verify_ssl: bool = True
    retry_attempts: int = 3
    retry_delay: float = 1
    user_id: str | None = None
    app_name: str | None = None
    model: str | None = None
    custom_pricing: dict[str, dict[str, float]] | None = None
    agent_metadata: dict[str, Any] | None = None
