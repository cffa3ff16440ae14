"""A headless Chromium for tests."""

import json
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.waiting import until


class Refused(Exception):
    """Chromium cannot do what it was asked."""


class Browser:
    """A headless Chromium, driven over its debugging protocol; keeps what it complains about and asks for."""

    def __init__(self, home: Path, *further: str) -> None:
        from websockets.sync.client import connect

        options = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
        options += " --disable-component-update --disable-quic --remote-debugging-port=0"
        command = ["chromium", *options.split(), *further, f"--user-data-dir={home}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port_file = home / "DevToolsActivePort"
            self.wait_for(lambda: port_file.exists() and "/" in port_file.read_text())
            port = port_file.read_text().split()[0]
            tabs = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30).read())
            address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            self.socket = connect(address, max_size=None, proxy=None)
        except BaseException:
            self.close()
            raise
        self.events: list[dict[str, Any]] = []
        self.count = 0
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def wait_for(self, condition: Callable[[], object], seconds: float = 60) -> None:
        until(condition, seconds, what="the browser's state", pause=0.05)

    def call(self, method: str, **params: Any) -> Any:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=60))
            if message.get("id") != self.count:
                self.events.append(message)
            elif "error" in message:
                raise Refused(f"{method}: {message['error']['message']}")
            else:
                return message["result"]

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page; none if the page is left meanwhile."""
        try:
            return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")
        except Refused as error:
            if "navigated" in str(error) or "context" in str(error):
                return None
            raise

    def open(self, path: Path, width: int) -> None:
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for(lambda: self.run("location.protocol + document.readyState") == "file:complete")

    @property
    def complaints(self) -> list[Any]:
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self.events if event["method"] in kinds]

    @property
    def requests(self) -> list[str]:
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]
