"""What every command that reads traces takes to say what is redacted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from msgspec import structs

from baton.config import Config
from baton.model import InputError
from baton.model.redact import OFF, ON, Redaction, redaction_of


@Parameter(name="*")
@dataclass(frozen=True)
class Redacting:
    """What gets a tag in its place; what is given here goes before `redact:` of the config.

    Parameters
    ----------
    redact
        Replace secrets in traces by tags, such as [key:9c1b]: keys of known forms, tokens,
        passwords, cookies. On unless the config says otherwise.
    redact_kind
        Replace these, too: email, phone, card, iban, or personal for all four. May be given
        several times.
    """

    redact: bool | None = None
    redact_kind: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()

    @property
    def asked(self) -> Redaction | None:
        """What to redact where the options say so; ``None`` leaves it to a folder or config."""
        return None if self == AS_CONFIGURED else self.of()

    def of(self, settings: Config | None = None) -> Redaction:
        """Return what to redact; raises InputError for options that contradict each other."""
        if self.redact is False:
            if self.redact_kind:
                raise InputError("--no-redact and --redact-kind exclude one another: give one")
            return OFF
        told = settings.redaction if settings is not None else ON
        if self.redact and not told.is_on:
            told = ON
        if not self.redact_kind:
            return told
        more = redaction_of(list(self.redact_kind), "--redact-kind")
        kinds = {*told.kinds, *more.kinds}
        return structs.replace(told, kinds=redaction_of(sorted(kinds)).kinds)


AS_CONFIGURED = Redacting()
