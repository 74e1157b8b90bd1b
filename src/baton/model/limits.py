"""All limits on input, each with the reason for its value.

Recordings, datasets and folders are untrusted. Each limit is checked before the work that it
bounds. Values are generous: nothing written by hand, and no known recording of a real agent system,
comes near them.
"""

from __future__ import annotations

import msgspec


class Limit(msgspec.Struct, frozen=True):
    """One limit: what it counts, its value, and why it is there.

    ``variable`` is the environment variable that raises it, if there is one.
    """

    name: str
    counts: str
    value: int
    reason: str
    variable: str | None = None

    def raised_by(self) -> str:
        """Return how to raise it, as the end of a message; empty if it is fixed."""
        return f"; set {self.variable} to read more" if self.variable is not None else ""


JSON_DEPTH = Limit(
    "json depth",
    "levels of lists and objects in a JSON file, line, or text that holds JSON",
    200,
    "Python stops at 1,000 nested calls, and comparing, converting and writing a value take up "
    "to three per level. The deepest real recording in our tests has 39 levels.",
)
RECORD_DEPTH = Limit(
    "record depth",
    "levels in Baton's own records and evaluation folders",
    JSON_DEPTH.value + 20,
    "A record wraps the values of a recording in turns, runs and steps, which take up to 12 "
    "levels. Baton has to be able to read what it wrote.",
)
YAML_DEPTH = Limit(
    "yaml depth",
    "levels of lists and mappings in a YAML document, aliases followed",
    JSON_DEPTH.value,
    "The same as for JSON. libyaml's composer calls itself for each level and overflows the C "
    "stack: a million brackets end the process with a segmentation fault.",
)
YAML_NODES = Limit(
    "yaml nodes",
    "values and keys in a YAML document",
    3_000_000,
    "A node takes about 500 bytes until the document is built. A dataset of 100,000 cases has "
    "about 2,000,000 nodes; larger ones are JSON lines, which are read a case at a time.",
)
YAML_ALIASED = Limit(
    "yaml aliases",
    "values and keys that aliases and merge keys repeat in a YAML document",
    1_000_000,
    "Nine levels of nine aliases each make 387 million values out of 11 lines. Shared defaults "
    "of 20 keys in 10,000 cases make 200,000.",
)
FILE_BYTES = Limit(
    "file bytes",
    "bytes of a file, or of a line of a JSON-lines file, that is read as a whole",
    2 << 30,
    "Such a file takes up to three times its size in memory. JSON lines and OpenTelemetry files "
    "are read in pieces and may be longer.",
    "BATON_MAX_FILE_BYTES",
)
SPAN_FILE_BYTES = Limit(
    "span file bytes",
    "bytes of a file of OpenTelemetry spans",
    32 << 30,
    "Such a file is read span by span, and takes little memory. A sparse file of a terabyte "
    "takes no space on the disk, but hours to read.",
    "BATON_MAX_SPAN_FILE_BYTES",
)
PIPE_BYTES = Limit(
    "pipe bytes",
    "bytes that are read from a pipe or from standard input",
    4 << 30,
    "A pipe has no size that could be checked first: its data is copied to a temporary file, "
    "and an endless one would fill the disk.",
    "BATON_MAX_PIPE_BYTES",
)
PIPE_SECONDS = Limit(
    "pipe seconds",
    "seconds to wait for the next bytes of a pipe",
    120,
    "A pipe that no process writes to never ends. Piped input comes from a command that runs "
    "at the same time, and such commands write sooner.",
    "BATON_MAX_PIPE_SECONDS",
)
FAULTS = Limit(
    "faults",
    "problems of one case, config or other document that are reported one by one",
    100,
    "The line of each problem is looked up in the text, and a person reads only the first few. "
    "8,000 unknown keys took 169 seconds; the rest is counted.",
)
NAME_LENGTH = Limit(
    "name length",
    "characters of a name for which similar ones are searched",
    100,
    "The time to compare two texts grows with the product of their lengths, and a key of a "
    "megabyte is not a misspelling.",
)
PATTERN_LENGTH = Limit(
    "pattern length",
    "characters of a regular expression",
    10_000,
    "The time to compile grows with the length. Long alternatives of words are a few hundred.",
)
PATTERN_SIZE = Limit(
    "pattern size",
    "parts of a regular expression when its counted repeats are written out",
    100_000,
    "`((a{1000}){1000}){1000}` is a pattern of 23 characters that takes forever to compile.",
)
PATTERN_MILLISECONDS = Limit(
    "pattern time",
    "milliseconds that one search with a regular expression of a dataset or config may take",
    2_000,
    "`(a+)+$` takes twice as long for each further letter. Ordinary patterns take microseconds, "
    "and less than a second on 100 MB of text.",
)

FINDING_WORK = Limit(
    "finding work",
    "texts of one trace that are compared to find what was passed on and what was used",
    5_000_000,
    "Each dispatch is compared with everything that its caller said and got, so one caller with "
    "5,000 dispatches needs 150,000,000 comparisons. Beyond the limit the verdict is `skipped`; "
    "800 dispatches of one caller, or 100,000 of many, stay below it.",
)
FINDING_TEXT = Limit(
    "finding text",
    "characters of different texts of one trace that are searched for numbers, names and words",
    10_000_000,
    "Reading a text takes a second per million characters. 100 MB in one trace took 300 "
    "seconds; a conversation that fills a context window of a million tokens twice stays below "
    "it. Beyond it the verdict is `skipped`.",
)

LIMITS: tuple[Limit, ...] = (
    JSON_DEPTH,
    RECORD_DEPTH,
    YAML_DEPTH,
    YAML_NODES,
    YAML_ALIASED,
    FILE_BYTES,
    SPAN_FILE_BYTES,
    PIPE_BYTES,
    PIPE_SECONDS,
    FAULTS,
    NAME_LENGTH,
    PATTERN_LENGTH,
    PATTERN_SIZE,
    PATTERN_MILLISECONDS,
    FINDING_WORK,
    FINDING_TEXT,
)
"""All of them, for the table in the documentation."""


def limits_table() -> str:
    """Return all limits as a table of Markdown."""
    rows = ["| limit | value | of what | why | raised by |", "| --- | --- | --- | --- | --- |"]
    for limit in LIMITS:
        raised = f"`{limit.variable}`" if limit.variable is not None else ""
        cells = (limit.name, f"{limit.value:,}", limit.counts, limit.reason, raised)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"
