"""Where a better text goes in the files of a project."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import msgspec
import pytest

from baton.improvements.texts_in_files import Change, changes_of_files, write_files
from baton.model import Example, InputError


def changed(root: Path, component: str, before: str, after: str, *places: str) -> dict[str, str]:
    """Write the new text, and return the files that changed, by their names."""
    change = Change(component=component, before=before, after=after)
    where = {component: [root / each for each in places] or [root]}
    files = changes_of_files([change], where, root)
    write_files(files, root, root / ".baton" / "backup")
    return {str(each.path): (root / each.path).read_text("utf-8") for each in files}


def project(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_py", ".py").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")


@pytest.mark.parametrize(
    "source",
    [
        'desk = Agent(name="desk", instructions="Be kind.")\n',
        'TEXT = "Be kind."\ndesk = Agent(name="desk", instructions=TEXT)\n',
        'desk = Agent(name="desk", instructions=("Be "\n    "kind."))\n',
        "text = baton.prompts.get('agent:desk', 'Be kind.')\n",
        'desk = Agent(name="desk", instructions="""Be kind.""")\n',
        "# größer\nä = 'ö'; desk = Agent('desk', system_prompt='Be kind.')  # ü\n",
    ],
)
@pytest.mark.parametrize(
    "new", ["Be kind and brief.", 'Say "no".\nQuote \\ and \'\'\' and """.', "Zeile 1\n\tZeile 2\n"]
)
def test_a_string_of_a_program_is_replaced_and_reads_as_the_new_text(
    tmp_path: Path, source: str, new: str
) -> None:
    project(tmp_path, app_py=source)
    made = changed(tmp_path, "agent:desk", "Be kind.", new)["app.py"]
    strings = [n.value for n in ast.walk(ast.parse(made)) if isinstance(n, ast.Constant)]
    assert new in strings
    assert "Be kind." not in strings


def test_of_two_agents_with_one_text_the_named_one_is_changed(tmp_path: Path) -> None:
    source = """\
        a = Agent(name="desk", instructions="Be kind.")
        b = Agent(name="refunds", instructions="Be kind.")
        """
    project(tmp_path, app_py=source)
    made = changed(tmp_path, "agent:refunds", "Be kind.", "Pay.")["app.py"]
    assert 'name="desk", instructions="Be kind."' in made
    assert 'name="refunds", instructions="Pay."' in made


def test_a_text_that_nothing_tells_apart_is_refused_with_its_places(tmp_path: Path) -> None:
    project(tmp_path, a_py='X = "Be kind."\n', b_py='Y = "Be kind."\n')
    with pytest.raises(InputError, match=r"is in 2 places \(a.py, b.py\): change it by hand"):
        changed(tmp_path, "agent:desk", "Be kind.", "Pay.")
    assert (tmp_path / "a.py").read_text() == 'X = "Be kind."\n'


def test_a_text_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    project(tmp_path, app_py='X = f"Be {how}."\n')
    with pytest.raises(InputError, match="no file has its text as it was"):
        changed(tmp_path, "agent:desk", "Be kind.", "Pay.")


def test_the_docstring_of_a_tool_keeps_its_indent(tmp_path: Path) -> None:
    source = '''\
        class Tools:
            def pay(self):
                """Pay an order.

                At once.
                """
        '''
    project(tmp_path, app_py=source)
    made = changed(tmp_path, "tool:pay", "Pay an order.\n\nAt once.", "Pay it.\n\nOnly once.")
    body = ast.parse(made["app.py"]).body[0].body[0]  # type: ignore[attr-defined]
    assert ast.get_docstring(body) == "Pay it.\n\nOnly once."
    assert "        Only once.\n        " in made["app.py"]


def test_an_agent_definition_of_claude_code_keeps_its_front_matter(tmp_path: Path) -> None:
    text = (
        "---\nname: desk\n# who routes\ndescription: Use it: always\ntools: Read\n---\n\nBe kind.\n"
    )
    project(tmp_path, **{"agents/desk.md": text})
    assert changed(tmp_path, "agent:desk", "Be kind.", "Be brief.", "agents") == {
        "agents/desk.md": text.replace("Be kind.", "Be brief.")
    }
    made = changed(tmp_path, "description:desk", "Use it: always", 'Use "it"', "agents")
    assert 'description: "Use \\"it\\""\ntools: Read' in made["agents/desk.md"]


def test_a_value_of_yaml_is_replaced_and_comments_stay(tmp_path: Path) -> None:
    text = """\
        # the root
        name: desk
        instruction: |
          Be kind.
          And brief.
        sub_agents:
        - {name: refunds, instruction: Pay.}
        """
    project(tmp_path, agent_yaml=text)
    made = changed(tmp_path, "agent:desk", "Be kind.\nAnd brief.\n", "Route.\nDo no work.\n")
    new = made["agent.yaml"]
    assert "# the root" in new
    assert "Route." in new
    assert "{name: refunds, instruction: Pay.}" in new


def test_a_file_of_a_prompt_keeps_its_line_ends_and_its_last_newline(tmp_path: Path) -> None:
    (tmp_path / "desk.txt").write_bytes(b"Be kind.\r\nAlways.\r\n")
    component = "agent:desk"
    change = Change(component=component, before="Be kind.\r\nAlways.\r", after="Pay.\nNow.")
    files = changes_of_files([change], {component: [tmp_path / "desk.txt"]}, tmp_path)
    write_files(files, tmp_path, tmp_path / "backup")
    assert (tmp_path / "desk.txt").read_bytes() == b"Pay.\r\nNow.\r\n"
    assert (tmp_path / "backup" / "desk.txt").read_bytes() == b"Be kind.\r\nAlways.\r\n"


def test_a_choice_of_examples_is_written_as_ids(tmp_path: Path) -> None:
    source = 'shown = baton.prompts.examples("examples:desk", "shown.yaml:a,b")\n'
    project(tmp_path, app_py=source)
    new = msgspec.json.encode([Example(id="c", input="x")]).decode()
    made = changed(tmp_path, "examples:desk", "[]", new)
    assert '"shown.yaml:c"' in made["app.py"]


def test_links_and_files_outside_are_not_written(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    project(outside, app_py='X = "Be kind."\n')
    root.mkdir()
    (root / "app.py").symlink_to(outside / "app.py")
    (root / "linked").symlink_to(outside)
    for place in ("app.py", "linked/app.py", "../outside/app.py"):
        with pytest.raises(InputError):
            changed(root, "agent:desk", "Be kind.", "Pay.", place)
    with pytest.raises(InputError, match="no file has its text"):
        changed(root, "agent:desk", "Be kind.", "Pay.")
    assert (outside / "app.py").read_text() == 'X = "Be kind."\n'


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    project(tmp_path, app_py='X = "Be kind."\n')
    change = Change(component="agent:desk", before="Be kind.", after="Pay.")
    files = changes_of_files([change], {"agent:desk": [tmp_path]}, tmp_path)
    (tmp_path / "app.py").write_text('X = "Be kind."\nY = 1\n')
    with pytest.raises(InputError, match="has changed since it was read"):
        write_files(files, tmp_path, tmp_path / "backup")
    assert (tmp_path / "app.py").read_text() == 'X = "Be kind."\nY = 1\n'
