"""Criteria of ADK: `test_config.json` beside eval sets, or a file with another name."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from baton.config.trust import Trust
from baton.formats.document import Document, read_bytes, without_comments
from baton.formats.key_case import snake
from baton.model import InputError, Problem, suggestion
from baton.runner.plan import DataSpec, EvaluatorSpec, make_plan

from .common import judge_model, worded

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
"""Google ADK: metrics of a ``test_config.json``."""

_RUBRICS = (
    "rubric_based_final_response_quality_v1",
    "rubric_based_multi_turn_trajectory_quality_v1",
    "rubric_based_tool_use_quality_v1",
)
_ONE_ANSWER = {
    "final_response_match_v2": ["request", "history", "answers", "reference"],
    "response_evaluation_score": ["request", "history", "answers", "reference?"],
    "rubric_based_final_response_quality_v1": [
        "request", "history", "answers", "tool_calls?", "instructions?",
    ],
    "safety_v1": ["request", "history", "answers"],
}  # fmt: skip
"""The inputs of the evaluators of the answer if intermediate messages are included."""

_JUDGED_OPTIONS = ("threshold", "include_intermediate_responses_in_final", "judge_model_options")
_MORE = {
    "hallucinations_v1": ("evaluate_intermediate_nl_responses",),
    "per_turn_user_simulator_quality_v1": ("stop_signal",),
    **dict.fromkeys(_RUBRICS, ("rubrics",)),
}
_JUDGE = ("judge_model", "judge_model_config", "num_samples", "parallelism_limit")
_GENERATION = {"temperature": "temperature", "max_output_tokens": "max_tokens"}
_RUBRIC = ("rubric_id", "rubric_content", "description", "type")


def judged_options(name: str, criterion: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for a criterion that is an object, without its threshold.

    Raises:
        InputError: a key or a value that ADK does not have, or that Baton cannot follow.
    """
    plain = _plain(criterion, (*_JUDGED_OPTIONS, *_MORE.get(name, ())))
    options: dict[str, Any] = {}
    if plain.get("include_intermediate_responses_in_final"):
        if name not in _ONE_ANSWER:
            raise InputError("`include_intermediate_responses_in_final` has no effect here")
        options["inputs"] = _ONE_ANSWER[name]
    if "evaluate_intermediate_nl_responses" in plain:
        options["evaluate_intermediate_nl_responses"] = plain["evaluate_intermediate_nl_responses"]
    if plain.get("rubrics"):
        options["rubrics"] = _statements(plain["rubrics"])
    return options | _judge(plain.get("judge_model_options") or {})


def _judge(stated: Any) -> dict[str, Any]:
    if not isinstance(stated, Mapping):
        raise InputError("`judge_model_options` has to be an object")
    plain = _plain(stated, _JUDGE)
    options: dict[str, Any] = {}
    judge: dict[str, Any] = {}
    if plain.get("judge_model"):
        judge["model"] = judge_model(str(plain["judge_model"]))
    if plain.get("judge_model_config"):
        generation = _plain(plain["judge_model_config"], tuple(_GENERATION))
        judge |= {_GENERATION[key]: value for key, value in generation.items()}
    if "num_samples" in plain:
        options["samples"] = plain["num_samples"]
    return {**options, "judge": judge} if judge else options


def _statements(rubrics: Any) -> list[dict[str, Any]]:
    if not isinstance(rubrics, list):
        raise InputError("`rubrics` has to be a list")
    statements = []
    for rubric in rubrics:
        if not isinstance(rubric, Mapping):
            raise InputError("a rubric is an object with `rubric_id` and `rubric_content`")
        plain = _plain(rubric, _RUBRIC)
        content = plain.get("rubric_content")
        values = _plain(content, ("text_property",)) if isinstance(content, Mapping) else {}
        text = values.get("text_property")
        if not isinstance(text, str) or not text.strip():
            raise InputError("a rubric needs `rubric_content` with a `text_property`")
        statements.append({"text": text, "id": plain.get("rubric_id"), "type": plain.get("type")})
    return statements


def _plain(value: Mapping[Any, Any], known: Collection[str]) -> dict[str, Any]:
    plain = {snake(str(key)): item for key, item in value.items()}
    unknown = [key for key in plain if key not in known]
    if unknown:
        raise InputError(
            Problem(message=f"unknown key `{key}`; {suggestion(key, known)}") for key in unknown
        )
    return plain


FILE_NAME = "test_config.json"
_CUSTOM_TYPE = "adk_custom_metric"
DEFAULT_CRITERIA = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
_KEYS = ("criteria", "custom_metrics", "user_simulator_config", "live_model_config")
_OPTIONS = {
    "tool_trajectory_avg_score": ("match_type", "ignore_args"),
    "response_match_score": (),
}
_COMMON = ("threshold", "include_intermediate_responses_in_final")
_COUNTED = (
    "inference_call_count_v1",
    "invocation_duration_v1",
    "token_usage_v1",
    "tool_call_count_v1",
)
_CUSTOM = ("code_config", "metric_info", "description")
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


class Criteria(msgspec.Struct, frozen=True):
    """The content of a file of criteria: evaluators, what needs trust, and problems."""

    specs: list[EvaluatorSpec]
    problems: list[Problem]
    claims: list[Problem]
    data: bytes


def read_criteria(path: Path, *, own_code: bool = True) -> list[EvaluatorSpec]:
    """Read a file of criteria that the user named; each metric becomes a spec with its name.

    The functions of custom metrics are imported, to check that they exist, unless ``own_code`` is
    false.

    Raises:
        InputError: the file is missing or broken, or asks for a metric that Baton cannot score.
    """
    criteria = _read(path, own_code)
    if criteria.problems:
        raise InputError(criteria.problems)
    return criteria.specs


def found_criteria(path: Path, trust: Trust, *, own_code: bool = True) -> list[EvaluatorSpec]:
    """Read a file of criteria that was found, not named, such as the one beside an eval set.

    Raises:
        InputError: as for :func:`read_criteria`, and if custom metrics are not trusted.
    """
    criteria = _read(path, own_code=False)
    if criteria.claims and own_code and not criteria.problems:
        instead = f"--config_file_path {shlex.quote(str(path))}"
        trust.require(path, criteria.data, criteria.claims, instead)
        criteria = _read(path, own_code=True, data=criteria.data)
    if criteria.problems:
        raise InputError(criteria.problems)
    # Only the functions were trusted; everything else in the file is still data.
    return [
        spec if spec.type == _CUSTOM_TYPE else DataSpec(**msgspec.structs.asdict(spec))
        for spec in criteria.specs
    ]


def sent_criteria(name: str, data: bytes) -> bytes:
    """Return criteria that a client sent, without the judges that they choose.

    Raises:
        InputError: the file called ``name`` has errors, or names functions, which are never run.
    """
    criteria = _read(Path(name), own_code=False, data=data)
    refused = [
        msgspec.structs.replace(each, message=f"{each.message}: a server does not allow this")
        for each in criteria.claims
    ]
    if criteria.problems or refused:
        raise InputError([*criteria.problems, *refused])
    stated = msgspec.json.decode(without_comments(data))
    for key, criteria_ in stated.items():
        for criterion in _object(criteria_).values() if snake(key) == "criteria" else ():
            for options in _object(criterion):
                if snake(options) == "judge_model_options":
                    own = _object(criterion[options])
                    kept = {k: v for k, v in own.items() if snake(k) not in _WHICH_JUDGE}
                    criterion[options] = kept
    return msgspec.json.encode(stated)


_WHICH_JUDGE = ("judge_model", "judge_model_config")


def scorable_criteria(path: Path) -> list[EvaluatorSpec]:
    """Return the valid criteria of a file, without custom metrics.

    Raises:
        InputError: the file is missing, or is not JSON.
    """
    return [spec for spec in _read(path, own_code=False).specs if spec.type != _CUSTOM_TYPE]


def _read(path: Path, own_code: bool, data: bytes | None = None) -> Criteria:
    data = read_bytes(path) if data is None else data
    document = Document(str(path), without_comments(data), "json")
    value = document.value()
    if not isinstance(value, dict):
        raise InputError(document.problem("an object with `criteria` is expected"))
    problems = [
        document.problem_at((key,), f"unknown key; {suggestion(str(key), _KEYS)}")
        for key in value
        if snake(str(key)) not in _KEYS
    ]
    plain = {snake(str(key)): (str(key), item) for key, item in value.items()}
    custom = _custom_metrics(document, plain, problems)
    key, criteria = plain.get("criteria", ("criteria", DEFAULT_CRITERIA))
    if not isinstance(criteria, dict) or not criteria:
        problems.append(document.problem_at((key,), "has to name at least one metric"))
        criteria = {}
    specs = []
    for name, criterion in criteria.items():
        try:
            spec = _spec(str(name), criterion, custom, path.parent)
            make_plan([spec], own_code=own_code)
            specs.append(spec)
        except InputError as error:
            problems += [document.problem_at((key, name), worded(p)) for p in error.problems]
    for name in custom.keys() - criteria.keys():
        message = "is not among the `criteria`: give it a threshold there, or it will not run"
        problems.append(document.problem_at((plain["custom_metrics"][0], name), message))
    claims = [
        document.problem_at((plain["custom_metrics"][0], name), f"runs code: `{custom[name]}`")
        for name in custom
        if name in criteria
    ]
    return Criteria(specs, problems, claims, data)


def _custom_metrics(
    document: Document, plain: dict[str, tuple[str, Any]], problems: list[Problem]
) -> dict[str, str]:
    """Return the dotted path of the function of each custom metric."""
    key, metrics = plain.get("custom_metrics", ("custom_metrics", None))
    if metrics is not None and not isinstance(metrics, dict):
        problems.append(document.problem_at((key,), "has to name metrics"))
        return {}
    functions = {}
    for name, metric in (metrics or {}).items():
        values = {snake(str(k)): item for k, item in _object(metric).items()}
        function = _object(values.get("code_config")).get("name")
        unknown = [k for k in values if k not in _CUSTOM]
        if unknown:
            message = f"unknown key `{unknown[0]}`; {suggestion(unknown[0], _CUSTOM)}"
            problems.append(document.problem_at((key, name), message))
        elif not isinstance(function, str) or not _DOTTED.fullmatch(function):
            message = 'needs `"code_config": {"name": "module.function"}`'
            problems.append(document.problem_at((key, name), message))
        functions[str(name)] = str(function)
    return functions


def _object(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def default_criteria() -> list[EvaluatorSpec]:
    """Return ADK's default criteria."""
    return [
        EvaluatorSpec(type=name, config={"threshold": threshold})
        for name, threshold in DEFAULT_CRITERIA.items()
    ]


def _spec(name: str, criterion: Any, custom: Mapping[str, str], folder: Path) -> EvaluatorSpec:
    if name in custom:
        config: dict[str, Any] = {"function": custom[name], "folder": str(folder)}
        config["threshold"] = _threshold(criterion)
        return EvaluatorSpec(type=_CUSTOM_TYPE, name=name, config=config)
    if name in _COUNTED:
        raise InputError(f"`{name}` needs no entry: it is reported anyway")
    if name not in _OPTIONS and name not in ADK_JUDGED:
        raise InputError(f"unknown metric; {suggestion(name, [*_OPTIONS, *sorted(ADK_JUDGED)])}")
    if not isinstance(criterion, dict):
        return EvaluatorSpec(type=name, config={"threshold": _number(criterion)})
    if name in ADK_JUDGED:
        config = {**judged_options(name, criterion), "threshold": _threshold(criterion)}
        return EvaluatorSpec(type=name, config=config)
    plain = {snake(str(key)): item for key, item in criterion.items()}
    if "threshold" not in plain:
        raise InputError("`threshold` is missing")
    allowed = _OPTIONS[name]
    known = (*_COMMON, *allowed)
    unknown = [key for key in plain if key not in known]
    if unknown:
        raise InputError(
            Problem(message=f"unknown key `{key}`; {suggestion(key, known)}") for key in unknown
        )
    if plain.get("include_intermediate_responses_in_final"):
        raise InputError("`include_intermediate_responses_in_final` is not supported")
    options = {key: plain[key] for key in allowed if key in plain}
    return EvaluatorSpec(type=name, config={**options, "threshold": _number(plain["threshold"])})


def _threshold(criterion: Any) -> float:
    """Return the threshold of a criterion: a number, or an object of any kind."""
    if not isinstance(criterion, dict):
        return _number(criterion)
    plain = {snake(str(key)): item for key, item in criterion.items()}
    if "threshold" not in plain:
        raise InputError("`threshold` is missing")
    return _number(plain["threshold"])


def _number(value: Any) -> float:
    try:
        number = msgspec.convert(value, float, strict=False)
    except msgspec.ValidationError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"the threshold has to be a number, got {value!r}")
    return number
