"""An improvement as one HTML file: proofs, new texts, and the tree of candidates.

The file has no script, and its policy allows none. All texts are escaped, and characters that
cannot be seen are shown: proposals come from models, which read what agents said.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from pathlib import Path

from baton.formats.own_files import make_folder, naming, refuse_overwriting
from baton.gate.compare_axes import AxisChange
from baton.gate.compare_evaluations import p_text
from baton.model.score import digits, rounded
from baton.model.visible import visible, visible_line
from baton.reports.html.scripts import asset

from .report import calibration_rows, is_of_rubric, not_finished
from .result import Calibrated, Candidate, Improvement, Outcome, Study

_LINES = 400
"""Maximum lines of a difference to show: prompts have tens, and a hostile one may have
thousands."""
_DEPTH = 12
"""Maximum generations to indent: deeper ones would be pushed out of a narrow window."""
_COLOURS: dict[Outcome, str] = {
    "proven": "passed",
    "no proven gain": "skipped",
    "stopped": "error",
}


def check_page(file: Path, read: Iterable[Path]) -> None:
    """Make sure that a page can be written to a file, before anything is played.

    Raises:
        InputError: it is one of the files that are ``read``.
        OSError: it cannot be written.
    """
    refuse_overwriting([file], [*read])
    make_folder(file.parent)
    with naming(file), file.open("a", encoding="utf-8"):
        pass


def write_page(improvement: Improvement, file: Path) -> None:
    """Write the page; raises OSError if it cannot be written."""
    with naming(file):
        file.write_text(page_of(improvement), encoding="utf-8", newline="")


def page_of(improvement: Improvement) -> str:
    """Return the whole page; see ``docs/improve.md``."""
    style = asset("theme.css") + files("baton.improvements").joinpath("page.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'"
    title = f"Improvement of {improvement.target}"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}; form-action \'none\'">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        '<link rel="icon" href="data:,">',
        f"<title>{_line(title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        *_top(improvement, title),
        "<main>",
        *[
            line
            for number, study in enumerate(improvement.studies)
            for line in _study(number, study)
        ],
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _top(improvement: Improvement, title: str) -> Iterator[str]:
    split = improvement.split
    proven = len(improvement.texts)
    said = f"{proven} of {len(improvement.studies)} proven"
    yield "<header>"
    colour = "passed" if proven else "error" if improvement.stopped else "skipped"
    yield (
        f'<div class="head"><h1 dir="auto">{_line(title)}</h1>'
        f'<span class="pill {colour}">{said}</span></div>'
    )
    of_rubric = is_of_rubric(improvement)
    cases = f"{len(split.train)} to learn from, {len(split.select)} to choose with"
    facts = [
        ("labelled things" if of_rubric else "cases", f"{cases}, {len(split.held_out)} held out"),
        ("verdicts" if of_rubric else "plays", str(improvement.plays)),
        ("questions to models", str(improvement.asked)),
        ("cost", _usd(improvement.cost_usd)),
        ("time", f"{improvement.seconds:.0f} s"),
        ("seed", str(improvement.seed)),
    ]
    yield '<p class="facts">'
    yield " ".join(f"<span>{name} <b>{escape(value)}</b></span>" for name, value in facts)
    yield "</p>"
    if (unfinished := not_finished(improvement)) is not None:
        yield f'<p class="callout error">{_line(unfinished)}</p>'
    if improvement.stopped:
        said = _line(f"It ended early: {improvement.stopped}")
        yield f'<p class="callout error" dir="auto">{said}</p>'
    for note in improvement.notes:
        yield f'<p class="callout" dir="auto">{_line(note)}</p>'
    yield "</header>"


def _study(number: int, study: Study) -> Iterator[str]:
    colour = _COLOURS[study.outcome]
    yield f'<section class="card" aria-labelledby="study{number}">'
    yield (
        f'<div class="head"><h3 id="study{number}" class="mono" dir="auto">'
        f"{_line(study.component)}</h3>"
        f'<span class="pill {colour}">{escape(study.outcome)}</span></div>'
    )
    yield f'<p class="reason" dir="auto">{_line(study.reason)}</p>'
    played = sum(each.refused is None for each in study.candidates) - 1
    refused = len(study.candidates) - 1 - played
    facts = [f"chosen because {study.why}", f"strategy {study.strategy}"]
    facts.append(f"{max(played, 0)} candidates played, {refused} refused")
    yield '<p class="facts">' + " ".join(f"<span>{_line(each)}</span>" for each in facts) + "</p>"
    if study.proof is not None:
        yield from _proof(study)
    if study.calibration is not None:
        yield from _calibration(study.calibration)
    best = study.candidates[study.best] if study.best is not None else None
    if best is not None:
        what = "What changed" if study.outcome == "proven" else "The best candidate, not proven"
        yield f'<h4 class="h4">{what}</h4>'
        yield _diff(study.before, best.text)
        for mark in study.marks:
            yield (
                f'<p class="callout error warned" dir="auto">New in the text, {escape(mark.kind)}: '
                f"<b>{_line(mark.text)}</b></p>"
            )
    if len(study.candidates) > 1:
        yield '<h4 class="h4">Candidates, each below the one that it was made from</h4>'
        yield from _tree(study)
    yield "</section>"


def _proof(study: Study) -> Iterator[str]:
    proof = study.proof
    assert proof is not None  # noqa: S101 - the caller has checked it
    comparison = proof.comparison
    yield (
        f'<h4 class="h4">On {comparison.cases} held-out cases, paired; intervals at '
        f"{comparison.confidence:.1%}, p corrected for the number of axes</h4>"
    )
    yield '<div class="scroll"><table><thead><tr><th scope="col">Axis</th>'
    for name in ("Before", "After", "Difference", "p"):
        yield f'<th scope="col" class="figure">{name}</th>'
    yield '<th scope="col"></th></tr></thead><tbody>'
    for axis in comparison.axes:
        yield _axis(axis, is_aimed=axis.axis == proof.aimed)
    yield "</tbody></table></div>"
    before, after = proof.words
    costs = f"{_usd(proof.cost_usd[0])} → {_usd(proof.cost_usd[1])}"
    yield (
        f'<p class="facts"><span>length <b>{before} → {after} words</b></span>'
        f"<span>a case costs <b>{costs}</b></span></p>"
    )


def _calibration(made: Calibrated) -> Iterator[str]:
    yield '<h4 class="h4">How far the judge agrees with people on what is held out</h4>'
    yield '<div class="scroll"><table><thead><tr><th scope="col">Figure</th>'
    yield '<th scope="col" class="figure">Text as it was</th>'
    yield '<th scope="col" class="figure">Best text</th></tr></thead><tbody>'
    for row in calibration_rows(made):
        name, before, after = map(_line, row)
        yield (
            f'<tr><td dir="auto">{name}</td><td class="figure">{before}</td>'
            f'<td class="figure">{after}</td></tr>'
        )
    yield "</tbody></table></div>"
    for lack in made.before.lacking:
        yield f'<p class="callout" dir="auto">No evidence: {_line(lack)}</p>'


def _axis(one: AxisChange, *, is_aimed: bool) -> str:
    made = one.difference
    apart = made.difference
    places = digits(made.before, made.after)
    interval = ""
    if apart.low is not None and apart.high is not None:
        interval = f' <span class="dim">[{apart.low:+.{places}f}, {apart.high:+.{places}f}]</span>'
    p = "–" if one.p is None else escape(p_text(one.p))
    aimed = " (aim)" if is_aimed else ""
    return (
        f'<tr{" class=aimed" if is_aimed else ""}><td dir="auto">{_line(str(one.axis))}{aimed}</td>'
        f'<td class="figure">{made.before:.{places}f}</td>'
        f'<td class="figure">{made.after:.{places}f}</td>'
        f'<td class="figure">{apart.value:+.{places}f}{interval}</td><td class="figure">{p}</td>'
        f'<td class="{one.change}">{one.change}</td></tr>'
    )


def _tree(study: Study) -> Iterator[str]:
    """Yield the candidates as nested lists; one with several parents is below the first parent."""
    children: defaultdict[int | None, list[Candidate]] = defaultdict(list)
    for each in study.candidates:
        parents = [parent for parent in each.parents if parent < each.number]
        children[parents[0] if parents else None].append(each)
    way = set(_way_to(study))
    yield '<ul class="tree">'
    # Not by recursion: a chain of candidates may be longer than Python's stack.
    waiting: list[tuple[Candidate, int] | str] = [(each, 0) for each in reversed(children[None])]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            yield here
            continue
        each, depth = here
        yield from _candidate(study, each, is_on_way=each.number in way)
        below = children[each.number]
        if below:
            yield "<ul>" if depth < _DEPTH else '<ul class="deep">'
            waiting.append("</ul></li>")
            waiting += [(one, depth + 1) for one in reversed(below)]
        else:
            yield "</li>"
    yield "</ul>"


def _way_to(study: Study) -> Iterator[int]:
    """Yield the numbers of candidates from the best one up to the original text."""
    number = study.best
    while number is not None:
        yield number
        parents = [each for each in study.candidates[number].parents if each < number]
        number = parents[0] if parents else None


def _candidate(study: Study, one: Candidate, *, is_on_way: bool) -> Iterator[str]:
    kinds = []
    if one.number == study.best:
        kinds.append("best")
    if one.refused is not None:
        kinds.append("refused")
    elif one.ended_early:
        kinds.append("early")
    score = next(iter(one.select.values()), one.train)
    score = one.select.get(study.aimed, score)
    yield f'<li class="{" ".join(kinds)}"><details class="candidate"><summary>'
    yield f'<span class="number">{"★ " if one.number == study.best else ""}#{one.number}</span>'
    if score is not None:
        # The style of a meter would need a policy that allows styles beside texts: SVG has none.
        wide = min(max(score, 0.0), 1.0) * 90
        yield (
            f'<svg class="meter" viewBox="0 0 90 8" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect width="{wide:.0f}" height="8" fill="currentColor"></rect></svg>'
            f'<span class="figure">{rounded(score)}</span>'
        )
    said = "refused" if one.refused is not None else "ended early" if one.ended_early else ""
    by = "the text as it was" if one.number == 0 else one.by
    if not said and is_on_way and one.number:
        said = "the best one" if one.number == study.best else "leads to the best one"
    more = f" · {said}" if said else ""
    yield f'<span class="by" dir="auto">{_line(by)}{more}</span></summary><div class="inside">'
    if one.refused is not None:
        yield f'<p class="callout error" dir="auto">{_line(one.refused)}</p>'
    facts = [f"{one.words} words", f"played {one.plays} cases"]
    facts += [f"{name} {rounded(value)} on select cases" for name, value in one.select.items()]
    if one.train is not None:
        facts.append(f"{rounded(one.train)} on train cases")
    if one.cost_usd is not None:
        facts.append(f"cost {_usd(one.cost_usd)}")
    if len(one.parents) > 1:
        facts.append("made from " + ", ".join(f"#{each}" for each in one.parents))
    yield '<p class="facts">' + " ".join(f"<span>{_line(each)}</span>" for each in facts) + "</p>"
    if one.parents and one.parents[0] < one.number:
        yield _diff(study.candidates[one.parents[0]].text, one.text)
    elif one.number == 0:
        yield f'<pre dir="auto">{_text(one.text)}</pre>'
    yield "</div></details>"


def _diff(before: str, after: str) -> str:
    """Return the lines of two texts, the changed ones marked."""
    lines: list[str] = []
    for line in difflib.ndiff(before.splitlines()[:_LINES], after.splitlines()[:_LINES]):
        kind = {"+": "added", "-": "lost", " ": "same"}.get(line[0])
        if kind is not None:
            lines.append(f'<span class="{kind}">{_text(line[2:]) or " "}</span>')
    cut = max(len(before.splitlines()), len(after.splitlines())) > _LINES
    if cut:
        lines.append(f'<span class="dim">the first {_LINES} lines are shown</span>')
    return f'<pre class="diff" dir="auto">{"".join(lines)}</pre>'


def _text(text: str) -> str:
    return escape(visible(text))


def _line(text: str) -> str:
    return escape(visible_line(text))


def _usd(cost: float | None) -> str:
    return "not known" if cost is None else f"{cost:.4f} USD" if cost < 1 else f"{cost:.2f} USD"
