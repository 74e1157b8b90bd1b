"""Other tools' files that say how an agent's tools fail or answer in tests.

Strands' chaos cases (`effects` of a case) and the environment simulation of Google ADK.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Wire(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts: an unknown key stops the run."""


class ChaosEffect(Wire, kw_only=True):
    """An effect on a tool; each kind has its own options."""

    effect_type: Literal[
        "timeout",
        "network_error",
        "execution_error",
        "validation_error",
        "truncate_fields",
        "remove_fields",
        "corrupt_values",
    ]
    error_message: str | None = None
    max_length: Annotated[int, msgspec.Meta(ge=0)] | None = None
    remove_ratio: Share | None = None
    corrupt_ratio: Share | None = None


class ChaosEffects(Wire, kw_only=True):
    """``effects`` of a chaos case of Strands: by tool, one for each."""

    tool_effects: dict[str, list[ChaosEffect]] = msgspec.field(default_factory=dict)
    model_effects: dict[str, list[Any]] | None = None

    def __post_init__(self) -> None:
        if any(self.model_effects.values() if self.model_effects else ()):
            raise ValueError(
                "`model_effects` change what models say; Baton changes what tools answer: leave "
                "them out"
            )
        twice = next((name for name, some in self.tool_effects.items() if len(some) > 1), None)
        if twice is not None:
            raise ValueError(f"`{twice}` has several effects; a case has one for each tool")


class InjectedError(Wire, kw_only=True):
    """An error that ADK makes a tool return."""

    injected_http_error_code: int
    error_message: str


class Injection(Wire, kw_only=True):
    """An answer of ADK in place of a tool's, for some calls of it."""

    injection_probability: Share = 1.0
    match_args: dict[str, Any] | None = None
    injected_latency_seconds: Annotated[float, msgspec.Meta(ge=0, le=120)] = 0.0
    random_seed: int | None = None
    injected_error: InjectedError | None = None
    injected_response: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if bool(self.injected_error) == bool(self.injected_response):
            raise ValueError("an injection has an `injected_error` or an `injected_response`")


class ToolSimulation(Wire, kw_only=True):
    """ADK's simulation of a tool; the strategy is for calls without an injection, 0 for none."""

    tool_name: str
    injection_configs: list[Injection] = msgspec.field(default_factory=list)
    mock_strategy_type: (
        Literal[0, 1, 2]
        | Literal["MOCK_STRATEGY_UNSPECIFIED", "MOCK_STRATEGY_TOOL_SPEC", "MOCK_STRATEGY_TRACING"]
    ) = 0

    def __post_init__(self) -> None:
        if not self.injection_configs and not self.made_up:
            raise ValueError("a tool needs `injection_configs` or a `mock_strategy_type` above 0")
        if any(each.injection_probability < 1 for each in self.injection_configs) and any(
            each.match_args for each in self.injection_configs
        ):
            raise ValueError(
                "an `injection_probability` below 1 beside `match_args`: it cannot be known "
                "beforehand which calls it applies to; leave one of them out"
            )

    @property
    def made_up(self) -> bool:
        """Whether a model generates the answers."""
        return self.mock_strategy_type not in (0, "MOCK_STRATEGY_UNSPECIFIED")


class EnvironmentSimulation(Wire, kw_only=True):
    """A file of ADK's ``environment_simulation``; Baton's judge is called instead of its model."""

    tool_simulation_configs: list[ToolSimulation]
    simulation_model: str | None = None
    simulation_model_configuration: dict[str, Any] | None = None
    tracing: str | None = None
    environment_data: str | None = None

    def __post_init__(self) -> None:
        names = [each.tool_name for each in self.tool_simulation_configs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the tool `{twice}` is listed twice")
