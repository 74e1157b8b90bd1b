"""Functions of the user's own: how they are named, found, and refused."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from baton.model import InputError
from baton.plugins.user_code import load_function
from baton.providers.user_functions import call, worded


def write(folder: Path, name: str, code: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code, encoding="utf-8")
    return path


def refused(spec: str, folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_function(spec, folder)
    (problem,) = caught.value.problems
    return problem.message


def test_a_module_is_searched_for_below_the_folder_of_the_config(tmp_path: Path) -> None:
    write(tmp_path, "desk_agents/router.py", "def reply(m): return f'routed {m}'")
    write(tmp_path, "desk_agents/__init__.py", "")
    function = load_function("desk_agents.router:reply", tmp_path)
    assert function("x") == "routed x"


def test_a_module_that_is_installed_is_found_too(tmp_path: Path) -> None:
    assert load_function("textwrap:dedent", tmp_path)("  x") == "x"


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    path = write(tmp_path, "a dir/bot-1.py", "def reply(m): return 'hello'")
    assert load_function("a dir/bot-1.py:reply", tmp_path)("x") == "hello"
    assert load_function(f"{path}:reply", Path("elsewhere"))("x") == "hello"


def test_a_file_imports_what_lies_beside_it_and_never_what_lies_beside_another(
    tmp_path: Path,
) -> None:
    for folder in ("first", "second"):
        write(tmp_path, f"{folder}/beside_bot.py", f"SAYS = {folder!r}")
        write(tmp_path, f"{folder}/bot.py", "from beside_bot import SAYS\ndef reply(): return SAYS")
    assert load_function("first/bot.py:reply", tmp_path)() == "first"
    assert "`beside_bot` of" in refused("second/bot.py:reply", tmp_path)


def test_two_files_of_one_name_are_two_modules_and_one_file_is_one(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write(tmp_path, f"{folder}/bot.py", f"CALLS = []\ndef reply(): return {folder!r}")
    one, two = (load_function("bot.py:reply", tmp_path / folder) for folder in ("one", "two"))
    assert (one(), two()) == ("one", "two")
    assert load_function("bot.py:reply", tmp_path / "one") is one


@pytest.mark.parametrize("name", ["agent", "agent.run", "Agent.kind"])
def test_objects_and_methods_are_found_by_dots(tmp_path: Path, name: str) -> None:
    code = """
class Agent:
    async def __call__(self, message): return "called"
    def run(self, message): return "ran"
    @staticmethod
    def kind(message): return "static"
agent = Agent()
"""
    write(tmp_path, "dotted.py", code)
    said = {"agent": "called", "agent.run": "ran", "Agent.kind": "static"}
    answer = asyncio.run(call(load_function(f"dotted.py:{name}", tmp_path), "hi"))
    assert answer == said[name]


@pytest.mark.parametrize("spec", ["reply", "agent.py", "agent.py:", ":reply", ""])
def test_what_names_no_function_says_how_to(tmp_path: Path, spec: str) -> None:
    assert refused(spec, tmp_path) == f"`{spec}` names no function: write `module:function`"


def test_a_missing_module_says_where_it_was_searched_for(tmp_path: Path) -> None:
    said = refused("no_such_agents:reply", tmp_path)
    assert said.startswith("no module `no_such_agents`: looked below ")
    assert str(tmp_path) in said
    assert refused("sub/none.py:reply", tmp_path) == f"{tmp_path}/sub/none.py: no such file"


def test_a_missing_function_says_which_was_meant(tmp_path: Path) -> None:
    write(tmp_path, "misspelt.py", "def reply(m): return m")
    assert "did you mean `reply`?" in refused("misspelt.py:repyl", tmp_path)
    assert refused("misspelt.py:__name__", tmp_path).endswith("is str, not a function")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def reply(m) return m", "raised SyntaxError: "),
        ("import no_such_library", "raised ModuleNotFoundError: No module named 'no_such_library'"),
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
        ("raise SystemExit('set KEY first')", "raised SystemExit: set KEY first"),
    ],
)
@pytest.mark.parametrize("how", ["file", "module"])
def test_a_broken_module_says_what_is_wrong_with_it(
    tmp_path: Path, code: str, said: str, how: str
) -> None:
    name = f"broken_{abs(hash(code))}"
    write(tmp_path, f"{name}.py", code)
    spec = f"{name}.py:reply" if how == "file" else f"{name}:reply"
    message = refused(spec, tmp_path)
    assert said in message
    assert message.startswith(f"importing `{spec.partition(':')[0]}` ")
    assert not [module for module in sys.modules if name in module]
    assert refused(spec, tmp_path) == message


def test_a_module_whose_own_part_is_missing_is_not_said_to_be_missing_itself(
    tmp_path: Path,
) -> None:
    write(tmp_path, "parted/__init__.py", "import parted.gone")
    assert "importing `parted` raised ModuleNotFoundError" in refused("parted:reply", tmp_path)


@pytest.mark.parametrize("how", ["file", "module"])
def test_a_broken_module_says_on_which_line(tmp_path: Path, how: str) -> None:
    name = f"broken_line_{how}"
    write(tmp_path, f"{name}.py", "x = 1\ndef reply(m) return m")
    spec = f"{name}.py:reply" if how == "file" else f"{name}:reply"
    assert refused(spec, tmp_path).endswith(f" ({name}.py:2)")
    write(tmp_path, f"{name}.py", "x = 1\nimport no_such_library")
    assert refused(spec, tmp_path).endswith(f"'no_such_library' ({name}.py:2)")


def test_the_place_of_an_error_is_the_users_line_that_called_a_package(tmp_path: Path) -> None:
    code = "import json\n\ndef reply(m):\n    return json.loads('{')\n"
    write(tmp_path, "asks_json.py", code)
    reply = load_function("asks_json.py:reply", tmp_path)
    with pytest.raises(ValueError, match="Expecting") as raised:
        reply("hi")
    assert worded(raised.value).endswith(" (asks_json.py:4)")
