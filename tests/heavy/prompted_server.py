"""A server of Google ADK of one's own, which takes changed texts from the header of a request.

Run with the arguments of ``adk api_server``.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import uvicorn
from google.adk.cli.fast_api import get_fast_api_app

from baton import prompts


class TakesPrompts:
    """Hands texts over for the time of a request."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request with the texts of its header."""
        headers = {name.decode(): value.decode() for name, value in scope.get("headers", ())}
        with prompts.handed_over(headers.get(prompts.HEADER.lower())):
            await self.app(scope, receive, send)


def main() -> None:
    """Serve the apps of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--session_service_uri")
    parser.add_argument("--artifact_service_uri")
    parser.add_argument("agents_dir")
    given = vars(parser.parse_args())
    sys.path.insert(0, given["agents_dir"])
    app = get_fast_api_app(web=False, auto_create_session=True, **given)

    async def store(texts: dict[str, str]) -> None:
        from prompted_desk.agent import STORE  # type: ignore[import-not-found]

        STORE.update(texts)

    app.add_api_route("/store", store, methods=["PUT"])
    app.add_middleware(TakesPrompts)
    uvicorn.run(app, host=given["host"], port=given["port"])


if __name__ == "__main__":
    main()
