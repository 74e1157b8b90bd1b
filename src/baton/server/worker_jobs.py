"""The jobs of a worker: it scores what was read, asks judges, and sends alerts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from baton.model import Trace, suggestion
from baton.model.redact import OFF
from baton.model.subjects import Origin

from .alerts import check_alerts, deliver
from .conversations import Recorded, record_of
from .drift import check_drift, stepped_back
from .issue_notices import note_events, tell_of_issues
from .issue_work import vectors_within, work_on_issues
from .issues import regroup_due
from .judging import judge_waiting
from .rows import Row, State
from .rule_scoring import score
from .score_export import send_results
from .settings import Settings
from .store import Store
from .trials import work_on_trials

LOG = logging.getLogger("baton.server")
_MOST_TOLD = 1000
"""Maximum unknown rules to log: programs choose their names."""
_VERDICTS = "verdicts.sqlite"
"""The file of judges' verdicts in the folder of the server, so that nothing is asked twice."""


class Live:
    """Applies the rules of a server; made again when settings change."""

    def __init__(self, store: Store, settings: Settings) -> None:
        """Read the rules.

        Raises:
            InputError: they are wrong.
        """
        self._store = store
        self._settings = settings
        self._rules = settings.live_rules
        self._addresses = settings.alert_addresses
        self._cache = Path(settings.folder) / _VERDICTS
        self._endpoint = settings.otlp
        self._headers = settings.otlp_headers
        self._names: dict[int, str] = {}
        self._reported: set[tuple[int, str]] = set()

    def score(
        self, project: int, record: Trace, recorded: Recorded | None, state: State
    ) -> tuple[Sequence[Row], Sequence[str]]:
        """Score a record that is already redacted; see :class:`baton.server.worker.Scorer`."""
        if project not in self._names:
            self._names = {number: name for name, number in self._store.projects().items()}
        origin = Origin(open=state == "open")
        if recorded is not None:
            origin = Origin(
                service=recorded.service,
                versions=recorded.agent_versions,
                rules=recorded.rules,
                open=state == "open",
            )
            self._tell_unknown(project, recorded.rules)
        rules = self._rules.for_project(self._names.get(project, ""), origin.rules)
        rules = [stepped_back(self._store, project, each) for each in rules]
        scored = score(record, rules, origin, redaction=OFF)
        return scored.rows, scored.waiting

    def _tell_unknown(self, project: int, named: frozenset[str]) -> None:
        """Log unknown names of rules that a program gives, each once."""
        for rule in sorted(self._rules.unknown(self._names.get(project, ""), named)):
            if (project, rule) not in self._reported and len(self._reported) < _MOST_TOLD:
                self._reported.add((project, rule))
                of = self._names.get(project, "")
                known = suggestion(rule, self._rules.names(of))
                LOG.warning(
                    "a program of project `%s` names the rule `%s`, which does not exist; %s",
                    of, rule[:200], known,
                )  # fmt: skip

    def judge(self, now: float) -> bool:
        """Ask judges the waiting questions; return whether there were any."""
        outcome = judge_waiting(self._store, self._rules, now, read=record_of, cache=self._cache)
        return outcome > 0

    def try_rubrics(self, now: float) -> bool:
        """Ask judges for rubrics on trial; return whether there was anything."""
        return work_on_trials(self._store, self._settings, now, cache=self._cache)

    def investigate(self, now: float) -> bool:
        """Investigate an issue on request; return whether there was one."""
        return work_on_issues(self._store, self._settings, now, cache=self._cache)

    def regroup(self, now: float) -> bool:
        """Group texts of issues that are due; return whether there were any."""

        def embed(project: int, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            return vectors_within(self._store, self._settings, project, texts, now, self._cache)

        asks = self._settings.embeddings is not None
        return regroup_due(self._store, now, embed if asks else None)

    def alert(self, now: float) -> bool:
        """Look at new scores and send due messages; return whether there was anything."""
        changed = check_alerts(self._store, self._rules, now)
        changed += check_drift(self._store, self._rules, now)
        if self._addresses.issues is not None:
            changed += note_events(self._store, self._addresses.issues, now)
            changed += tell_of_issues(self._store, self._addresses, now)
        return deliver(self._store, self._addresses, now) > 0 or changed > 0

    def send(self, now: float) -> bool:
        """Send new scores to the OTLP endpoint, if there is one; return whether there were any.

        Raises:
            NotDelivered: the endpoint did not accept them; they are sent again.
        """
        if self._endpoint is None:
            return False
        return send_results(self._store, self._endpoint, self._headers, now) > 0
