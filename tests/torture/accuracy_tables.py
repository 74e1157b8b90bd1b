"""Measures accuracy again and compares the tables in docs/: ``python -m tests.torture.accuracy_tables``.

All kinds of faults, and the calls that findings spare judges; with ``--share 0.1`` a tenth of these,
drawn anew each time (``--seed`` draws the same). ``make accuracy`` writes the tables.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ACCURACY, RUBRICS = ROOT / "docs" / "accuracy.md", ROOT / "docs" / "rubrics.md"
CASCADE = "cascade"


def kinds() -> list[str]:
    """The kinds of faults, as the table in the docs is made of them."""
    code = "from accuracy.trials import MADE_BY; print(*MADE_BY)"
    return measured("-c", code).split()


def measured(*words: str) -> str:
    """Run Python in the folder of benchmarks, and return what it prints."""
    command = [sys.executable, *words]
    ran = subprocess.run(
        command, cwd=ROOT / "benchmarks", check=True, stdout=subprocess.PIPE, text=True
    )
    return ran.stdout


def outdated(piece: str) -> list[str]:
    """Return the lines of a measurement that are not in the docs."""
    if piece == CASCADE:
        made, page = measured("-m", "accuracy.cascade"), RUBRICS
    else:
        made, page = measured("-m", "accuracy", "--only", piece), ACCURACY
    there = set(page.read_text("utf-8").splitlines())
    return [line for line in made.splitlines() if line and line not in there]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    pieces = [*kinds(), CASCADE]
    chosen = random.Random(options.seed).sample(pieces, max(1, round(options.share * len(pieces))))
    wrong = {piece: lines for piece in chosen if (lines := outdated(piece))}
    for piece, lines in wrong.items():
        print(f"{piece}: the docs do not have what is measured:", *lines, sep="\n  ")
    print(f"tables of {', '.join(chosen)}: {len(wrong)} out of date, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
