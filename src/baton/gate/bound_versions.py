"""The versions of agents, prompts, dataset and config that thresholds are for (``for:``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from baton.model import Provenance

from .read_thresholds import BoundTo


def bound_to(bound: BoundTo | None, provenance: Provenance, *names: str) -> Iterator[str]:
    """Return what lacks the version that thresholds are for; of some ``names``, or of all."""
    for name in names or ("dataset", "recordings", "config", "agents", "prompts"):
        wanted = getattr(bound, name) if bound is not None else None
        if isinstance(wanted, str):
            actual = provenance.hash_of(name)
            if not _is_version(wanted, actual):
                yield f"{name}: they are for {wanted}, but this is {actual or 'unknown'}"
        elif wanted is not None:
            hashes: Mapping[str, str] = getattr(provenance, name)
            for agent, version in wanted.items():
                if not _is_version(version, hashes.get(agent)):
                    known = hashes.get(agent) or "unknown"
                    yield f"{name} of {agent}: they are for {version}, but this is {known}"


# Tables print the first eight characters of a hash, as `git log --oneline` does: `9f28c5b7`.
_SHORT = 8


def _is_version(wanted: str, actual: str | None) -> bool:
    """Tell whether a hash is the stated one, or begins with it."""
    return actual == wanted or (len(wanted) >= _SHORT and (actual or "").startswith(wanted))
