"""`server.yaml` is checked like a config, and followed while the server runs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from baton.model import InputError
from baton.server.settings import LiveSettings, load_settings


def _write(folder: Path, text: str) -> Path:
    file = folder / "server.yaml"
    file.write_text(text)
    return file


def test_without_a_file_everything_has_a_value() -> None:
    settings = load_settings(None, {"port": 0, "db": None})
    assert (settings.host, settings.port, settings.grpc_port) == ("127.0.0.1", 0, 4317)
    assert settings.store == Path(".baton/server")
    assert settings.redaction.is_on
    assert not settings.body_redaction.is_on


def test_times_and_sizes_have_units(tmp_path: Path) -> None:
    text = (
        "quiet: 0.2 s\nkeep_inbox: 2 h\nretention: {days: 30, bytes: 10 GB}\n"
        "limits: {body: 1 MiB, spans: 10}\n"
    )
    settings = load_settings(_write(tmp_path, text))
    assert (settings.quiet, settings.keep_inbox) == (0.2, 7200.0)
    assert (settings.retention.days, settings.retention.bytes) == (30, 10_000_000_000)
    assert (settings.limits.body, settings.limits.spans) == (1 << 20, 10)


def test_every_problem_has_its_line(tmp_path: Path) -> None:
    text = "prot: 4318\nlimits:\n  spans: 0\ncontent: hash\n"
    with pytest.raises(InputError) as raised:
        load_settings(_write(tmp_path, text))
    said = str(raised.value)
    assert "server.yaml:1: prot" in said
    assert "did you mean `port`" in said
    assert "server.yaml:3: limits.spans" in said
    assert "server.yaml:4: content" in said


def test_problems_of_all_parts_are_reported_at_once(tmp_path: Path) -> None:
    text = """\
prot: 4318
quiet: 5 parsecs
limits: {spans: 0}
redact: [emial]
alerts: {webhok: http://example.com}
embeddings: {model: "openai:e", api_key: secret}
trusted_proxies: [nowhere]
judges:
  haiku: {model: haiku}
rules:
- {name: one, on: conversatoin, evaluators: [agent_chain]}
- {name: two, on: conversation, evaluators: [agent_chian]}
- name: three
  on: conversation
  evaluators: [{type: faithfulness, judge: haiku}]
  alert: {when: faithfulness < 0.9 over 50, to: [webhook]}
condense: other
"""
    with pytest.raises(InputError) as raised:
        load_settings(_write(tmp_path, text))
    places = [(problem.line, problem.path.split("[")[0]) for problem in raised.value.problems]
    assert sorted(places, key=str) == sorted(
        [
            (1, "prot"),
            (2, "quiet"),
            (3, "limits.spans"),
            (4, "redact"),
            (5, "alerts.webhok"),
            (6, "embeddings.api_key"),
            (7, "trusted_proxies"),
            (9, "judges.haiku.model"),
            (11, "rules"),
            (12, "rules"),
            (17, "condense"),
        ],
        key=str,
    )


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("host: localhost\nquiet: 5 parsecs\n", 2, "not a measure"),
        ("host: localhost\nredact: [emial]\n", 2, "did you mean `email`"),
        ("host: localhost\ndb: ${BATON_NO_SUCH}\n", 2, "is not set"),
        ("- host\n", None, "mapping"),
        ("trusted_proxies: [nowhere]\n", 1, "not an address"),
    ],
)
def test_a_wrong_value_is_reported(tmp_path: Path, text: str, line: int | None, what: str) -> None:
    with pytest.raises(InputError, match=what) as raised:
        load_settings(_write(tmp_path, text))
    assert raised.value.problems[0].line == line


@pytest.mark.parametrize(
    ("stated", "what"),
    [
        ("rey", "unknown backend `rey`"),
        ("{type: local, workrs: 2}", "did you mean `workers`"),
        ("own:backend", "the backends for rescores are local and ray"),
    ],
)
def test_a_wrong_backend_is_reported_at_the_start(tmp_path: Path, stated: str, what: str) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(f"backend: {stated}\n")
    with pytest.raises(InputError, match=re.escape(what)):
        load_settings(file)


def test_an_invalid_port_is_refused_as_an_option_too() -> None:
    with pytest.raises(InputError, match="--port: ports are 0 to 65535, not 99999"):
        load_settings(None, {"port": 99999})


def test_options_go_before_the_file(tmp_path: Path) -> None:
    file = _write(tmp_path, "port: 1\nfolder: ${WHERE}\n")
    settings = load_settings(file, {"port": 2, "folder": None}, {"WHERE": "store"})
    assert (settings.port, settings.folder) == (2, "store")


def test_a_changed_file_is_followed_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    file = _write(tmp_path, "quiet: 1\nport: 1\n")
    live = LiveSettings(file, {"host": "::1"}, told.append)
    assert not live.reload()

    def change(text: str, at: int) -> bool:
        _write(tmp_path, text)
        os.utime(file, (at, at))
        return live.reload()

    assert change("quiet: 2\nport: 2\n", 1)
    assert (live.now.quiet, live.now.port, live.now.host) == (2.0, 1, "::1")
    assert told == ["these changes need a restart: port"]
    assert not change("quite: 3\n", 2)
    assert live.now.quiet == 2.0
    assert told[1].startswith("the settings were not changed: ")
    assert "did you mean `quiet`" in told[1]
    assert "\n" not in told[1]  # a note is one line
    assert not live.reload()
    assert len(told) == 2
    assert not change("quiet: 2\nport: 1\nprojects: [a]\nidentity_rights: [admin]\n", 3)
    assert (live.now.projects, live.now.identity_rights) == ([], ["read", "review"])
    assert told[2] == "these changes need a restart: identity_rights, projects"


def test_agents_and_folders_of_the_start_join_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "more").mkdir()
    file = tmp_path / "server.yaml"
    file.write_text("agents: {desk: desk:answer}\ndatasets: [cases]\nhost: 0.0.0.0\n")
    given = {"agents": {"home": "http://localhost:1"}, "datasets": [str(tmp_path / "more")]}
    settings = load_settings(file, given)
    assert set(settings.agents) == {"desk", "home"}
    assert settings.datasets == [str(tmp_path / "cases"), str(tmp_path / "more")]
    assert not settings.may_run
    assert load_settings(file, {**given, "allow_run": True}).may_run
    assert load_settings(None, {}).may_run
    with pytest.raises(InputError, match="there is no folder missing"):
        load_settings(None, {"datasets": ["missing"]})


def test_rules_are_read_again_when_the_file_of_a_rubric_changes(tmp_path: Path) -> None:
    rubric = tmp_path / "polite.yaml"
    rubric.write_text(
        "name: polite\nsummary: whether it is polite\nunit: dispatch\nversion: '1'\nthreshold: 1\n"
        "inputs: [call]\nprompt: Is it polite?\n"
        "answer: {choices: {yes_: {score: 1, means: it is}, no_: {score: 0, means: it is not}}}\n"
    )
    file = _write(
        tmp_path,
        "judges: {j: {model: 'anthropic:claude-haiku-4-5'}}\nrules: [{name: a, evaluators: [{type: polite.yaml, judge: j}]}]\n",
    )
    live = LiveSettings(file, {}, lambda _: None)

    def version() -> list[str]:
        (rule,) = live.now.live_rules.rules
        return [
            planned.evaluator.version for part in rule.judged for planned in part.plan.evaluators
        ]

    first = live.now.live_rules
    assert version() == ["1"]
    assert live.now.live_rules is first  # read once while nothing changes
    rubric.write_text(rubric.read_text().replace("version: '1'", "version: '2'"))
    assert version() == ["2"]
    rubric.unlink()
    with pytest.raises(InputError, match="no such file"):
        _ = live.now.live_rules
