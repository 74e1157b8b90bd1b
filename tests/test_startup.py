"""Starting costs nothing worth noticing: nobody pays for what they do not use."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import Struct

import baton

ROOT = Path(__file__).parent.parent
DESK = ROOT / "examples" / "adk" / "recordings" / "support_desk"
HEAVY = [
    "alembic", "anthropic", "anyio", "boto3", "botocore", "google", "grpc", "h11", "httpx", "httpx2",
    "jinja2", "litellm", "mistralai", "nltk", "numpy", "openai", "opentelemetry", "pandas", "psycopg",
    "pyarrow", "pydantic", "pydantic_ai", "rouge_score", "sqlalchemy", "starlette", "uvicorn",
]  # fmt: skip
KEPT_VERDICT = """
import asyncio
from baton.judges.cache import Verdict, VerdictCache
from baton.judges.judge import make_judge
from baton.judges.judge_settings import read_settings
from baton.model import JudgeRequest
settings = read_settings({{"model": "openai:m", "base_url": "http://127.0.0.1:1/v1"}})
judge = make_judge(settings, cache={path!r})
asked = JudgeRequest(
    rubric="r", version="1", instructions="i", content="c", schema={{"type": "object"}}
)
kept = VerdictCache({path!r})
kept.put(judge.kept(asked)[0], "r", Verdict(value={{}}, model="m"))
kept.close()
assert asyncio.run(judge.ask(asked)).cached
"""


def loaded(code: str) -> set[str]:
    """Return the top-level modules that are loaded after running code in a new interpreter."""
    tail = "\nimport sys\nprint(' '.join(sorted({m.partition('.')[0] for m in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code + tail], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.splitlines()[-1].split())


def test_importing_baton_loads_nothing_else() -> None:
    more = loaded("import baton") - loaded("import importlib, typing")
    assert more - {"__future__"} == {"baton"}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["score", f"{DESK}/refund.sse", "--out", "{out}"], ["show", f"{DESK}/refund.sse"]],
    ids=["help", "score", "show"],
)
def test_no_command_loads_a_framework(arguments: list[str], tmp_path: Path) -> None:
    filled = [argument.format(out=tmp_path) for argument in arguments]
    assert not loaded(f"from baton.cli import main\nmain({filled!r})") & set(HEAVY)


def test_scoring_json_without_a_judge_loads_neither_asyncio_nor_yaml(tmp_path: Path) -> None:
    arguments = ["score", f"{DESK}/refund.sse", "--out", str(tmp_path)]
    found = loaded(f"from baton.cli import main\nmain({arguments!r})")
    assert not found & {"asyncio", "yaml"}


def test_scoring_recordings_with_several_processes_does_not_load_what_plays_cases(
    tmp_path: Path,
) -> None:
    """Nothing is scored before it has loaded: asyncio and the players take 40 ms."""
    arguments = ["score", f"{DESK}/refund.sse", "--jobs", "2", "--out", str(tmp_path)]
    code = (
        f"from baton.cli import main\nmain({arguments!r})\nimport sys\n"
        "assert 'baton.runner.backends.local' in sys.modules\n"
        "assert not [m for m in sys.modules if m.startswith('baton.providers')]"
    )
    assert "asyncio" not in loaded(code)


def test_eval_loads_no_finding_that_compiles_patterns_before_one_is_asked_for() -> None:
    code = "import sys, baton.cli.eval\nassert 'baton.findings.facts' not in sys.modules"
    assert "baton" in loaded(code)


def test_evaluators_of_texts_compile_few_patterns_before_there_is_a_text() -> None:
    """There are about 500. Compiling all of them takes as long as everything else at the start."""
    code = """
import re._compiler
compiled = []
compile = re._compiler.compile
re._compiler.compile = lambda pattern, flags=0: compiled.append(pattern) or compile(pattern, flags)
import baton.evaluators.claims_supported, baton.evaluators.context_carried
import baton.evaluators.result_contradicted, baton.evaluators.result_used
print(len(compiled))
"""
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(made.stdout) < 60


def test_types_that_most_commands_decode_have_no_annotations_to_compile() -> None:
    modules = ["formats.adk", "formats.evaluation_folder", "formats.evaluation_header"]
    modules += [f"model.{n}" for n in ("aggregates", "evaluation", "provenance", "score", "trace")]
    for name in modules:
        found = vars(import_module(f"baton.{name}"))
        structs = [v for v in found.values() if isinstance(v, type) and issubclass(v, Struct)]
        assert structs
        for struct in structs:
            own = struct.__module__ == f"baton.{name}"
            assert not own or not any(isinstance(v, str) for v in struct.__annotations__.values())


@pytest.mark.heavy
def test_rouge_loads_the_stemmer_of_nltk_and_not_all_of_it() -> None:
    code = (
        "from baton.evaluators.matching.rouge import rouge1\n"
        "assert rouge1('the refunds', 'the refund').fmeasure == 1"
    )
    assert not loaded(code) & {"nltk", "scipy", "numpy"}
    # A program that uses NLTK itself gets all of it, whoever is first.
    whole = "from nltk.stem import SnowballStemmer\nassert SnowballStemmer('english')"
    assert "nltk" in loaded(f"{code}\n{whole}")
    assert "nltk" in loaded(f"{whole}\n{code}")


def test_runs_without_judges_do_not_even_open_a_database(tmp_path: Path) -> None:
    arguments = ["score", f"{DESK}/refund.sse", "--out", str(tmp_path)]
    assert "sqlite3" not in loaded(f"from baton.cli import main\nmain({arguments!r})")


def test_a_judge_whose_verdicts_are_kept_loads_no_llm_library(tmp_path: Path) -> None:
    found = loaded(KEPT_VERDICT.format(path=str(tmp_path / "verdicts")))
    assert "sqlite3" in found
    assert not found & set(HEAVY)


def test_a_guard_loads_what_a_decision_needs() -> None:
    found = loaded("from baton.guard import Guard")
    assert not found & {*HEAVY, "asyncio", "jsonschema", "regex", "rich", "yaml"}


def test_the_hook_of_a_guard_loads_what_a_decision_needs(tmp_path: Path) -> None:
    """Each tool call of Claude Code waits for it."""
    (tmp_path / "policy.yaml").write_text("rules: [{max_dispatches: 1}]")
    event = '{"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Read"}'
    words = ["hook", "claude", "guard", "--run", "--policy", str(tmp_path / "policy.yaml")]
    words += ["--store", str(tmp_path / "guard.db")]
    code = (
        f"import io, sys\nsys.stdin = io.TextIOWrapper(io.BytesIO({event.encode()!r}))\n"
        f"from baton.cli import main\nassert main({words!r}) == 0\n"
        "for each in ('config', 'evaluators', 'readers', 'session'):\n"
        "    assert f'baton.{each}' not in sys.modules, each"
    )
    assert not loaded(code) & {*HEAVY, "asyncio", "jsonschema", "regex", "rich", "stamina"}


def test_every_public_name_is_there_and_is_documented() -> None:
    import baton

    for name in baton.__all__:
        assert getattr(baton, name).__doc__, name
    with pytest.raises(AttributeError, match="nonsense"):
        baton.nonsense  # noqa: B018


@pytest.mark.parametrize("name", ["evaluators", "guard", "otel", "prompts", "testing"])
def test_modules_of_programs_are_there_where_only_baton_was_imported(name: str) -> None:
    assert "baton" in loaded(f"import baton\nassert baton.{name}.__name__ == 'baton.{name}'")


def test_the_version_is_reported_without_loading_what_commands_need() -> None:
    code = (
        "import sys\nfrom baton.cli import main\nassert main(['--version']) == 0\n"
        "print(sorted({n.partition('.')[0] for n in sys.modules} & {'cyclopts', 'rich', 'msgspec'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    version, loaded = done.stdout.splitlines()
    assert version == baton.__version__
    assert loaded == "[]"


def test_recording_a_program_loads_no_reader() -> None:
    code = "import baton.otel, sys\nassert not [m for m in sys.modules if 'baton.readers' in m]"
    assert "opentelemetry" in loaded(code)
