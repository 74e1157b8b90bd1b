"""`server.yaml` and the options of `baton serve`: the settings of a server.

Parts that other modules know how to read (`rules:`, `judges:`, `alerts:`) are plain data here, and
checked there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack, get_args

import msgspec

from baton.config.config import interpolate
from baton.config.judge_config import at_lines
from baton.formats.document import Document, read_bytes
from baton.formats.explain_mistakes import Path as Place
from baton.formats.key_case import snake
from baton.judges.judge_settings import JudgeSettings, refuse_written_keys
from baton.judges.judge_settings import read_settings as read_model
from baton.model import InputError, Problem, suggestion
from baton.model.prices import ModelPrice
from baton.model.redact import OFF, Redaction, redaction_of
from baton.plugins import RUBRIC_SUFFIXES
from baton.readers import load_catalog
from baton.readers.catalog import Catalog
from baton.runner.backends.registry import backend_spec
from baton.session.agent_under_test import names_providers, served

from .access import AccessSettings, Right, is_loopback, network_of
from .alerts import Addresses, read_addresses
from .retention import Retention
from .rules import Budget, Channel, Rules, read_judges, read_rules

MIB = 1 << 20
_LAST_PORT = 65535
_Port = Annotated[int, msgspec.Meta(ge=0, le=_LAST_PORT)]
_Count = Annotated[int, msgspec.Meta(ge=1)]
_Time = Annotated[float, msgspec.Meta(ge=0)]


class _Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the settings: with an unknown key the server does not start."""


class LimitSettings(_Strict):
    """The limits of a server. Sizes are in bytes.

    A request is limited by its ``body`` as received, its size ``unpacked``, and its ``spans`` (or
    log records). ``requests`` is the number of concurrent requests, with ``memory`` for all their
    bodies; ``queue`` is the number of bodies that may wait to be read. An ``upload`` is a recording
    or an archive of recordings; ``upload_unpacked`` and ``upload_files`` limit its contents.
    ``conversation_spans`` and ``conversation_bytes`` limit what is read from a conversation; the
    rest is counted as dropped.
    """

    body: _Count = 20 * MIB
    unpacked: _Count = 64 * MIB
    spans: _Count = 50_000
    requests: _Count = 64
    memory: _Count = 256 * MIB
    queue: _Count = 200_000
    upload: _Count = 64 * MIB
    upload_unpacked: _Count = 256 * MIB
    upload_files: _Count = 5_000
    conversation_spans: _Count = 100_000
    conversation_bytes: _Count = 64 * MIB


class Settings(_Strict, dict=True):
    """The settings of a server, from `server.yaml` and from options, which override it.

    The system chooses ports of 0; gRPC needs ``grpc`` and its library. ``db`` is
    `postgresql://...`; without it the store is in ``folder``. ``quiet`` is the silence in seconds
    that completes a conversation; by default the server learns it.

    ``content`` says how texts of spans are stored: ``keep``, ``none``, or ``hashed`` (equal texts
    stay equal). ``redact`` is as in a config; if it is stated, bodies are redacted before they are
    stored, otherwise only records are. ``keep_inbox`` is how many seconds a body stays in the inbox
    after it was read. ``projects`` are created at the start; spans without a project may name one
    of ``projects_by_tag`` (`baton.otel.tag`).

    ``agents`` are those that `baton submit` may play, and that pages may talk to. ``rubrics`` is a
    folder with the user's own rubrics. ``definitions`` are agent definitions, a file or a folder,
    for all projects or by project; an investigation may propose changes of their texts.
    ``datasets`` are folders with cases that pages show and change. Paths start in the folder of
    this file.

    ``condense`` names one of ``judges``, a cheaper one that shortens long steps for investigations.
    ``trials`` limits the cost of trying rubrics in each project, and the cost of ``embeddings`` (a
    model, or settings as for a judge), which group the reasons of judges by vectors. ``backend``
    computes rescores, like that of a config; by default one process of this machine. If other
    machines can reach the server, pages run agents and change files only with ``allow_run``.
    ``prices`` are those of models in USD per million tokens, as in a config: with them, costs that
    sources do not state are computed, and budgets know what judges cost; for other models,
    genai-prices is used if it is installed.
    Results are sent to the OpenTelemetry endpoint ``otlp`` with ``otlp_headers``. Without ``rules``
    the default rules are used. ``file`` is the file of the settings, where paths in rules start.
    """

    host: str = "127.0.0.1"
    port: _Port = 4318
    grpc: bool = True
    grpc_port: _Port = 4317
    db: str | None = None
    folder: str = ".baton/server"
    quiet: _Time | None = None
    content: Literal["keep", "none", "hashed"] = "keep"
    redact: bool | str | list[str] | dict[str, Any] | None = None
    limits: LimitSettings = msgspec.field(default_factory=LimitSettings)
    retention: Retention = Retention()
    keep_inbox: _Time = 3600.0
    projects: list[str] = msgspec.field(default_factory=list)
    projects_by_tag: list[str] = msgspec.field(default_factory=list)
    hosts: list[str] = msgspec.field(default_factory=list)
    trusted_proxies: list[str] = msgspec.field(default_factory=list)
    identity_header: str = "X-Forwarded-User"
    identity_rights: list[Right] = msgspec.field(default_factory=lambda: ["read", "review"])
    rules: list[Any] | None = None
    judges: dict[str, Any] = msgspec.field(default_factory=dict)
    prices: dict[str, ModelPrice] | None = None
    alerts: dict[str, Any] = msgspec.field(default_factory=dict)
    agents: dict[str, Any] = msgspec.field(default_factory=dict)
    definitions: str | dict[str, str] | None = None
    rubrics: str | None = None
    trials: Budget = Budget(cost_usd=1.0)
    embeddings: str | dict[str, Any] | None = None
    condense: str | None = None
    backend: str | dict[str, Any] | None = None
    datasets: list[str] = msgspec.field(default_factory=list)
    allow_run: bool = False
    otlp: str | None = None
    otlp_headers: dict[str, str] = msgspec.field(default_factory=dict)
    file: str | None = None

    @property
    def store(self) -> str | Path:
        """The argument of `open_store`."""
        return self.db or Path(self.folder)

    @property
    def may_run(self) -> bool:
        """Whether pages may run agents and change files: on a local server, or with `allow_run`."""
        return self.allow_run or self.host.casefold() == "localhost" or is_loopback(self.host)

    @property
    def redaction(self) -> Redaction:
        """The redaction of records."""
        return redaction_of(self.redact)

    @property
    def body_redaction(self) -> Redaction:
        """The redaction of bodies before they are stored: none, unless `redact:` is stated."""
        return OFF if self.redact is None else self.redaction

    @property
    def rescore_backend(self) -> dict[str, Any]:
        """The backend for rescores; raises InputError for an unknown one."""
        if self.backend is None:
            return {"type": "local", "workers": 1}
        spec = backend_spec(self.backend)
        if ":" in spec["type"]:
            message = f"`{spec['type']}`: the backends for rescores are local and ray"
            raise InputError(Problem(path="type", message=message))
        return spec

    @property
    def alert_addresses(self) -> Addresses:
        """The addresses for alerts."""
        return read_addresses(None, self.alerts or None)

    @property
    def live_rules(self) -> Rules:
        """The rules for arriving conversations.

        They are cached, because each page needs them, and read again when a file of one of their
        rubrics was changed.
        """
        folder = Path(self.file or "server.yaml").parent
        marks = tuple(_mark(folder / text) for text in _rubric_files(self.rules))
        rules = self._read.get(marks)
        if rules is None:
            stated = {
                "rules": self.rules,
                "judges": self.judges,
                "prices": msgspec.to_builtins(self.prices),
            }
            channels = self.alert_addresses.channels
            rules = read_rules(None, stated, channels=channels, file=self.file or "server.yaml")
            self._read.clear()
            self._read[marks] = rules
        return rules

    @cached_property
    def _read(self) -> dict[tuple[Any, ...], Rules]:
        return {}

    @property
    def judge_settings(self) -> dict[str, JudgeSettings]:
        """The judges that rules name, by name."""
        return read_judges(self.judges or None)

    def definitions_of(self, project: str) -> Catalog:
        """Return the current definitions of a project's agents, without running any code of them.

        Raises:
            InputError: they cannot be read.
        """
        stated = self.definitions
        path = stated.get(project) if isinstance(stated, dict) else stated
        if path is None:
            return {}
        return load_catalog(Path(self.file or "server.yaml").parent / path)

    def check_condense(self) -> None:
        """Raise InputError if ``condense`` names no judge."""
        if self.condense is not None and self.condense not in self.judges:
            hint = suggestion(self.condense, self.judges) or "`judges:` names none"
            raise InputError(f"there is no judge `{self.condense}`; {hint}")

    def check_definitions(self) -> None:
        """Read the definitions of all projects; raises InputError for those that are wrong."""
        stated = self.definitions
        for project, path in stated.items() if isinstance(stated, dict) else [("", stated)]:
            try:
                self.definitions_of(project)
            except InputError as error:
                raise InputError(f"{path}: {error}") from None

    @property
    def embedding_settings(self) -> JudgeSettings | None:
        """The model that computes vectors; raises InputError for settings with errors."""
        if self.embeddings is None:
            return None
        embeddings = self.embeddings
        return read_model(
            {"model": embeddings} if isinstance(embeddings, str) else embeddings, ("embeddings",)
        )

    @property
    def access(self) -> AccessSettings:
        """Who may use the server without a key."""
        return AccessSettings(
            hosts=self.hosts,
            trusted_proxies=self.trusted_proxies,
            identity_header=self.identity_header,
            identity_rights=self.identity_rights,
        )


def _rubric_files(value: object) -> Iterator[str]:
    """Yield the texts in rules that may name the file of a rubric."""
    if isinstance(value, str):
        if value.endswith(RUBRIC_SUFFIXES):
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _rubric_files(each)
    elif isinstance(value, list):
        for each in value:
            yield from _rubric_files(each)


def _mark(file: Path) -> tuple[int, int, int] | None:
    """Return values that change when a file changes; ``None`` if it does not exist."""
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


_UNITS = {
    "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 0.001,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
    "w": 604800.0, "week": 604800.0, "weeks": 604800.0,
}  # fmt: skip
_SIZES = {
    "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
_MEASURE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_TIMES: tuple[Place, ...] = (("quiet",), ("keep_inbox",))
_BYTES: tuple[Place, ...] = (
    ("retention", "bytes"),
    *(
        ("limits", name)
        for name in (
            "body", "unpacked", "memory", "upload", "upload_unpacked", "conversation_bytes",
        )
    ),
)  # fmt: skip


def load_settings(
    file: Path | None,
    options: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read `server.yaml`, if there is one, and override it by the options that are not ``None``.

    Raises:
        InputError: every problem, with its line and a similar name.
    """
    stated: dict[str, Any] = {}
    value: object = None
    document = Document("server.yaml", b"", "yaml")
    if file is not None:
        document = Document(str(file), read_bytes(file), "yaml")
        value = document.value()
        if value is not None and not isinstance(value, dict):
            raise InputError(document.problem("the settings of a server have to be a mapping"))
        env = os.environ if environment is None else environment
        stated = interpolate(document, value or {}, env)
    problems: list[Problem] = []
    for places, units, what in ((_TIMES, _UNITS, "90 s, 5 min, 30 d"), (_BYTES, _SIZES, "10 GB")):
        for place in places:
            _measure(document, stated, place, units, what, problems)
    settings, faulty = _converted(document, stated, problems)
    settings.file = None if file is None else str(file)
    if settings.rubrics is not None and file is not None:
        settings.rubrics = str(file.parent / settings.rubrics)
    if file is not None:
        settings.datasets = [str(file.parent / each) for each in settings.datasets]
    written = value if isinstance(value, dict) else {}
    try:
        refuse_written_keys(written.get("embeddings"), ("embeddings",))
    except InputError as error:
        problems += at_lines(document, error)
    # What refers to a faulty part is not reported for that: rules to an address, for example.
    channels: Collection[str] = get_args(Channel)
    if "alerts" not in faulty:
        try:
            addresses = read_addresses(document, stated.get("alerts"), written.get("alerts"))
            channels = addresses.channels
        except InputError as error:
            problems += error.problems
    try:
        kept = {name: value for name, value in stated.items() if name not in faulty}
        read_rules(document, kept, written, channels=channels)
    except InputError as error:
        problems += error.problems
    overrides = {name: value for name, value in (options or {}).items() if value is not None}
    for name in ("port", "grpc_port"):
        if not 0 <= overrides.get(name, 0) <= _LAST_PORT:
            message = f"ports are 0 to {_LAST_PORT}, not {overrides[name]}"
            problems.append(Problem(path=f"--{name.replace('_', '-')}", message=message))
    # Agents and folders from the options are added to those of the file.
    overrides["agents"] = {**settings.agents, **overrides.get("agents", {})}
    overrides["datasets"] = list(
        dict.fromkeys([*settings.datasets, *overrides.get("datasets", ())])
    )
    settings = msgspec.structs.replace(settings, **overrides)
    problems += [
        Problem(path="datasets", message=f"there is no folder {each}")
        for each in settings.datasets
        if not Path(each).is_dir()
    ]
    if settings.rubrics is not None and not Path(settings.rubrics).is_dir():
        option = "--rubrics" if "rubrics" in overrides else "rubrics"
        problems.append(Problem(path=option, message=f"there is no folder {settings.rubrics}"))
    for name, check in (
        ("redact", lambda: settings.redaction),
        ("trusted_proxies", lambda: [network_of(text) for text in settings.trusted_proxies]),
        ("backend", lambda: settings.rescore_backend),
        ("embeddings", lambda: settings.embedding_settings),
        ("definitions", settings.check_definitions),
        ("condense", settings.check_condense),
    ):
        if name == "condense" and "judges" in faulty:
            continue
        try:
            check()
        except InputError as error:
            problems += [document.problem_at((name,), each.message) for each in error.problems]
    if problems:
        raise InputError(problems)
    return settings


def _converted(
    document: Document, stated: Mapping[str, Any], problems: list[Problem]
) -> tuple[Settings, Collection[str]]:
    """Return the settings without the faulty ones, and the names of these."""
    try:
        return document.convert(stated, Settings), ()
    except InputError as error:
        problems += error.problems
    faulty = {re.split(r"[.\[]", problem.path)[0] for problem in problems}
    sound = {name: value for name, value in stated.items() if name not in faulty}
    try:
        return document.convert(sound, Settings), faulty
    except InputError:  # a name with a dot: its problem is known
        return Settings(), faulty


def _measure(
    document: Document,
    stated: dict[str, Any],
    place: Place,
    units: Mapping[str, float],
    examples: str,
    problems: list[Problem],
) -> None:
    """Replace a measure like `30 d` by a number, if there is one."""
    holder: Any = stated
    for step in place:
        key = next((key for key in holder if snake(str(key)) == step), None)
        if key is None:
            return
        if step == place[-1]:
            break
        holder = holder[key]
        if not isinstance(holder, dict):
            return
    if not isinstance(holder[key], str):
        return
    match = _MEASURE.fullmatch(holder[key].strip())
    unit = units.get(match[2].lower()) if match is not None else None
    if match is None or unit is None:
        message = f"`{holder[key][:40]}` is not a measure; write a number with its unit: {examples}"
        problems.append(document.problem_at(place, message))
        del holder[key]
        return
    number = float(match[1]) * unit
    holder[key] = int(number) if units is _SIZES else number


class LiveSettings:
    """Settings that follow their file: changes there apply without a restart.

    Addresses, the store and the folder stay those of the start. An invalid file changes nothing:
    ``tell`` is called once with the reason.
    """

    def __init__(
        self, file: Path | None, options: Mapping[str, Any], tell: Callable[[str], None]
    ) -> None:
        """Read the settings.

        Raises:
            InputError: they are wrong.
        """
        self._file = file
        self._options = options
        self._tell = tell
        self._state = self._look()
        self.now = load_settings(file, options)

    def reload(self) -> bool:
        """Read the file again if it was changed; return whether the settings changed."""
        state = self._look()
        if self._file is None or state == self._state:
            return False
        self._state = state
        try:
            new = load_settings(self._file, self._options)
        except InputError as error:
            for problem in error.problems:
                self._tell(f"the settings were not changed: {problem}")
            return False
        old = self.now
        self.now = msgspec.structs.replace(new, **{name: getattr(old, name) for name in _FIXED})
        changed = [name for name in _FIXED if getattr(new, name) != getattr(old, name)]
        if changed:
            self._tell(f"these changes need a restart: {', '.join(changed)}")
        return self.now != old

    def _look(self) -> tuple[int, int, int] | None:
        return None if self._file is None else _mark(self._file)


_FIXED = (
    "host", "port", "grpc", "grpc_port", "db", "folder", "hosts", "trusted_proxies",
    "identity_header", "identity_rights", "projects", "rubrics", "allow_run",
)  # fmt: skip
"""Settings that are only used at the start."""


class ServeOptions(TypedDict, total=False):
    """Settings that override those of the file, unless they are ``None``.

    ``datasets`` are added to those of the file, from the current folder. ``grpc`` is whether to
    listen for gRPC. The others are those of `baton serve`.
    """

    host: str | None
    port: int | None
    grpc: bool | None
    grpc_port: int | None
    db: str | None
    folder: Path | None
    rubrics: Path | None
    datasets: Sequence[Path]
    allow_run: bool | None


_USUAL = Path("server.yaml")


def named_settings(
    files: Sequence[Path], tell: Callable[[str], None], **options: Unpack[ServeOptions]
) -> LiveSettings:
    """Return the settings of a server from what was named.

    Args:
        files: a file with settings, and what pages may talk to and evaluate: folders of ADK agents,
            and configs with ``providers:``.
        tell: called with notes, now and when the file was changed.
        options: settings that override those of the file.

    Raises:
        InputError: wrong settings, two files of settings, two agents with the same name, or a
            folder without agents.
    """
    file: Path | None = None
    agents: dict[str, Any] = {}
    datasets: list[str] = []
    for each in files:
        if not each.is_dir() and not names_providers(each):
            if file is not None:
                raise InputError(f"{file} and {each} are both settings of a server: give one")
            file = each
            continue
        offered = served(each)
        for name in offered.agents.keys() & agents.keys():
            raise InputError(Problem(file=str(each), message=f"there are two agents `{name}`"))
        agents |= offered.agents
        datasets += [folder for folder in offered.datasets if folder not in datasets]
    if file is None and _USUAL.exists():
        tell(f"{_USUAL} is not used, because it was not named: baton serve {_USUAL}")
    stated: dict[str, Any] = {
        **options,
        **{name: str(path) for name in ("folder", "rubrics") if (path := options.get(name))},
        "agents": agents,
        "datasets": [*datasets, *(str(each.resolve()) for each in options.get("datasets", ()))],
    }
    return LiveSettings(file, stated, tell)
