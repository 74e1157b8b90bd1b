"""Which app of a server a case talks to."""

from __future__ import annotations

from baton.model import ProviderError, suggestion


def choose_app(
    apps: list[str] | None, of_case: str | None, app_name: str | None, agent_id: str | None
) -> str:
    """Choose the app: the case's where the server has it, the config's, else the only one.

    ``apps`` is ``None`` when the server does not list them; then what is stated is taken as it is.

    Raises:
        ProviderError: no app is stated and there are several, or the stated one is not there.
    """
    stated = [name for name in (of_case, app_name, agent_id) if name is not None]
    if apps is None:
        if not stated:
            raise ProviderError("the server does not list its apps: state `app_name` (or `--app`)")
        return app_name or stated[0]
    found = next((name for name in stated if name in apps), None)
    by_case = found is not None and found == of_case
    if app_name is not None and app_name not in apps and not by_case:
        raise ProviderError(f"the server has no app `{app_name}`; {suggestion(app_name, apps)}")
    if found is not None:
        return found
    if len(apps) == 1:
        return apps[0]
    if not apps:
        raise ProviderError("the server has no apps")
    names = ", ".join(apps)
    lead = f"none of them is `{stated[0]}`" if stated else "none is stated"
    how = "set `app_name` (or `--app`) to one of them"
    raise ProviderError(f"the server has {len(apps)} apps and {lead}: {how}: {names}")
