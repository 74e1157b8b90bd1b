"""Applies better texts: writes them to the files with the old ones, or commits them to a branch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from baton.config.git import Branching, working_tree
from baton.config.trust import Trust, trust_of
from baton.formats.document import Document, read_bytes
from baton.formats.own_files import HOME, is_in_use
from baton.improvements.journal import JOURNAL
from baton.improvements.result import RESULT, Improvement, Study
from baton.improvements.texts_in_files import Change, FileChange, changes_of_files, write_files
from baton.model import InputError, Problem, counted
from baton.model.option_spelling import option
from baton.providers.base_provider import ConfiguredProvider

from .agent_under_test import build_agent, find_target, in_own_process, variants_of
from .improve_rubric import rubric_change
from .prepare import PathLike, TrustLike


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What was written.

    Args:
        files: the files, from the project's root, each with the components in it.
        backups: the folder with the old files; ``None`` if a branch was made.
        branch: the branch that was made, and the id of its commit.
    """

    files: dict[str, list[str]]
    backups: str | None = None
    branch: str | None = None
    commit: str | None = None

    @property
    def lines(self) -> list[str]:
        """Return lines that describe what was written."""
        listed = [f"{path}: {', '.join(names)}" for path, names in self.files.items()]
        if self.branch is not None:
            head = f"committed to the branch {self.branch} ({(self.commit or '')[:12]}):"
            return [head, *(f"  {line}" for line in listed), *self._next]
        lines = ["written:", *(f"  {line}" for line in listed), f"the old files: {self.backups}"]
        return [*lines, *self._next]

    @property
    def _next(self) -> list[str]:
        names = [name for each in self.files.values() for name in each]
        if any(name.startswith("rubric:") for name in names):
            return ["change `version:` as well: a calibration applies to one text only"]
        return []


def read_improvement(folder: PathLike) -> Improvement:
    """Read the folder of `baton improve`.

    Its ``status`` is ``interrupted`` if it says ``running`` and no process is running there.

    Raises:
        InputError: it is not such a folder, or its file has errors.
    """
    file = Path(folder) / RESULT
    if not file.is_file():
        message = f"no {RESULT} here: name the folder of a `baton improve`"
        raise InputError(Problem(file=str(folder), message=message))
    document = Document(str(file), read_bytes(file), "json")
    read: Improvement = document.convert(document.value(), Improvement)
    if read.status == "running" and not is_in_use(Path(folder) / JOURNAL):
        read.status = "interrupted"
    return read


def apply_improvement(
    improvement: Improvement | PathLike,
    *,
    target: str | None = None,
    app: str | None = None,
    variant: str | None = None,
    branch: str | None = None,
    trust: TrustLike = (),
) -> Applied:
    """Write the proven better texts into the files that contain the old ones.

    Only files of the project are written: those in the git working tree around the agent, else in
    the agent's folder. No code of the agent is run to find them.

    Args:
        improvement: what :func:`baton.improve` returned, or the folder of `baton improve`.
        target: the agent or config that was improved; by default the one in the improvement.
        app: the app of an ADK server.
        variant: which of a config's providers.
        branch: the name of a new git branch: the texts are committed there, and no file is written.
        trust: folders whose ``baton.yaml`` may name code, though it was only found.

    Raises:
        InputError: nothing is proven, a text is not found exactly once, a file may not be written,
            or the branch already exists. Nothing is written then.
    """
    known = improvement if isinstance(improvement, Improvement) else read_improvement(improvement)
    changes = [_change(study) for study in known.studies if study.after is not None]
    if not changes:
        raise InputError("no gain is proven: there is nothing to write")
    own = None if isinstance(improvement, Improvement) else Path(improvement)
    backups = own or Path(HOME, "improvements", known.id)
    if changes[0].component.startswith("rubric:"):
        return _apply_rubric(known, target, branch, backups)
    trusted = trust if isinstance(trust, Trust) else trust_of(trust)
    resolved = find_target([target or known.target], trusted, app)
    places = variants_of(resolved.config if resolved.provider is None else None, variant)
    if len(places) > 1:
        raise InputError(f"the config has several providers: name one with {option('variant')}")
    apart, spec = in_own_process(resolved.config, resolved.provider, is_played=False)
    provider = build_agent(apart, spec, places[0], {})
    folder = provider.around.folder.resolve()
    root = (working_tree(folder) or folder).resolve()
    config = Path(resolved.config.file) if resolved.config is not None else None
    where = {each.component: _places(provider, each.component, config) for each in changes}
    files = changes_of_files(changes, where, root, leave=own)
    return _put(files, root, branch, backups, known)


def _apply_rubric(
    known: Improvement, target: str | None, branch: str | None, backups: Path
) -> Applied:
    file = target or known.rubric_file
    if file is None:
        name = known.target
        raise InputError(
            f"`{name}` comes with Baton, and is not written: copy it to a file of your own "
            f"(`baton rubrics show {name}`), give it another name, and put the text there"
        )
    (study,) = known.studies
    root, change = rubric_change(Path(file), study)
    return _put([change], root, branch, backups, known)


def _put(
    files: list[FileChange], root: Path, branch: str | None, base: Path, known: Improvement
) -> Applied:
    """Commit changed files to a branch, or write them with a copy of the old ones."""
    named = {str(each.path): each.components for each in files}
    if branch is not None:
        return Applied(files=named, branch=branch, commit=_commit(files, root, branch, known))
    backups = _backups(base)
    write_files(files, root, backups)
    return Applied(files=named, backups=str(backups))


def _change(study: Study) -> Change:
    assert study.after is not None  # noqa: S101 - the caller has looked
    return Change(component=study.component, before=study.before, after=study.after)


def _places(provider: ConfiguredProvider[Any], name: str, config: Path | None) -> list[Path]:
    """Return the possible places of a text: from the provider, and in the config."""
    own = provider.text_places(name)
    return [*own, config] if config is not None and config.is_file() else own


def _backups(base: Path) -> Path:
    number = 1
    while (backups := base / ("backup" if number == 1 else f"backup-{number}")).exists():
        number += 1  # an earlier change may have been reverted, and is made again
    return backups


def _commit(files: list[FileChange], folder: Path, branch: str, known: Improvement) -> str:
    """Commit the changes on top of HEAD; raises InputError for uncommitted ones."""
    repository = Branching(folder)
    committed = {}
    for each in files:
        head = repository.at_head(each.path)
        if head is None:
            message = "is not committed, so a branch cannot contain its change: commit it first"
            raise InputError(Problem(file=str(each.path), message=message))
        if head.data == each.before:
            committed[each.path] = each.after
        elif head.data == each.before.replace(b"\r\n", b"\n"):  # checked out with other line ends
            committed[each.path] = each.after.replace(b"\r\n", b"\n")
        else:
            message = "has changes that are not committed: commit them first"
            raise InputError(Problem(file=str(each.path), message=message))
    return repository.commit_to(branch, committed, _message(known))


def _message(known: Improvement) -> str:
    lines = [f"Better {counted(len(known.texts), 'prompt')} by baton improve", ""]
    for study in known.studies:
        if study.after is not None:
            lines.append(f"{study.component}: {study.reason}")
    return "\n".join([*lines, "", f"Improvement {known.id}, seed {known.seed}.", ""])
