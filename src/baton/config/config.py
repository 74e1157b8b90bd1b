"""Loading a config: everything is checked before anything runs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from baton.datasets.stand_in_files import with_file
from baton.evaluators.registry import own_rubrics
from baton.formats.document import Document, read_bytes
from baton.formats.explain_mistakes import Path as Place
from baton.gate.read_thresholds import Gate, read_gate
from baton.judges.judge_settings import JudgeSettings, with_provider
from baton.model import InputError, Problem, RunOptions, StandIns, nearest
from baton.model.mask_known_secrets import masked, remember, secrets_in
from baton.model.option_spelling import option
from baton.model.redact import ON, Redaction, redaction_of
from baton.plugins import Entry
from baton.reports.registry import report_entry
from baton.runner.backends.registry import backend_spec
from baton.runner.costs import ModelPrice, read_prices
from baton.runner.plan import EvaluatorSpec, Plan, Specs, make_plan, with_place_of_option

from .config_file import AgentSpec, ConfigFile, DatasetSpec, ReporterSpec
from .dialects.accelerator import translate
from .dialects.judge_llm import run_options
from .judge_config import JudgeConfig, at_lines, gate_of, read_judge
from .trust import Trust, code_in

if TYPE_CHECKING:
    from baton.providers.base_provider import ProviderOptions

_PRINTED = ("terminal", "github")
_OTLP_ONLY = ("endpoint", "headers_from")


class Config(msgspec.Struct, kw_only=True):
    """A checked config; ``notes`` name what is not used.

    ``resolved`` is the file's content, with references such as ``${TOKEN}`` instead of their
    values, and with plain-text secrets masked.

    ``evaluators`` is ``None`` when the file names none; then ``plan`` has the default one.
    ``claims`` are the parts that need trust, unless the user named the file; ``own_code``: whether
    the user's code was imported.
    """

    file: str
    name: str | None
    agent: AgentSpec
    dataset: list[str]
    providers: list[ProviderOptions]
    agents: str | None
    evaluators: list[EvaluatorSpec | str] | None
    plan: Plan
    run: RunOptions
    reporters: list[ReporterSpec]
    resolved: dict[str, Any]
    backend: dict[str, Any] | None = None
    rubrics: Sequence[Entry] = ()
    rubric_paths: Sequence[Path] = ()
    judging: JudgeConfig = msgspec.field(default_factory=JudgeConfig)
    gate: Gate = Gate()
    redaction: Redaction = ON
    stand_ins: StandIns | None = None
    notes: list[str] = msgspec.field(default_factory=list)
    own_code: bool = True
    claims: list[Problem] = msgspec.field(default_factory=list)
    data: bytes = b""

    @property
    def folder(self) -> Path:
        """The folder that its paths are relative to."""
        return Path(self.file).parent

    @property
    def judge(self) -> JudgeSettings | None:
        """The judge that the config describes, if it names a model."""
        return self.judging.settings

    def plan_with(self, evaluators: Specs | None) -> Plan:
        """Return the plan with other evaluators, and everything else from the config."""
        plan = make_plan(
            evaluators,
            agent_names=self.plan.context.agent_names,
            pass_rule=self.plan.pass_rule,
            prices=self.plan.prices,
            default_model=self.plan.default_model,
            folder=self.folder,
            own_code=self.own_code,
            rubrics=self.rubrics,
        )
        return msgspec.structs.replace(plan, redaction=self.redaction)


def load_config(
    path: str | os.PathLike[str],
    environment: Mapping[str, str] | None = None,
    *,
    own_code: bool = True,
) -> Config:
    """Load and check a config that the user named; paths are relative to the config's folder.

    The user's own evaluators are imported, unless ``own_code`` is false: then they cannot score,
    and none of the user's code runs.

    Raises:
        InputError: unknown keys, evaluators, options, modes, providers or reporters, and unset
        variables: all of them, with their lines and similar names.
    """
    file = Path(path)
    document = Document(str(file), read_bytes(file), "yaml")
    value = document.value()
    if not isinstance(value, dict):
        raise InputError(document.problem("a config is a mapping with `evaluators:`"))
    written = value
    value = interpolate(document, value, os.environ if environment is None else environment)
    translated, notes, models = translate(document, value, ConfigFile.__struct_fields__)
    try:
        spec = document.convert(translated, ConfigFile)
    except InputError as error:
        raise InputError(_hinted(each, translated) for each in error.problems) from None
    problems: list[Problem] = []
    providers = _providers(document, spec, problems)
    _check_reporters(document, spec, problems)
    run = run_options(document, spec, problems)
    folder = file.parent
    backend: dict[str, Any] | None = None
    try:
        backend = None if spec.backend is None else backend_spec(spec.backend)
    except InputError as error:
        for problem in error.problems:
            option, *_ = problem.path.split(".")
            is_stated = isinstance(spec.backend, Mapping) and option in spec.backend
            steps = problem.path.split(".") if is_stated else ()
            problems.append(document.problem_at(("backend", *steps), problem.message))
    rubrics: tuple[Entry, ...] = ()
    with _collected(problems, partial(_of_rubrics, document, spec.rubrics)):
        rubrics = own_rubrics(folder / path for path in spec.rubrics) if spec.rubrics else ()
    redaction = ON
    with _collected(problems, partial(at_lines, document)):
        redaction = redaction_of(spec.redact)
    stand_ins: StandIns | None = None
    with _collected(problems):
        stand_ins = with_file(spec.stand_ins, document)
    judging = JudgeConfig()
    with _collected(problems):
        judging = read_judge(document, written, translated, models)
    gate = Gate()
    with _collected(problems, partial(at_lines, document)):
        gate = read_gate(spec.gate, folder)
    plan = _plan(document, spec, providers, problems, own_code, rubrics)
    if plan is not None and spec.evaluators is not None:
        with _collected(problems, partial(at_lines, document)):
            gate_of(plan, gate)
    if problems or plan is None:
        raise InputError(_hinted(each, translated) for each in problems)
    dataset = _dataset_paths(document, spec.dataset, folder)
    reporters = [
        msgspec.structs.replace(
            r, output_path=_below(folder, r.output_path) if r.output_path else None
        )
        for r in spec.reporters
    ]
    return Config(
        file=str(file),
        name=spec.name or spec.agent.name,
        agent=spec.agent,
        dataset=dataset,
        providers=providers,
        agents=_below(folder, spec.agents) if spec.agents else None,
        evaluators=spec.evaluators,
        plan=msgspec.structs.replace(plan, redaction=redaction),
        run=run,
        reporters=reporters,
        resolved=masked(written),
        backend=backend,
        rubrics=rubrics,
        rubric_paths=[folder / path for path in spec.rubrics],
        judging=judging,
        gate=gate,
        redaction=redaction,
        stand_ins=stand_ins,
        notes=[f"{file}: {text}" for text in notes],
        own_code=own_code,
        claims=code_in(document, spec),
        data=document.data,
    )


@contextmanager
def _collected(
    problems: list[Problem],
    located: Callable[[InputError], Iterable[Problem]] = lambda error: error.problems,
) -> Iterator[None]:
    """Add errors to the problems, so that all of them are reported together."""
    try:
        yield
    except InputError as error:
        problems += located(error)


def load_found(path: Path, trust: Trust, *, own_code: bool = True) -> Config:
    """Load a config that was found, not named, such as the `baton.yaml` of the current folder.

    Raises:
        InputError: as for :func:`load_config`, and if it names code and is not trusted.
    """
    config = load_config(path, own_code=False)
    if not own_code:
        return config
    trust.require(path, config.data, config.claims, f"baton eval {shlex.quote(str(path))}")
    loaded = load_config(path) if config.claims else msgspec.structs.replace(config, own_code=True)
    if loaded.data != config.data:
        raise InputError(Problem(file=str(path), message="has changed while it was being read"))
    return loaded


def chosen_backend(
    configured: Mapping[str, Any] | None, name: str | None, workers: int | None
) -> dict[str, Any] | None:
    """Return the backend that the run names, else the config's.

    Raises:
        InputError: an unknown backend, or workers for a backend that has none.
    """
    if name is None and configured is None:
        if workers is not None:
            message = f"{option('workers')} can only be used with {option('backend')} (local, ray)"
            raise InputError(message)
        return None
    spec = dict(configured or {})
    if name is not None and name != spec.get("type"):
        spec = {"type": name}
    if workers is not None:
        spec["workers"] = workers
    try:
        return backend_spec(spec)
    except InputError as error:
        raise InputError(
            Problem(
                path=option("workers" if each.path == "workers" else "backend"),
                message=each.message,
            )
            for each in error.problems
        ) from None


def _check_reporters(document: Document, spec: ConfigFile, problems: list[Problem]) -> None:
    for index, reporter in enumerate(spec.reporters):
        try:
            kind = report_entry(reporter.type).type
        except InputError as error:
            problems += _located(document, ("reporters", index, "type"), error)
            continue
        endpoint = reporter.endpoint if kind == "otlp" else None
        misplaced = next((n for n in _OTLP_ONLY if getattr(reporter, n) and endpoint is None), None)
        if misplaced is not None:
            is_otlp = kind == "otlp"
            message = (
                "can only be used with `endpoint`" if is_otlp else "is for reporters of type otlp"
            )
            problems.append(document.problem_at(("reporters", index, misplaced), message))
        elif reporter.output_path is None and endpoint is None and kind not in _PRINTED:
            message = "`output_path` is missing: the file to write to"
            problems.append(document.problem_at(("reporters", index), message))


def _plan(
    document: Document,
    spec: ConfigFile,
    providers: Sequence[ProviderOptions],
    problems: list[Problem],
    own_code: bool,
    rubrics: Sequence[Entry],
) -> Plan | None:
    folder = Path(document.file).parent
    faults = []
    for index, evaluator in enumerate(spec.evaluators or ()):
        try:
            if isinstance(evaluator, str) or evaluator.enabled:
                make_plan([evaluator], folder=folder, own_code=own_code, rubrics=rubrics)
        except InputError as error:
            for problem in error.problems:
                steps = (step for step in problem.path.split(".") if step)
                rest = [step for step in steps if not step.startswith("evaluators[")]
                faults.append(document.problem_at(("evaluators", index, *rest), problem.message))
    problems += faults
    of_providers: dict[str, ModelPrice] = {}
    for index, provider in enumerate(providers):
        try:
            of_providers |= read_prices(provider.custom_pricing or {})
        except InputError as error:
            problems += _located(document, ("providers", index, "custom_pricing"), error)
    prices = {**of_providers, **spec.prices} or None
    if faults:
        return None
    try:
        return make_plan(
            spec.evaluators,
            agent_names=spec.agent_names,
            pass_rule=spec.pass_rule,
            prices=prices,
            default_model=next((p.model for p in providers if p.model), None),
            folder=folder,
            own_code=own_code,
            rubrics=rubrics,
        )
    except InputError as error:
        problems += _located(document, ("evaluators",), error)
    return None


def _providers(
    document: Document, spec: ConfigFile, problems: list[Problem]
) -> list[ProviderOptions]:
    options: list[ProviderOptions] = []
    for index, provider in enumerate(spec.providers):
        path = ("providers", index)
        name = provider.get("type")
        if not isinstance(name, str):
            problems.append(document.problem_at(path, "`type` is missing"))
            continue
        try:
            # importing it loads asyncio
            from baton.providers.registry import in_our_words, provider_entry

            kind = provider_entry(name).target.options_type
            options.append(document.convert(in_our_words(provider), kind, path=path))
        except InputError as error:
            located = all(problem.file for problem in error.problems)
            problems += error.problems if located else _located(document, (*path, "type"), error)
    return options


def _located(document: Document, path: tuple[str | int, ...], error: InputError) -> list[Problem]:
    return [document.problem_at(path, problem.message) for problem in error.problems]


def _dataset_paths(
    document: Document, spec: str | list[str] | DatasetSpec | None, folder: Path
) -> list[str]:
    """Return paths seen from here; raises InputError for a pattern that matches nothing."""
    if spec is None:
        return []
    if not isinstance(spec, DatasetSpec):
        return [_below(folder, path) for path in ([spec] if isinstance(spec, str) else spec)]
    paths = [folder / path for path in spec.paths]
    if spec.pattern is None:
        return [str(path) for path in paths]
    files: list[Path] = []
    for path in paths:
        files += sorted(path.rglob(spec.pattern)) if path.is_dir() else [path]
    if not files:
        message = f"no file in {', '.join(spec.paths)} matches the pattern"
        raise InputError(document.problem_at(("dataset", "pattern"), message))
    return [str(file) for file in files]


def _below(folder: Path, path: str) -> str:
    return str(folder / path)


_EVALUATOR_KEY = re.compile(r"evaluators\[(\d+)\]\.(\w+)")


def _of_rubrics(document: Document, stated: Sequence[str], error: InputError) -> Iterator[Problem]:
    """Locate problems of files and folders that hold no rubric; those in a rubric name its file."""
    folder = Path(document.file).parent
    places = {str(folder / path): (index, path) for index, path in enumerate(stated)}
    for problem in error.problems:
        index, path = places.get(problem.file or "", (None, ""))
        if index is None or (folder / path).is_file():
            yield problem
        else:
            yield document.problem_at(("rubrics", index), f"{path}: {problem.message}")


_JUDGE = re.compile(r"(?:evaluators\[(\d+)\]\.config\.)?judge")


def _hinted(problem: Problem, config: Mapping[str, Any]) -> Problem:
    """Say how a judge is written that is only the name of a model: ``judge: gpt-4``."""
    match = _JUDGE.fullmatch(problem.path)
    if match is None:
        return _misplaced(problem, config)
    among = config if match[1] is None else config["evaluators"][int(match[1])]["config"]
    model = among["judge"]
    if not isinstance(model, str):
        return problem
    message = f"{problem.message}; write `judge: {{model: {with_provider(model)}}}`"
    return msgspec.structs.replace(problem, message=message)


def _misplaced(problem: Problem, config: Mapping[str, Any]) -> Problem:
    """Say where to put an option of an evaluator that was written beside its ``type:``."""
    match = _EVALUATOR_KEY.fullmatch(problem.path)
    if match is None:
        return problem
    spec = config["evaluators"][int(match[1])]
    return with_place_of_option(problem, match[2], spec.get("type"))


_REFERENCE = re.compile(r"\$(?:(\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\})")


def interpolate(document: Document, value: Any, environment: Mapping[str, str]) -> Any:
    """Fill in environment variables: ``${VAR}``, or ``${VAR:-default}``; ``$$`` is a dollar sign.

    A value that is only a reference is read as YAML, so that a number stays a number. From then on,
    secret values are masked in all output: the reference is shown instead.

    Raises:
        InputError: names every variable that is not set and has no default.
    """
    problems: list[Problem] = []
    done = _interpolate(document, value, environment, (), problems)
    if problems:
        raise InputError(problems)
    return done


def _interpolate(
    document: Document, value: Any, env: Mapping[str, str], path: Place, problems: list[Problem]
) -> Any:
    if isinstance(value, dict):
        return {
            key: _interpolate(document, item, env, (*path, key), problems)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _interpolate(document, item, env, (*path, index), problems)
            for index, item in enumerate(value)
        ]
    if not isinstance(value, str) or "$" not in value:
        return value

    def replaced(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        name, default = match["name"], match["default"]
        if name in env and (env[name] or default is None):
            option = next((str(key) for key in reversed(path) if isinstance(key, str)), "")
            remember(dict.fromkeys(secrets_in(env[name], name, option), f"${{{name}}}"))
            return env[name]
        if default is None:
            alike = nearest(name, env, 1, 0.8)
            hint = f"; did you mean `{alike[0]}`?" if alike else ""
            message = f"the environment variable {name} is not set{hint}"
            problems.append(document.problem_at(path, message))
            return ""
        return str(default[2:])

    text = _REFERENCE.sub(replaced, value)
    whole = _REFERENCE.fullmatch(value)
    if whole is not None and not whole[1]:
        try:
            from baton.formats.yaml import load_yaml  # not needed without a config

            value = load_yaml(text, "")
        except InputError:
            return text
        return value if isinstance(value, bool | int | float) else text
    return text
