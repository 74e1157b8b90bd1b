"""Measure, and write the tables of docs/accuracy.md: ``make accuracy``.

python -m accuracy                    # print the tables of both halves
python -m accuracy --write            # write them into docs/accuracy.md
python -m accuracy --only loop        # some kinds of faults
python -m accuracy --texts FOLDER     # other lists of reworded texts: a verdict on each
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .each_text import verdicts
from .figures import measure
from .page import PAGE, tables, with_tables
from .trials import MADE_BY, listed, trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/accuracy.md")
    parser.add_argument("--only", nargs="*", choices=MADE_BY, default=list(MADE_BY))
    parser.add_argument("--texts", type=Path, metavar="FOLDER", help="lists of reworded texts")
    options = parser.parse_args()
    if options.texts is not None:
        for line in verdicts(listed(options.texts, options.only)):
            print(line)
        return
    made = tables(measure(trials(options.only)))
    if options.write:
        PAGE.write_text(with_tables(PAGE.read_text("utf-8"), made), "utf-8")
    print(made)


main()
