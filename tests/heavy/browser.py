"""A headless Chromium, driven through a pipe by its own protocol (CDP)."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
_PATIENCE = 60.0


class Browser:
    """One tab. Everything that the page asks of the network, and every error of its script, is kept."""

    def __init__(self, profile: Path, size: tuple[int, int] = (1440, 1000)) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Above 9, so that neither is one of the two that Chromium wants.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]

        def give() -> None:
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        window = f"--window-size={size[0]},{size[1]}"
        self._process = subprocess.Popen(
            [_chromium(), *FLAGS, window, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=give,  # noqa: PLW1509 - no threads run yet
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        os.set_blocking(self._in, False)
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        made = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = made["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Performance"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def open(self, file: Path, fragment: str = "") -> None:
        """Open a report from disk, and wait until it is ready and its first case drawn."""
        self.call("Page.navigate", url="about:blank")
        self.until("location.protocol === 'about:'")
        self.call("Page.navigate", url=file.as_uri() + fragment)
        ready = "document.documentElement?.dataset.ready && document.querySelector('#view h3')"
        self.until(f"location.protocol === 'file:' && {ready}")
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    def processor_seconds(self) -> float:
        """Return what the process of the page has taken of a processor since it started."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "ProcessTime")

    def run(self, script: str) -> Any:
        """Return what a script of the page comes to; a promise is waited for."""
        told = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"]["exception"].get("description", told))
        return told["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until a script is true."""
        end = time.monotonic() + _PATIENCE
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.01)

    def press(self, key: str) -> None:
        """Press a key, as a user would."""
        text = key if len(key) == 1 else ""
        code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38}.get(key, 0)
        about = {
            "key": key,
            "text": "\r" if key == "Enter" else text,
            "windowsVirtualKeyCode": code,
        }
        self.call("Input.dispatchKeyEvent", type="keyDown", **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            for answer in self._messages():
                if answer.get("id") == self._last:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']}")
                    result: dict[str, Any] = answer["result"]
                    return result
                self._note(answer)
            time.sleep(0.002)
        raise TimeoutError(method)

    def _messages(self) -> Iterator[dict[str, Any]]:
        try:
            self._buffer += os.read(self._in, 1 << 20)
        except BlockingIOError:
            return
        *whole, self._buffer = self._buffer.split(b"\0")
        yield from (json.loads(message) for message in whole)

    def _note(self, event: dict[str, Any]) -> None:
        about = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(about["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded":
            self.errors.append(about["entry"]["text"])


@contextmanager
def browser(profile: Path, size: tuple[int, int] = (1440, 1000)) -> Iterator[Browser]:
    """Start a browser with a new, empty profile."""
    with Browser(profile, size) as opened:
        yield opened


def _chromium() -> str:
    names = [os.environ.get("BATON_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found is not None, "no Chromium here: `make browser` installs one where apt is"
    return found
