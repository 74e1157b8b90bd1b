"""Trust in files that were found, not named, and that name code.

A config that is named on the command line is the user's decision. One that was found (`baton.yaml`
in the current folder, `test_config.json` beside an eval set) may have come with another person's
archive: before it runs code, sends anything, or writes outside its folder, the user has to allow
it. A trusted file is remembered with its hash, so a changed file needs trust again.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from baton.evaluators.registry import evaluator_entry
from baton.formats.document import Document, read_bytes
from baton.formats.explain_mistakes import Path as Place
from baton.model import InputError, Problem
from baton.runner.plan import EvaluatorSpec

if TYPE_CHECKING:
    from .config_file import ConfigFile

_NO_CODE = frozenset({"adk_http", "http", "mock", "replay"})
"""Providers that run no code. Any other provider needs trust."""

_STORE_SIZE = 16_000_000
"""The largest file of trusted hashes that is read, in bytes: about 100,000 entries."""

Ask = Callable[[str], bool]


class Trust:
    """The found files that may name code: those in folders given now, or remembered ones.

    ``folders`` are trusted now and remembered. ``ask`` asks a person, if there is a terminal.
    ``option``, for messages, tells how to trust a folder without a command line; such trust is not
    remembered. ``given`` are files, with their hashes, that a parent process already trusted.
    ``allowed`` are those that this process trusted, ``notes`` say what could not be remembered.
    """

    def __init__(
        self,
        folders: Iterable[str | os.PathLike[str]] = (),
        *,
        ask: Ask | None = None,
        option: str | None = None,
        given: Mapping[str, str] | None = None,
    ) -> None:
        self.folders = [Path(folder).resolve() for folder in folders]
        self._ask, self._option = ask, option
        self._given = dict(given or {})
        self.notes: list[str] = []
        self.allowed: dict[str, str] = {}
        for folder in self.folders:
            if not folder.is_dir():
                message = "is not a folder: trust the folder that holds the config"
                raise InputError(Problem(file=str(folder), message=message))

    def require(self, file: Path, data: bytes, claims: Sequence[Problem], instead: str) -> None:
        """Make sure that a found file may do what it asks for.

        Args:
            file: the file.
            data: the bytes that were read; these, and no later version, are trusted.
            claims: the parts that need trust, with their places; without any, nothing is asked.
            instead: how to name the file instead (``baton eval baton.yaml``).

        Raises:
            InputError: it is not trusted; lists every claim with its line, and what to do.
        """
        if not claims:
            return
        where, sha256 = file.parent.resolve() / file.name, hashlib.sha256(data).hexdigest()
        if self._given.get(str(where)) == sha256:
            return
        if any(where.is_relative_to(folder) for folder in self.folders):
            self._keep(where, sha256)
            return
        trusted = _read_store().get(str(where))
        if trusted == sha256:
            self.allowed[str(where)] = sha256
            return
        if self._ask is not None:
            listed = "\n".join(f"  {claim}" for claim in claims)
            if self._ask(f"{file} was found here, and\n{listed}\nTrust it from now on? [y/N] "):
                self._keep(where, sha256)
                return
        folder = str(file.parent)
        advice = f"name it ({instead}), or trust its folder (--trust {shlex.quote(folder)})"
        if self._option is not None:
            advice = f"trust its folder ({self._option.format(folder=folder)})"
        why = "but you did not name this file"
        if trusted is not None:
            why += ", which has changed since you trusted it"
        raise InputError(
            msgspec.structs.replace(claim, message=f"{claim.message}, {why}: {advice}")
            for claim in claims
        )

    def _keep(self, file: Path, sha256: str) -> None:
        """Remember a file; if that fails, it is trusted only this time, and a note says so."""
        self.allowed[str(file)] = sha256
        if self._option is not None:
            return  # code and ini files state it each time
        try:
            known = _read_store()
            if known.get(str(file)) != sha256:
                _write_store({**known, str(file): sha256})
        except OSError as error:
            self.notes.append(f"trust in {file} is not remembered: {error.strerror or error}")


_IN_PYTHON = 'trust="{folder}" in Python'

NOBODY = Trust(option=_IN_PYTHON)
"""Trusts what was remembered, and never asks."""


def trust_of(folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Trust:
    """Return the trust given by Python code: one folder, or several."""
    some = [folders] if isinstance(folders, str | os.PathLike) else folders
    return Trust(some, option=_IN_PYTHON)


def code_in(document: Document, config: ConfigFile) -> list[Problem]:
    """Return the parts of a config that need trust: code, addresses, and files outside its folder.

    An address of this machine needs none, as nothing leaves it.
    """
    claims: list[tuple[Place, str]] = []
    for index, evaluator in enumerate(config.evaluators or ()):
        kind = evaluator.type if isinstance(evaluator, EvaluatorSpec) else evaluator
        if ":" in kind or _runs_code(kind):
            claims.append((("evaluators", index), f"runs code: evaluator `{kind}`"))
    for index, provider in enumerate(config.providers):
        claims += _of_provider(("providers", index), provider)
    backend = config.backend.get("type") if isinstance(config.backend, Mapping) else config.backend
    if isinstance(backend, str) and ":" in backend:
        claims.append((("backend",), f"runs code: backend `{backend}`"))
    for index, reporter in enumerate(config.reporters):
        if reporter.output_path is not None:
            claims += _of_path(document, ("reporters", index, "output_path"), reporter.output_path)
    if config.judge is not None and isinstance(config.judge.get("cache"), str):
        claims += _of_path(document, ("judge", "cache"), config.judge["cache"])
    claims += _addresses(msgspec.to_builtins(config), ())
    return [document.problem_at(place, message) for place, message in claims]


def _runs_code(kind: str) -> bool:
    try:
        return evaluator_entry(kind).runs_code
    except InputError:
        return False  # unknown, and reported as such


def _of_provider(place: Place, provider: Mapping[str, Any]) -> list[tuple[Place, str]]:
    name = provider.get("type")
    try:
        from baton.providers.registry import provider_entry  # it loads asyncio

        kind = provider_entry(str(name)).type
    except InputError:
        return []  # unknown, and reported as such
    claims: list[tuple[Place, str]] = []
    if kind not in _NO_CODE:
        what = provider.get("target") or provider.get("path") or kind
        claims.append(((*place, "type"), f"runs code: provider `{kind}` (`{what}`)"))
    claims += [
        ((*place, option), f"runs code: `{option}`")
        for option in ("hooks", "restart")
        if provider.get(option)
    ]
    return claims


def _of_path(document: Document, place: Place, path: str) -> list[tuple[Place, str]]:
    folder = Path(document.file).parent.resolve()
    if (folder / path).resolve().is_relative_to(folder):
        return []
    return [(place, f"writes outside its folder: `{path}`")]


def _addresses(value: Any, place: Place) -> list[tuple[Place, str]]:
    if isinstance(value, Mapping):
        # Keys such as `$schema` and `$id` hold names that look like addresses.
        return [
            each
            for key, item in value.items()
            if not str(key).startswith("$")
            for each in _addresses(item, (*place, key))
        ]
    if isinstance(value, list):
        return [each for n, item in enumerate(value) for each in _addresses(item, (*place, n))]
    if not isinstance(value, str) or "://" not in value or any(map(str.isspace, value)):
        return []  # a text that mentions an address, such as a prompt, sends nothing to it
    from urllib.parse import urlsplit

    try:
        host = urlsplit(value).hostname
    except ValueError:
        return []  # not an address; the reader of the option reports it
    if host is None or _is_this_machine(host):
        return []
    return [(place, f"talks to `{host}`")]


def _is_this_machine(host: str) -> bool:
    from ipaddress import ip_address

    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _store() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "baton" / "trusted.json"


def _read_store() -> dict[str, str]:
    """Return the hash of each file.

    Raises:
        InputError: the store is damaged, or other users can write it.
    """
    file = _store()
    try:
        status = file.stat()
    except OSError:
        return {}  # nothing was trusted yet
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        message = "other users can write to this list of trusted files: delete it, or chmod 600"
        raise InputError(Problem(file=str(file), message=message))
    if not stat.S_ISREG(status.st_mode) or status.st_size > _STORE_SIZE:
        message = "is not a file of trusted hashes: delete it"
        raise InputError(Problem(file=str(file), message=message))
    try:
        return msgspec.json.decode(read_bytes(file), type=dict[str, str])
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = "is damaged: delete it, and trust your folders again"
        raise InputError(Problem(file=str(file), message=message)) from None


def _write_store(known: Mapping[str, str]) -> None:
    """Replace the store atomically, so that no other process reads half of it."""
    import tempfile

    file = _store()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix="trusted.")  # its mode is 0600
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(msgspec.json.format(msgspec.json.encode(known, order="sorted")))
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
