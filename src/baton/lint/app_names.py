"""Names of apps that no folder bears."""

from __future__ import annotations

from collections.abc import Iterator

from baton.model import suggestion

from .scope import CaseFile, Scope
from .warning import LintWarning

NAME = "app-name"


def app_names(scope: Scope) -> Iterator[LintWarning]:
    """Warn of an app of a case, or an ``App`` in the code, that is named unlike its folder."""
    for file in scope.cases:
        if file.adk and file.apps:
            yield from _of_cases(file)
    apps = {app.folder: app for file in scope.cases for app in file.apps}
    for app in (apps | {app.folder: app for app in scope.apps}).values():
        if app.declared is not None and app.declared.name != app.name:
            yield LintWarning(
                file=app.declared.file,
                line=app.declared.line,
                rule=NAME,
                what=f"the app is named `{app.declared.name}` and its folder `{app.name}`: some "
                "versions of ADK find no session then",
                remedy=f'write `name="{app.name}"`',
            )


def _of_cases(file: CaseFile) -> Iterator[LintWarning]:
    """Warn once of each name."""
    told: set[str] = set()
    folders = sorted({app.name for app in file.apps})
    for case, written in file.written():
        name = case.session.app
        if name is None or name in folders or name in told:
            continue
        told.add(name)
        yield LintWarning(
            file=file.file,
            line=written.app_line(),
            rule=NAME,
            what=f"no folder of agents is called `{name}`, the app of case `{case.id}`: a server "
            "plays another app or none",
            remedy=suggestion(name, folders),
        )
