"""The commands: what each is for, its group, and two examples.

Help texts and pages take them from here. A group that has no command yet is not shown.
"""

from __future__ import annotations

from typing import NamedTuple

from cyclopts import App, Group

from baton import __version__


class Example(NamedTuple):
    """A command line, and what it is for.

    ``code`` is the exit code that it has in a folder that holds `examples/` of the repository;
    ``None`` if it needs more, such as a server, a person or an existing evaluation.
    """

    line: str
    what: str
    code: int | None = None


class Verb(NamedTuple):
    """A command: its group, its summary, and its examples."""

    group: str
    summary: str
    examples: tuple[Example, Example]


GROUPS = {
    "look": "Look at what agents did, and at results",
    "score": "Score recordings and live agents",
    "decide": "Decide what got better or worse",
    "live": "Live systems: record, fetch, send",
    "learn": "Learn from people",
    "protect": "Protect agents while they run",
}
"""Each group with its title, in the order of the help."""

_DESK = "examples/adk/recordings/support_desk"

TABLE = {
    "init": Verb(
        "score",
        "Write a config, a first case and a CI workflow into this folder.",
        (
            Example("baton init", "asks for what it needs"),
            Example(
                "baton init --agent sample --message 'I want my money back.' --ci none",
                "with two sample agents",
            ),
        ),
    ),
    "draft": Verb(
        "score",
        "Turn a good run into a case.",
        (
            Example(f"baton draft {_DESK}/refund.sse", "prints the case", 0),
            Example(
                f"baton draft {_DESK}/refund.sse --dispatch dispatch1 -o cases/",
                "makes a case of one dispatch",
                0,
            ),
        ),
    ),
    "collect": Verb(
        "score",
        "Select production dispatches for a set of cases.",
        (
            Example("baton collect runs/ -o cases/", "100 dispatches of recordings, one file each"),
            Example(
                "baton collect server://localhost:4318 --failing --count 20 -o failing.yaml",
                "from a server, failures only",
            ),
        ),
    ),
    "convert": Verb(
        "score",
        "Convert a dataset to another dialect, and list what is lost.",
        (
            Example(
                "baton convert examples/adk/cases.yaml --to adk -o desk.evalset.json",
                "for `adk eval`",
                0,
            ),
            Example("baton convert desk.evalset.json --to baton -o cases.yaml", "converts it back"),
        ),
    ),
    "check": Verb(
        "score",
        "Check datasets, configs, rubrics, traces and agent definitions, and run nothing.",
        (
            Example(
                "baton check examples/adk/cases.yaml examples/adk/baton.yaml",
                "cases, and the config that names them",
                0,
            ),
            Example("baton check . --strict", "warnings count, too"),
        ),
    ),
    "score": Verb(
        "score",
        "Score recorded traces, with or without a dataset.",
        (
            Example(
                f"baton score {_DESK}/refund.sse", "without cases: what the recording proves", 0
            ),
            Example(
                f"baton score {_DESK}/refund.sse -d examples/adk/cases.yaml:refund",
                "against a case",
                0,
            ),
        ),
    ),
    "eval": Verb(
        "score",
        "Play a dataset against live agents and score what they did.",
        (
            Example("baton eval examples/python/baton.yaml", "the agents of a config", 0),
            Example(
                "baton eval examples/python/desk.py:answer examples/python/cases.yaml -k refund",
                "a function, some of the cases",
            ),
        ),
    ),
    "replay": Verb(
        "score",
        "Play recorded dispatches again, with one thing changed, and show what differs.",
        (
            Example("baton replay app.py:desk runs/ --dispatch d1", "one dispatch, as it was"),
            Example(
                "baton replay cases.yaml --with agent:desk=new.md --repeat 5",
                "cases, with the agents of baton.yaml, and with new instructions",
            ),
        ),
    ),
    "improve": Verb(
        "score",
        "Find better texts for agents, and prove on held-out cases that they are better.",
        (
            Example(
                "baton improve app.py:desk cases.yaml --judge openai:gpt-5-mini",
                "improves the agents that the failures point to",
            ),
            Example(
                "baton improve --from .baton/improvements/FOLDER --apply",
                "write the texts that a finished one has proven",
            ),
        ),
    ),
    "components": Verb(
        "score",
        "List the texts of agents that may be changed, with their hashes.",
        (
            Example("baton components examples/python/prompted.py:desk", "of a program", 0),
            Example("baton components --show agent:desk", "one text, of the agents of baton.yaml"),
        ),
    ),
    "watch": Verb(
        "score",
        "Evaluate, then evaluate again what a changed file affects, until Ctrl-C.",
        (
            Example("baton watch", "with baton.yaml of this folder"),
            Example("baton watch examples/python/baton.yaml", "with another config"),
        ),
    ),
    "show": Verb(
        "look",
        "Draw recorded traces: runs, dispatches and tools.",
        (
            Example(f"baton show {_DESK}/refund.sse", "one run", 0),
            Example(
                "baton show examples/claude/scope_bleed --dispatch dispatch1", "one dispatch", 0
            ),
        ),
    ),
    "view": Verb(
        "look",
        "Look at recordings and evaluations in the browser.",
        (
            Example(f"baton view {_DESK}", "a folder of recordings"),
            Example("baton view", "evaluations and recordings of this folder"),
        ),
    ),
    "report": Verb(
        "look",
        "Report on a stored evaluation.",
        (
            Example("baton report", "the newest evaluation"),
            Example("baton report -o report.html", "one page with every case and trace"),
        ),
    ),
    "list": Verb(
        "look",
        "List evaluators, providers, reporters and backends, with their options.",
        (
            Example("baton list", "all of them", 0),
            Example("baton list agent_chain", "what its options mean", 0),
        ),
    ),
    "clean": Verb(
        "look",
        "Remove evaluations and recordings below .baton that are older than an age.",
        (
            Example("baton clean --older-than 30d", "what is older than a month", 0),
            Example("baton clean --older-than 12h --dry-run", "lists what would be removed", 0),
        ),
    ),
    "baseline": Verb(
        "decide",
        "Save an evaluation as a baseline to compare with, or show the saved one.",
        (
            Example("baton baseline set", "saves the newest evaluation"),
            Example("baton baseline show", "prints what is saved"),
        ),
    ),
    "compare": Verb(
        "decide",
        "Compare two evaluations: what got worse, and where routing changed.",
        (
            Example("baton compare", "the newest evaluation with the baseline"),
            Example("baton compare BEFORE AFTER --fail-on-regression", "two folders, in CI"),
        ),
    ),
    "trend": Verb(
        "decide",
        "Show how a figure changed over evaluations, for each model.",
        (
            Example("baton trend", "how many cases pass"),
            Example(
                "baton trend --axis agent_chain --last 20",
                "one evaluator, in the last 20 evaluations",
            ),
        ),
    ),
    "issues": Verb(
        "decide",
        "Group what failed into issues, with rates, names and states.",
        (
            Example("baton issues examples/claude/scope_bleed", "of recordings", 0),
            Example(
                "baton issues --investigate 3f2a --judge openai:gpt-4o-mini",
                "what goes wrong, and how to fix it",
            ),
        ),
    ),
    "blame": Verb(
        "decide",
        "Find the agent, the step and the fault that made a run fail.",
        (
            Example("baton blame examples/claude/scope_bleed", "a recording", 0),
            Example(
                "baton blame --judge openai:gpt-4o-mini", "what failed in the newest evaluation"
            ),
        ),
    ),
    "serve": Verb(
        "live",
        "Receive spans and logs of agents, store them, and score them as they arrive.",
        (
            Example("baton serve", "on port 4318 of this machine"),
            Example("baton serve server.yaml --db postgresql://baton@db/baton", "for a team"),
        ),
    ),
    "record": Verb(
        "live",
        "Run a program and record what its agents do, without changing its code.",
        (
            Example("baton record -- python app.py", "into .baton/recordings"),
            Example(
                "baton record -o runs/today.otlp.jsonl -- pytest -q", "into a file, any program"
            ),
        ),
    ),
    "pull": Verb(
        "live",
        "Fetch traces from Phoenix or Langfuse into a file.",
        (
            Example("baton pull phoenix --project default --since 2026-01-31", "since a date"),
            Example("baton pull langfuse --session s-42 -o runs.jsonl", "one session"),
        ),
    ),
    "export": Verb(
        "live",
        "Write recordings as OpenTelemetry spans, and results as evaluation events.",
        (
            Example(f"baton export {_DESK}/refund.sse -o spans.jsonl", "into a file", 0),
            Example(f"baton export {_DESK} --otlp http://localhost:4318", "to a collector"),
        ),
    ),
    "push": Verb(
        "live",
        "Send recordings to a server.",
        (
            Example("baton push runs/", "a folder"),
            Example("baton push session.jsonl --server http://traces.internal:4318", "one file"),
        ),
    ),
    "submit": Verb(
        "live",
        "Have a server evaluate cases with one of its agents, or score recordings.",
        (
            Example(
                "baton submit cases.yaml --agent support --wait", "plays an agent of the server"
            ),
            Example("baton submit cases.yaml runs/ -e agent_chain", "scores recordings"),
        ),
    ),
    "hook": Verb(
        "live",
        "Have Claude Code send each session to a server, or ask a policy before it acts.",
        (
            Example("baton hook claude push", "shows the change of its settings, and asks"),
            Example("baton hook claude guard --policy policy.yaml", "asks a policy"),
        ),
    ),
    "label": Verb(
        "learn",
        "Label the dispatches of an evaluation, to compare judges with.",
        (
            Example("baton label", "the newest evaluation"),
            Example(
                "baton label --rubric dispatch_correctness --by kim", "if several people label"
            ),
        ),
    ),
    "calibrate": Verb(
        "learn",
        "Compare a judge with people's labels.",
        (
            Example("baton calibrate dispatch_correctness labels.jsonl traces/", "one model"),
            Example(
                "baton calibrate scope_fidelity labels.jsonl traces/ --against openai:gpt-5-mini",
                "two models",
            ),
        ),
    ),
    "distill": Verb(
        "learn",
        "Train a small classifier on a judge's verdicts, which then answers the clear cases.",
        (
            Example("baton distill scope_fidelity", "on all evaluations below .baton/evaluations"),
            Example("baton distill scope_fidelity --json", "the figures for a program"),
        ),
    ),
    "rubrics": Verb(
        "learn",
        "List, show and test rubrics: the questions that judges are asked.",
        (
            Example("baton rubrics list", "all of them", 0),
            Example("baton rubrics show dispatch_correctness", "what it asks", 0),
        ),
    ),
    "guard": Verb(
        "protect",
        "Check, test and suggest policies that limit agents while they run.",
        (
            Example(
                f"baton guard check examples/guard/policy.yaml {_DESK}",
                "what would have been blocked",
                0,
            ),
            Example(f"baton guard suggest {_DESK}", "a policy as a starting point", 0),
        ),
    ),
}
"""Every command; within a group in the order in which a newcomer needs them."""

BELOW = {
    "rubrics list": (
        Example("baton rubrics list", "those of Baton", 0),
        Example("baton rubrics list --rubrics rubrics/", "with your own"),
    ),
    "rubrics show": (
        Example("baton rubrics show dispatch_correctness", "what it asks", 0),
        Example(
            "baton rubrics show scope_fidelity --trace examples/claude/scope_bleed",
            "what a judge would be shown of a run",
            0,
        ),
    ),
    "rubrics examples": (
        Example(
            "baton rubrics examples dispatch_correctness labels.jsonl .baton/evaluations/MINE",
            "from labels that contradict the judge",
        ),
    ),
    "rubrics test": (
        Example("baton rubrics test --config baton.yaml", "your own, by the judge of a config"),
        Example("baton rubrics test result_integration --judge openai:gpt-4o-mini", "one of them"),
    ),
    "guard check": (
        Example(f"baton guard check examples/guard/policy.yaml {_DESK}", "a folder", 0),
        Example(
            "baton guard check examples/guard/policy.yaml examples/claude/scope_bleed --strict",
            "in CI",
            1,
        ),
    ),
    "guard test": (
        Example(
            "baton guard test examples/guard/policy.yaml examples/guard/cases.yaml", "all cases", 0
        ),
        Example(
            "baton guard test examples/guard/policy.yaml examples/guard/cases.yaml --json",
            "for a program",
            0,
        ),
    ),
    "guard suggest": (
        Example(f"baton guard suggest {_DESK}", "prints it", 0),
        Example("baton guard suggest runs/ -o policy.yaml", "into a file"),
    ),
    "serve keys": (
        Example("baton serve keys create ci --right run", "a key that starts evaluations"),
        Example("baton serve keys list", "all keys with their rights"),
    ),
    "serve keys create": (
        Example("baton serve keys create support-agents", "a key for sending spans"),
        Example("baton serve keys create kim --right read --right review", "for a person"),
    ),
    "serve keys list": (
        Example("baton serve keys list", "all"),
        Example("baton serve keys list server.yaml --project support", "the keys of one project"),
    ),
    "serve keys revoke": (
        Example("baton serve keys revoke kim", "of the project `default`"),
        Example("baton serve keys revoke ci server.yaml --project support", "of another one"),
    ),
    "serve reread": (
        Example("baton serve reread", "everything that could not be read"),
        Example("baton serve reread server.yaml --project support", "of one project"),
    ),
}
"""Examples of the commands below another one."""


def examples_text(examples: tuple[Example, ...]) -> str:
    """Return examples as the help shows them: each below a line that says what it is for."""
    lines = []
    for example in examples:
        lines += [f"    # {example.what}"] if example.what else []
        lines.append(f"    {example.line}")
    return "Examples:\n\n" + "\n".join(lines)


_GROUPS = {
    name: Group(title, sort_key=place) for place, (name, title) in enumerate(GROUPS.items(), 1)
}
_PROGRAM = Group("Baton itself", sort_key=len(GROUPS) + 1)

app = App(
    name="baton",
    help=(
        "Test what happens when AI agents hand work to one another.\n\n"
        "Start with `baton init` for your own agents, or with `baton score RECORDING` for an "
        "existing run.\n\n"
        "Exit codes: 0 passed, 1 failed, 2 bad input or usage, 3 something could not be evaluated."
        "\n\n--debug, before or after the command, shows tracebacks: of crashes of Baton, and of "
        "exceptions in your agents and evaluators."
    ),
    version=__version__,
    version_flags=["--version", "-V"],
    default_parameter=None,
    suppress_keyboard_interrupt=False,
    group_commands=_PROGRAM,
    group_parameters=Group("Options", sort_key=1),
)
_NESTED = ("guard", "rubrics", "serve")
for _place, (_name, _verb) in enumerate(TABLE.items()):
    app.command(
        f"baton.cli.{_name}:{_name}_command",
        name=_name,
        help=_verb.summary,
        group=_GROUPS[_verb.group],
        sort_key=_place,
        # A verb with subcommands says this itself.
        **({} if _name in _NESTED else {"help_epilogue": examples_text(_verb.examples)}),
    )
app.command(
    "baton.cli.app:install_completion",
    name="--install-completion",
    help="Let the shell complete commands and options.",
    group=_PROGRAM,
)
