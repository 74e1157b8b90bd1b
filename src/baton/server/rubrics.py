"""The rubrics that a server knows: those of its rules, those of its folder, and those that ship.

Those of the folder are the files that ``baton rubrics`` reads. A file is only overwritten if it
still has the text that was read before, so that concurrent edits by hand are not lost; each
replaced text is kept in ``.history``.
"""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric import Rubric
from baton.evaluators.judging.rubric_files import (
    FOLDER,
    PLACE,
    load_rubric,
    names_of,
    rubric_in,
    shipped,
)
from baton.formats.document import Document, read_bytes
from baton.formats.own_files import write_whole
from baton.model import InputError, Problem, suggestion
from baton.plugins import RUBRIC_SUFFIXES

from .settings import Settings


class OwnFile(NamedTuple):
    """A file in the folder of rubrics: the rubric in it, or its errors."""

    file: Path
    rubric: Rubric | None
    problems: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """The name of the rubric, or of the file if it has errors."""
        return self.file.stem if self.rubric is None else self.rubric.name


def own_files(settings: Settings) -> list[OwnFile]:
    """Return the rubrics in the folder, by name; nothing if no folder was named at the start.

    Links that lead out of the folder are left out. A name that another rubric already has (a
    built-in one, or one of an earlier file) is an error.
    """
    if settings.rubrics is None:
        return []
    folder = Path(settings.rubrics)
    taken = {name for rubric in shipped().values() for name in names_of(rubric)}
    files = []
    inside = folder.resolve()
    for file in sorted(folder.glob("*")):
        if file.suffix not in RUBRIC_SUFFIXES or file.resolve().parent != inside:
            continue
        try:
            rubric = load_rubric(file)
        except InputError as error:
            files.append(OwnFile(file, None, tuple(error.problems)))
            continue
        twice = next((name for name in names_of(rubric) if name in taken), None)
        if twice is not None:
            problem = Problem(file=str(file), message=f"there is a rubric `{twice}` already")
            files.append(OwnFile(file, None, (problem,)))
            continue
        taken.update(names_of(rubric))
        files.append(OwnFile(file, rubric))
    return files


def rubrics_of_rules(settings: Settings, project: str) -> dict[str, Judged]:
    """Return the evaluators through which a project's rules ask judges: the first of each rubric.

    They have the options that the rule states, such as the kinds of dispatches.
    """
    judged: dict[str, Judged] = {}
    for rule in settings.live_rules.rules:
        if rule.spec.project not in (None, project):
            continue
        for part in rule.parts:
            for planned in part.plan.evaluators:
                if isinstance(planned.evaluator, Judged):
                    judged.setdefault(planned.evaluator.type, planned.evaluator)
    return judged


def known_rubrics(settings: Settings, project: str) -> dict[str, Judged]:
    """Return the evaluator of each rubric, by name: of rules, then of the folder, then others."""
    known = rubrics_of_rules(settings, project)
    own = [each.rubric for each in own_files(settings) if each.rubric is not None]
    for rubric in (*own, *shipped().values()):
        # A rubric with a placeholder for a text of a config asks nothing without that text.
        if rubric.name not in known and PLACE not in rubric.prompt:
            known[rubric.name] = Judged(rubric)
    return known


def evaluator_of(settings: Settings, project: str, name: str) -> Judged:
    """Return the evaluator of a rubric, by any of its names.

    Raises:
        InputError: there is none; with similar names.
    """
    known = known_rubrics(settings, project)
    for evaluator in known.values():
        if name in (evaluator.type, *names_of(evaluator.shape)):
            return evaluator
    raise InputError(f"there is no rubric `{name}`; {suggestion(name, known)}")


_NAME = re.compile(r"[A-Za-z][\w-]{0,99}", re.ASCII)
_HISTORY = ".history"
_WRITING = threading.Lock()
"""Held from checking a file until it is written, against other threads of this process."""
_MOST_TEXT = 200_000
"""Maximum characters of a rubric; the longest built-in one has 6,000."""


class RubricText(msgspec.Struct, kw_only=True):
    """The text of a rubric; ``digest`` identifies it, and is empty for a new one.

    ``own`` is whether it can be written; ``problems`` are its errors.
    """

    name: str
    text: str
    digest: str
    file: str
    own: bool
    problems: list[str] = []


class Former(msgspec.Struct, kw_only=True):
    """A replaced text: its version, and when it was replaced."""

    version: str
    at: datetime
    text: str


class ToSave(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A rubric to write.

    ``digest`` identifies the text that it is based on, and is empty for a new rubric.
    ``next_version``: increment the version.
    """

    text: Annotated[str, msgspec.Meta(max_length=_MOST_TEXT)]
    digest: str = ""
    next_version: bool = False


class ChangedMeanwhileError(InputError):
    """A file that another person changed since it was read. ``there`` is its current text."""

    def __init__(self, there: RubricText) -> None:
        self.there = there
        message = "someone else changed it: check their text, then save again to overwrite it"
        super().__init__(Problem(file=there.file, message=message))


def digest_of(text: str) -> str:
    """Return the digest of a text."""
    return sha256(text.encode()).hexdigest()[:16]


def rubric_of_text(text: str) -> Rubric:
    """Return the rubric in a text.

    Raises:
        InputError: every fault, with its line.
    """
    if len(text) > _MOST_TEXT:
        raise InputError(f"a rubric has at most {_MOST_TEXT:,} characters, this has {len(text):,}")
    return rubric_in(Document("rubric", text.encode(), "yaml"))


def rubric_text(settings: Settings, name: str) -> RubricText:
    """Return the text of a rubric by its name, also of a file with errors.

    Raises:
        InputError: there is none; with similar names.
    """
    for each in own_files(settings):
        if each.name == name:
            return _read(each.file, name, [str(problem) for problem in each.problems])
    if name in shipped():
        text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
        return RubricText(name=name, text=text, digest="", file="", own=False)
    known = [*(each.name for each in own_files(settings)), *shipped()]
    raise InputError(f"there is no rubric `{name}`; {suggestion(name, known)}")


def former_texts(settings: Settings, name: str) -> list[Former]:
    """Return the replaced texts of a rubric, the last one first."""
    if settings.rubrics is None or not _NAME.fullmatch(name):
        return []
    texts = []
    for file in (Path(settings.rubrics) / _HISTORY / name).glob("*.yaml"):
        stamp, _, version = file.stem.partition("_")
        at = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
        texts.append(Former(version=version, at=at, text=file.read_text(encoding="utf-8")))
    return sorted(texts, key=lambda each: each.at, reverse=True)


def save_rubric(settings: Settings, to_save: ToSave) -> RubricText:
    """Write a rubric into the folder, and return the stored one.

    The question may change only together with the version, because the version identifies verdicts
    and calibrations.

    Raises:
        ChangedMeanwhileError: the file is not the one that the text is based on.
        InputError: no folder was named at the start, the rubric is faulty, or its name is taken.
    """
    if settings.rubrics is None:
        message = "no folder of rubrics was named at the start: baton serve --rubrics FOLDER"
        raise InputError(message)
    rubric = rubric_of_text(to_save.text)
    if not _NAME.fullmatch(rubric.name):
        message = f"`{rubric.name}` is not a valid file name: use letters, digits, `_` and `-`"
        raise InputError(Problem(path="name", message=message))
    taken = {name for each in shipped().values() for name in names_of(each)}
    if twice := next((name for name in names_of(rubric) if name in taken), None):
        message = f"a rubric that comes with Baton is called `{twice}`: choose another name"
        raise InputError(Problem(path="name", message=message))
    folder = Path(settings.rubrics)
    with _WRITING:
        file = folder / f"{rubric.name}.yaml"
        for each in own_files(settings):
            if each.name == rubric.name:
                file = each.file
            elif each.rubric is not None and set(names_of(each.rubric)) & set(names_of(rubric)):
                message = f"{each.file.name} has a rubric of that name"
                raise InputError(Problem(path="name", message=message))
        if file.is_symlink() and file.resolve().parent != folder.resolve():
            raise InputError(Problem(file=str(file), message="is a link out of the folder"))
        text = to_save.text if to_save.text.endswith("\n") else to_save.text + "\n"
        is_old = file.exists()
        if is_old:
            before = _read(file, rubric.name)
            if before.digest != to_save.digest:
                raise ChangedMeanwhileError(before)
            text = _versioned(before.text, text, rubric, next_version=to_save.next_version)
            if text != before.text:
                _keep(folder, before, datetime.now(UTC))
        elif to_save.digest:
            there = RubricText(name=rubric.name, text="", digest="", file=str(file), own=True)
            raise ChangedMeanwhileError(there)
        write_whole(file, text.encode(), sync=True, keep_mode=is_old)
    return _read(file, rubric.name)


_STAMP = "%Y%m%dT%H%M%S.%fZ"
_VERSION = re.compile(r"^(version:[ \t]*)(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s#]+)", re.MULTILINE)


def _read(file: Path, name: str, problems: list[str] | None = None) -> RubricText:
    # Bytes that are not UTF-8 are shown as marks; saving over them is a change, too.
    text = read_bytes(file).decode("utf-8", "replace")
    digest = digest_of(text)
    return RubricText(
        name=name, text=text, digest=digest, file=str(file), own=True, problems=problems or []
    )


def _keep(folder: Path, before: RubricText, now: datetime) -> None:
    try:
        version = re.sub(r"[^\w.+-]+", "-", rubric_of_text(before.text).version)[:60]
    except InputError:
        version = "faulty"
    kept = folder / _HISTORY / before.name
    kept.mkdir(parents=True, exist_ok=True)
    write_whole(kept / f"{now.strftime(_STAMP)}_{version}.yaml", before.text.encode())


def _versioned(before: str, text: str, rubric: Rubric, *, next_version: bool) -> str:
    """Return a text with the version that it needs; raises InputError for an old version."""
    try:
        old = rubric_of_text(before)
    except InputError:
        return text  # it judged nothing
    if rubric.version != old.version or _question(old) == _question(rubric):
        return text
    new = following(old.version)
    if not next_version:
        message = (
            f"the question changed, but the version is still {old.version}: verdicts and "
            f"calibrations are kept per version; write {new}"
        )
        raise InputError(Problem(path="version", message=message))
    changed = _VERSION.sub(lambda match: f'{match[1]}"{new}"', text, count=1)
    if rubric_of_text(changed).version != new:
        raise InputError(Problem(path="version", message=f"write the version {new} by hand"))
    return changed


def following(version: str) -> str:
    """Increment a version: `2` to `3`, `1.9` to `1.10`, `draft` to `draft.1`."""
    before, number = re.fullmatch(r"(.*?)(\d*)", version, re.DOTALL).groups()  # type: ignore[union-attr]
    return f"{before}{int(number) + 1}" if number else f"{version}.1"


def _question(rubric: Rubric) -> Rubric:
    """Return the question to a judge, and how its answer is used."""
    return msgspec.structs.replace(rubric, version="", summary="", aliases=[], tests=[])
