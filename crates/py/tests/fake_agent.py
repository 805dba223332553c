"""An agent for one CPU without a scheduler: what it is asked, and answers by a sum."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

__all__ = ["FakeAgent", "Refusal"]

#: What is left of a CPU beside the reserve.
ROOM = 0.95


class Refusal(Exception):
    """An error of the interface, and what it says."""

    def __init__(self, error: str, **parameters: str) -> None:
        super().__init__(error)
        self.error = error
        self.parameters = parameters


class FakeAgent:
    """Speaks varlink at a socket until it is left by ``with``: JSON objects, each ended by a NUL byte."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "daemon.sock"
        #: The methods that were called, with their parameters, in order.
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.shares: dict[int, float] = {}
        #: Answers instead of the agent, while there is one.
        self.instead: Callable[[str], dict[str, Any]] | None = None
        agent = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                agent.converse(self.rfile, self.wfile)

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        self._server = Server(str(self.path), Connection)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> FakeAgent:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def methods(self) -> list[str]:
        """The methods that were called, in order."""
        return [method for method, _ in self.calls]

    def converse(self, heard: Any, said: Any) -> None:
        """Answers the calls of a connection until it is closed."""
        while message := read_message(heard):
            call = json.loads(message)
            method = call["method"].removeprefix("org.shiftwork.Agent.")
            self.calls.append((method, call["parameters"]))
            reply: dict[str, Any]
            try:
                reply = {"parameters": (self.instead or self.answer)(method)}
            except Refusal as refusal:
                reply = {"error": f"org.shiftwork.Agent.{refusal.error}", "parameters": refusal.parameters}
            said.write(json.dumps(reply).encode() + b"\0")

    def answer(self, method: str) -> dict[str, Any]:
        """What the last call is answered."""
        parameters = self.calls[-1][1]
        if method == "Dismiss":
            del self.shares[parameters["task"]]
            return {}
        task = parameters.get("task", len(self.shares))
        share = parameters["reservation"]["cost"] / parameters["reservation"]["period"]
        others = sum(other for number, other in self.shares.items() if number != task)
        if others + share > ROOM:
            raise Refusal("Refused", reason=f"{others + share:.2f} of {ROOM}")
        self.shares[task] = share
        return {"task": task, "guarantee": "hard"} if method == "Admit" else {"guarantee": "hard"}


def read_message(heard: BinaryIO) -> bytes:
    """The next message; empty at the end."""
    message = bytearray()
    while (byte := heard.read(1)) not in (b"", b"\0"):
        message += byte
    return bytes(message)
