"""JSON Schemas of Baton's own files, for editors: ``python -m baton.schemas FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from baton.config.shape import ConfigFile
from baton.datasets.own import DatasetSpec
from baton.model import Trace

FILES: dict[str, Any] = {
    "dataset.schema.json": DatasetSpec,
    "config.schema.json": ConfigFile,
    "trace.schema.json": Trace,
}


def schema_text(type_: Any) -> str:
    """Return the JSON Schema of a type, formatted."""
    schema = msgspec.json.schema(type_)
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def write_schemas(folder: Path) -> None:
    """Write all schemas into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, type_ in FILES.items():
        (folder / name).write_text(schema_text(type_), encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
