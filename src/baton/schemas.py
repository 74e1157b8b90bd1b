"""JSON Schemas of Baton's own files, for editors: ``python -m baton.schemas FOLDER``."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from baton.config.config_file import ConfigFile
from baton.config.judge_config import CACHE
from baton.datasets.baton_cases import DatasetSpec
from baton.evaluators.judging.rubric import Rubric
from baton.evaluators.registry import all_evaluators
from baton.judges.judge_settings import Endpoint, JudgeSettings
from baton.model import Trace
from baton.server.alerts import Addresses
from baton.server.retention import Retention
from baton.server.rules import RuleSpec
from baton.server.settings import LimitSettings, Settings


def _config() -> type[msgspec.Struct]:
    """Return the structure of a config with all keys of `judge:`.

    Loading reads these as plain data, because the command line may add to them.
    """
    fields: list[tuple[str, Any, Any]] = [
        (field.name, field.type, field.default)
        for field in msgspec.structs.fields(JudgeSettings)
        if field.name not in ("model", "fallback")
    ]
    judge = msgspec.defstruct(
        "JudgeSettings",
        [
            ("model", str | None, None),
            *fields,
            ("fallback", list[str | Endpoint], msgspec.field(default_factory=list)),
            ("cache", str | bool | None, str(CACHE)),
        ],
        kw_only=True,
        forbid_unknown_fields=True,
        namespace={"__doc__": JudgeSettings.__doc__},
    )
    return msgspec.defstruct(
        "ConfigFile",
        [("judge", judge | None, None)],
        bases=(ConfigFile,),
        kw_only=True,
        namespace={"__doc__": ConfigFile.__doc__},
    )


def _server(config: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return the shape of `server.yaml`: measures may have units, and all parts are known.

    Loading takes rules, judges and addresses as plain data, which other modules check.
    """
    judge = next(
        type_
        for field in msgspec.structs.fields(config)
        if field.name == "judge"
        for type_ in get_args(field.type)
        if type_ is not type(None)
    )
    measure = Annotated[float | str, msgspec.Meta(description="`90 s`, `5 min`, or seconds")]
    size = Annotated[int | str, msgspec.Meta(description="`64 MiB`, `10 GB`, or bytes")]
    retention = _changed(Retention, {"bytes": (size | None, None)})
    defaults = LimitSettings()
    sizes = ("body", "unpacked", "memory", "upload", "upload_unpacked", "conversation_bytes")
    limits = _changed(LimitSettings, {name: (size, getattr(defaults, name)) for name in sizes})
    return _changed(
        Settings,
        {
            "quiet": (measure | None, None),
            "keep_inbox": (measure, Settings().keep_inbox),
            "retention": (retention, retention()),
            "limits": (limits, msgspec.field(default_factory=limits)),
            "rules": (list[RuleSpec] | None, None),
            "judges": (dict[str, str | judge], msgspec.field(default_factory=dict)),  # type: ignore[valid-type]
            "alerts": (Addresses | None, None),
        },
    )


def _changed(type_: type[msgspec.Struct], fields: dict[str, Any]) -> type[msgspec.Struct]:
    """Return a struct with other types and defaults for some of its fields."""
    return msgspec.defstruct(
        type_.__name__,
        [(name, *rest) for name, rest in fields.items()],
        bases=(type_,),
        kw_only=True,
        namespace={"__doc__": type_.__doc__},
    )


def _with_options(schema: dict[str, Any]) -> dict[str, Any]:
    """Add the options of every evaluator to the schema of a config, chosen by its `type:`.

    The names of other tools are offered as well; their options are not checked.
    """
    entries = all_evaluators()
    by_options: dict[str, list[str]] = {}
    types: dict[str, Any] = {}
    for entry in entries:
        options = entry.target.options_type
        types[options.__name__] = options
        by_options.setdefault(options.__name__, []).append(entry.type)
    _, definitions = msgspec.json.schema_components(
        list(types.values()), ref_template="#/$defs/{name}"
    )
    spec = schema["$defs"]["EvaluatorSpec"]
    names = sorted({name for entry in entries for name in entry.names})
    spec["properties"]["type"] = {"anyOf": [{"enum": names}, {"type": "string"}]}
    spec["allOf"] = [
        {
            "if": {"properties": {"type": {"enum": sorted(named)}}, "required": ["type"]},
            "then": {"properties": {"config": {"$ref": f"#/$defs/{options}"}}},
        }
        for options, named in sorted(by_options.items())
    ]
    return {**schema, "$defs": {**definitions, **schema["$defs"]}}


_CONFIG = _config()
FILES: dict[str, Any] = {
    "dataset.schema.json": DatasetSpec,
    "config.schema.json": _CONFIG,
    "server.schema.json": _server(_CONFIG),
    "trace.schema.json": Trace,
    "rubric.schema.json": Rubric,
}


def schema_text(type_: Any) -> str:
    """Return the JSON Schema of a type, formatted."""
    schema = msgspec.json.schema(type_)
    if issubclass(type_, ConfigFile):
        schema = _with_options(schema)
    schema = _cleaned(schema)
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _cleaned(value: Any) -> Any:
    """Remove the indentation of docstrings, as Python 3.13 does by itself."""
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return inspect.cleandoc(value) if isinstance(value, str) else value


def write_schemas(folder: Path) -> None:
    """Write all schemas into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, type_ in FILES.items():
        (folder / name).write_text(schema_text(type_), encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
