"""Measure, and write the tables of docs/accuracy.md: ``make accuracy``.

python -m accuracy                    # print the tables of both halves
python -m accuracy --write            # write them into docs/accuracy.md
python -m accuracy --only loop        # some kinds of faults
"""

from __future__ import annotations

import argparse

from .figures import measure
from .page import PAGE, tables, with_tables
from .trials import MADE_BY, trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/accuracy.md")
    parser.add_argument("--only", nargs="*", choices=MADE_BY, default=list(MADE_BY))
    options = parser.parse_args()
    made = tables(measure(trials(options.only)))
    if options.write:
        PAGE.write_text(with_tables(PAGE.read_text("utf-8"), made), "utf-8")
    print(made)


main()
