"""What tests share: a real server of Google ADK with all apps, and a desk of Claude Code."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.heavy.claude_desk import Desk, open_desk
from tests.ports import free_port

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def recorder() -> Any:
    """The script that starts servers and records what they answer."""
    name = "baton_example_record"
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "adk" / "record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def apps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with all apps."""
    folder = tmp_path_factory.mktemp("adk") / "apps"
    for source in (ROOT / "examples" / "adk" / "apps", Path(__file__).parent / "apps"):
        shutil.copytree(
            source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    return folder


@pytest.fixture(scope="session")
def client(recorder: Any, apps: Path) -> Iterator[Any]:
    """A client of a server that runs while tests do; Baton's plug-in is on, where an app has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BATON_ADK_PLUGIN", "on")
        with recorder.running_server(apps, port=free_port()) as client:
            yield client


@pytest.fixture(scope="session")
def url(client: Any) -> str:
    """Where the server is."""
    return str(client.base_url)


@pytest.fixture
def stored(client: Any) -> Callable[..., bool]:
    """Tell whether the server has a session; its own list leaves out those of evaluations."""

    def has(app: str, session: str, user: str = "eval_user") -> bool:
        status: int = client.call(f"/apps/{app}/users/{user}/sessions/{session}")[0]
        assert status in (200, 404)
        return status == 200

    return has


@pytest.fixture(scope="module")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk whose agents Claude Code plays."""
    with open_desk(tmp_path_factory.mktemp("shop")) as desk:
        yield desk


@pytest.fixture
def opened(shared_desk: Desk) -> Callable[[Any], Desk]:
    """Open the desk with a model that is a function.

    The tests of a file share its server and folder, so that Claude Code tells its tools once.
    """
    return shared_desk.begin
