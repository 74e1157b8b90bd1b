"""Texts of agents that are listed and changed: by `baton components` and by `baton eval --with`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent

import pytest

import baton
from baton import prompts
from baton.cli import main
from baton.components import to_header
from baton.model import InputError

pytestmark = pytest.mark.heavy  # a program with changed texts has its own process

DESK = """
    import baton
    from baton import prompts

    KIND = "Be kind to {user}. Call look_up first."


    @baton.tool
    def look_up(order):
        return order


    def reply(message):
        return prompts.get("agent:desk", KIND).split()[1]
"""
CASES = """
    cases:
    - {id: one, input: hello, response: kind}
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(dedent(DESK))
    (tmp_path / "cases.yaml").write_text(dedent(CASES))
    (tmp_path / "new.md").write_text("Be brief to {user}. Call look_up first.\n")
    return tmp_path


def test_components_are_listed_though_no_function_has_asked_for_them_yet(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["components", "shop.py:reply"]) == 0
    name, digest, text = capsys.readouterr().out.split(maxsplit=2)
    assert (name, len(digest)) == ("agent:desk", 12)
    assert text.strip() == "Be kind to {user}. Call look_up first."
    assert main(["components", "shop.py:reply", "--show", "agent:desk"]) == 0
    assert capsys.readouterr().out == "Be kind to {user}. Call look_up first.\n"
    assert main(["components", "shop.py:reply", "--json"]) == 0
    [listed] = json.loads(capsys.readouterr().out)
    assert (listed["name"], listed["hash"]) == ("agent:desk", digest)


def test_an_evaluation_plays_with_a_changed_text_and_says_so(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play = ["eval", "shop.py:reply", "cases.yaml", "-e", "response"]
    assert main(play) == 0
    assert main([*play, "--with", "agent:desk=new.md"]) == 1
    out = capsys.readouterr().out
    assert "played with changed texts: agent:desk: " in out
    before, after = sorted((desk / ".baton/evaluations").iterdir())
    header = json.loads((after / "evaluation.json").read_text())
    [change] = header["provenance"]["texts"]
    assert "brief" not in json.dumps(header)
    assert main(["compare", str(before), str(after)]) == 0
    said = f"component agent:desk: {change['before']} → {change['after']}"
    assert said in capsys.readouterr().out
    assert main(["show", str(after)]) == 0
    assert "played with a changed text: agent:desk" in capsys.readouterr().err
    assert main(["eval", "shop.py:reply", "--resume", str(after)]) in (1, 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("agent:dsek=new.md", "no component `agent:dsek`; did you mean `agent:desk`?"),
        ("agent:desk=gone.md", "gone.md: "),
        ("agent:desk", "`agent:desk` changes nothing: write --with agent:NAME=FILE"),
        ("desk=new.md", "`desk` is not a component"),
        ("agent:desk=same.md", "already has this text"),
        ("agent:desk=no_user.md", "it lacks the placeholder `{user}`"),
        ("agent:desk=no_tool.md", "it no longer names the tool `look_up`"),
    ],
)
def test_a_change_that_cannot_be_made_stops_before_anything_is_played(
    desk: Path, capsys: pytest.CaptureFixture[str], change: str, says: str
) -> None:
    (desk / "same.md").write_text("Be kind to {user}. Call look_up first.")
    (desk / "no_user.md").write_text("Be brief. Call look_up first.")
    (desk / "no_tool.md").write_text("Be brief to {user}.")
    assert main(["eval", "shop.py:reply", "cases.yaml", "--with", change]) == 2
    assert says in capsys.readouterr().err
    assert not (desk / ".baton/evaluations").exists()


def test_texts_are_changed_in_python_too(desk: Path) -> None:
    texts = {"agent:desk": "Be brief to {user}. Call look_up first."}
    played = baton.evaluate("cases.yaml", "shop.py:reply", ["response"], texts=texts)
    assert played.status == "failed"
    provenance = played.header.provenance
    assert provenance is not None
    assert [change.name for change in provenance.texts] == ["agent:desk"]
    assert baton.evaluate("cases.yaml", "shop.py:reply", ["response"]).status == "passed"


def test_an_agent_without_texts_says_what_to_do(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk / "plain.py").write_text("def reply(message):\n    return 'kind'\n")
    assert main(["components", "plain.py:reply"]) == 2
    assert "baton.prompts.get" in capsys.readouterr().err


STORE = """
    import json
    import os

    GIVEN = {}


    def take(texts):
        GIVEN.update(texts)


    def reply(message):
        if "GIVEN" in message:
            return GIVEN.get("agent:desk", "kind")
        return json.loads(os.environ.get("BATON_PROMPTS", "{}")).get("agent:desk", "kind")
"""
CONFIG = """
    dataset: cases.yaml
    evaluators: [{type: response}]
    providers:
    - type: python
      target: store:reply
      prompts: {agent:desk: desk.md}
      prompts_to: store:take
"""


@pytest.mark.parametrize("message", ["GIVEN by a function", "hello environment"])
def test_a_program_with_its_own_store_is_given_the_changed_texts(desk: Path, message: str) -> None:
    (desk / "store.py").write_text(dedent(STORE))
    (desk / "desk.md").write_text("Be kind.\n")
    (desk / "baton.yaml").write_text(dedent(CONFIG))
    (desk / "cases.yaml").write_text(dedent(CASES.replace("hello", message)))
    assert [c.text for c in baton.list_components("baton.yaml")] == ["Be kind."]
    assert baton.evaluate(config="baton.yaml").status == "passed"
    changed = baton.evaluate(config="baton.yaml", texts={"agent:desk": "brief"})
    assert changed.results[0].trace is not None
    output = changed.results[0].trace.turns[0].output
    assert output is not None
    assert output.text == "brief"


def test_a_text_in_a_file_that_nothing_takes_is_refused(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk / "store.py").write_text(dedent(STORE))
    (desk / "desk.md").write_text("Be kind.\n")
    (desk / "baton.yaml").write_text(dedent(CONFIG).replace("  prompts_to: store:take\n", ""))
    (desk / "new.md").write_text("Be brief.")
    assert main(["eval", "baton.yaml", "--with", "agent:desk=new.md"]) == 2
    assert "nothing in `store:reply` uses `agent:desk`" in capsys.readouterr().err


def test_a_server_takes_changed_texts_from_a_header() -> None:
    with prompts.handed_over(to_header({"agent:desk": "Be brief."})):
        assert prompts.get("agent:desk", "Be kind.") == "Be brief."
    assert prompts.get("agent:desk", "Be kind.") == "Be kind."
    with pytest.raises(InputError, match="is not base64"), prompts.handed_over("Be brief."):
        pass


SHOWING = """
    from baton import prompts


    def reply(message):
        shown = prompts.examples("examples:desk", "shown.yaml:parcel,chat")
        fits = [each for each in shown if each.input.split()[0] == message.split()[0]]
        return fits[0].to[0] if fits else "nobody"
"""
SHOWN = """
    cases:
    - {id: parcel, input: where is parcel 9, agents: [desk, shipping]}
    - {id: refund, input: refund order 7, agents: [desk, refunds]}
    - {id: chat, input: thanks, agents: [desk]}
"""


def test_other_cases_are_chosen_as_examples_and_the_evaluation_says_which(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk / "showing.py").write_text(dedent(SHOWING))
    (desk / "shown.yaml").write_text(dedent(SHOWN))
    (desk / "choice.yaml").write_text("from: shown.yaml\nids: [refund, parcel]\n")
    (desk / "cases.yaml").write_text("cases:\n- {id: one, input: refund 8, response: refunds}\n")
    assert main(["components", "showing.py:reply"]) == 0
    name, digest, shown = capsys.readouterr().out.split(maxsplit=2)
    assert (name, shown.strip()) == ("examples:desk", "2 cases: parcel, chat")
    play = ["eval", "showing.py:reply", "cases.yaml", "-e", "response"]
    assert main(play) == 1
    for place, choice in enumerate(("choice.yaml", "shown.yaml:refund,parcel"), 1):
        assert main([*play, "--with", f"examples:desk={choice}"]) == 0
        last = sorted((desk / ".baton/evaluations").iterdir())[place]
        header = json.loads((last / "evaluation.json").read_text())
        [change] = header["provenance"]["texts"]
        assert (change["before"], change["cases"]) == (digest, ["refund", "parcel"])
    capsys.readouterr()
    assert main([*play, "--with", "examples:desk=shown.yaml:refunt"]) == 2
    assert "no case `refunt`; did you mean `refund`?" in capsys.readouterr().err
    texts = {"examples:desk": prompts.chosen("shown.yaml:refund")}
    assert baton.evaluate("cases.yaml", "showing.py:reply", texts=texts).status == "passed"


class Chat(BaseHTTPRequestHandler):
    """A server of an agent: it takes texts from the header, or from its requests."""

    def do_POST(self) -> None:
        """Answer with the instructions that hold for this request."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with prompts.handed_over(self.headers.get(prompts.HEADER)):
            told = prompts.get("agent:desk", "Be kind.")
        told = asked.get("prompts", {}).get("agent:desk", told)
        answer = json.dumps({"reply": told}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def chat() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/chat"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "request_", ["{message: '{input}'}", "{m: '{input}', prompts: '{prompts}'}"]
)
def test_a_server_plays_with_a_changed_text(desk: Path, chat: str, request_: str) -> None:
    (desk / "desk.md").write_text("Be kind.\n")
    (desk / "cases.yaml").write_text(dedent(CASES.replace("response: kind", "response: Be kind.")))
    provider = f"{{type: http, url: '{chat}', request: {request_}, answer: $.reply,"
    (desk / "baton.yaml").write_text(
        "dataset: cases.yaml\nevaluators: [{type: response}]\nproviders:\n"
        f"- {provider} prompts: {{agent:desk: desk.md}}}}\n"
    )
    assert baton.evaluate(config="baton.yaml").status == "passed"
    changed = baton.evaluate(config="baton.yaml", texts={"agent:desk": "Be brief."})
    assert changed.status == "failed"
    assert changed.results[0].trace is not None
    output = changed.results[0].trace.turns[0].output
    assert output is not None
    assert output.text == "Be brief."


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("prompts: {agent:desk: gone.md}", "gone.md"),
        ("prompts: {desk: desk.md}", "is not a component"),
        ("prompts_to: environment", "a server gets a header"),
        ("prompts_to: 'store:take'", "name some"),
    ],
)
def test_a_mistake_in_prompts_is_named(desk: Path, options: str, says: str) -> None:
    (desk / "desk.md").write_text("Be kind.\n")
    (desk / "baton.yaml").write_text(
        "providers:\n- {type: http, url: 'http://127.0.0.1:9/', request: '{input}', "
        f"answer: $.reply, {options}}}\n"
    )
    with pytest.raises(InputError, match=says):
        baton.list_components("baton.yaml")
