"""Stand-ins in files of other tools: Strands' chaos effects, ADK's environment simulation.

A case, a dataset or a config names such a file by ``from`` of ``stand_ins:``; its own settings
override the file's. Chaos cases of Strands contain their effects, and need no other file.
"""

from __future__ import annotations

import random
from pathlib import Path

from msgspec import structs

from baton.formats.document import Document, read_bytes
from baton.formats.simulations import (
    ChaosEffect,
    ChaosEffects,
    EnvironmentSimulation,
    ToolSimulation,
)
from baton.model import InputError, StandIns
from baton.model.stand_ins import Fault, Fixture, StandIn, merged


def with_file(stand_ins: StandIns | None, document: Document) -> StandIns | None:
    """Merge the file that stand-ins name; their own settings override it.

    Args:
        stand_ins: as in the document.
        document: the file that contains them, as `stand_ins`; the path is relative to its folder.

    Raises:
        InputError: the file is missing, is outside the folder, or has errors.
    """
    if stand_ins is None or stand_ins.from_ is None:
        return stand_ins
    folder = Path(document.file).parent
    file = folder / stand_ins.from_
    # Data must not name folders: a downloaded dataset must not make Baton read other files.
    if not file.resolve().is_relative_to(folder.resolve()):
        message = f"`{stand_ins.from_}` is outside the folder of this file: copy it there"
        raise InputError(document.problem_at(("stand_ins", "from"), message))
    if not file.is_file():
        message = f"`{stand_ins.from_}`: no such file beside this one"
        raise InputError(document.problem_at(("stand_ins", "from"), message))
    own = structs.replace(stand_ins, from_=None)
    return merged(_read(file), own)


def _read(file: Path) -> StandIns:
    data = read_bytes(file)
    is_json = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
    document = Document(str(file), data, "json" if is_json else "yaml")
    value = document.value()
    keys = set(value) if isinstance(value, dict) else set()
    if "effects" in keys:
        value = document.convert(value.get("effects"), ChaosEffects, path=("effects",))
        return chaos(value)
    if keys & {"tool_effects", "model_effects"}:
        return chaos(document.decode(ChaosEffects))
    if keys & {"tool_simulation_configs", "toolSimulationConfigs"}:
        return simulation(document.decode(EnvironmentSimulation))
    raise InputError(
        document.problem(
            "does not mention tools: it has neither `tool_effects` (chaos of Strands) nor "
            "`tool_simulation_configs` (environment simulation of ADK)"
        )
    )


_ERRORS = {
    "timeout": "Tool call timed out",
    "network_error": "Network unreachable",
    "execution_error": "Tool execution failed",
    "validation_error": "Tool input validation failed",
}
"""The message to the agent if an effect states none; Strands' wording."""
_LENGTH, _RATIO = 10, 0.5
"""Strands' default if an effect states no length or ratio."""


def chaos(effects: ChaosEffects) -> StandIns:
    """Read the effects of a chaos case of Strands: they are applied to tools that run."""
    return StandIns(
        tools={
            name: StandIn(mode="live", faults=[_fault(each) for each in some])
            for name, some in effects.tool_effects.items()
            if some
        }
    )


def _fault(effect: ChaosEffect) -> Fault:
    kind = effect.effect_type
    if kind == "truncate_fields":
        length = effect.max_length if effect.max_length is not None else _LENGTH
        return Fault(kind="partial", length=length)
    if kind == "remove_fields":
        ratio = effect.remove_ratio if effect.remove_ratio is not None else _RATIO
        return Fault(kind="partial", share=ratio)
    if kind == "corrupt_values":
        ratio = effect.corrupt_ratio if effect.corrupt_ratio is not None else _RATIO
        return Fault(kind="wrong_type", share=ratio)
    text = effect.error_message if effect.error_message is not None else _ERRORS[kind]
    return Fault(kind="timeout" if kind == "timeout" else "error", text=text)


_CALLS = 1_000
"""The calls of a tool in one play that get a random draw beforehand: more than any play has."""


def simulation(file: EnvironmentSimulation) -> StandIns:
    """Read an environment simulation of ADK: injected answers first, then an LLM or the tool."""
    world = [text for text in (file.environment_data, file.tracing) if text]
    return StandIns(
        tools={each.tool_name: _simulated(each) for each in file.tool_simulation_configs},
        about="\n\n".join(world) or None,
    )


def _simulated(tool: ToolSimulation) -> StandIn:
    calls = _drawn(tool)
    answers = []
    for place, each in enumerate(tool.injection_configs):
        error = each.injected_error
        answers.append(
            Fixture(
                when=each.match_args or None,
                call=calls[place] if calls is not None else None,
                # In ADK, the tool returns its error and does not raise it.
                result=each.injected_response
                if error is None
                else {
                    "error_code": error.injected_http_error_code,
                    "error_message": error.error_message,
                },
                seconds=each.injected_latency_seconds or None,
            )
        )
    if tool.made_up:
        return StandIn(mode="llm", answers=answers)
    return StandIn(answers=answers, on_unmatched="live")


def _drawn(tool: ToolSimulation) -> list[list[int]] | None:
    """Return the calls that each injection answers; ``None`` if none is random.

    The default seed is 0, so that a case is the same in each play.
    """
    if all(each.injection_probability == 1 for each in tool.injection_configs):
        return None
    draw = [random.Random(each.random_seed or 0) for each in tool.injection_configs]  # noqa: S311 - no secret
    calls: list[list[int]] = [[] for _ in draw]
    for number in range(1, _CALLS + 1):
        for place, each in enumerate(tool.injection_configs):
            if draw[place].random() < each.injection_probability:
                calls[place].append(number)
                break
    return calls
