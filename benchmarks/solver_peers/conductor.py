"""The other end of worker.py: starts it, gives it problems, and ends it when it does not answer."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

WORKER = Path(__file__).resolve().parent / "worker.py"
SECONDS_TO_START = 120.0
SECONDS_TO_ANSWER = 20.0


class WorkerError(Exception):
    """A solver's process could not be started."""


class Conductor:
    """Runs one solver on problems, one process at a time."""

    def __init__(self, solver: str, python: str) -> None:
        self._solver, self._python = solver, python
        self._process: subprocess.Popen[str] | None = None
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self.versions: dict[str, str] = {}

    def __enter__(self) -> Conductor:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
        self._errors.close()

    def solve(self, problem: str, *, evaluations: int, seconds: float, grace: float) -> dict[str, Any]:
        """What the solver did with a problem; a process that died or had to be ended is told by the status."""
        self._start()
        assert self._process is not None and self._process.stdin is not None
        request = {"problem": problem, "evaluations": evaluations, "seconds": seconds, "grace": grace}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        result: dict[str, Any] = {"hit": None, "hit_seconds": None, "evaluations": None, "seconds": None}
        result |= {"gap": None, "violation": None}
        while True:
            try:
                event = self._events.get(timeout=seconds + grace + SECONDS_TO_ANSWER)
            except queue.Empty:
                self._end()
                return {**result, "status": "did not answer"}
            if event is None:
                status = f"the process died ({self._process.wait()}): {self._complaint()}"
                self._end()
                return {**result, "status": status}
            kind = event.pop("event")
            result = event
            if kind == "done":
                return result

    def _start(self) -> None:
        if self._process is not None:
            try:  # a process that has said "done" may still be on its way out
                self._process.wait(timeout=0.3)
            except subprocess.TimeoutExpired:
                return
            self._end()
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
        environment.pop("PYTHONPATH", None)
        self._errors.truncate(0)
        try:
            self._process = subprocess.Popen(
                [self._python, str(WORKER), self._solver], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._errors, text=True, encoding="utf-8", env=environment,
            )  # fmt: skip
        except OSError as error:
            raise WorkerError(f"{self._solver}: {self._python} cannot be started: {error}") from error
        self._events = queue.Queue()
        threading.Thread(target=self._read, args=(self._process, self._events), daemon=True).start()
        try:
            event = self._events.get(timeout=SECONDS_TO_START)
        except queue.Empty:
            event = None
        if event is None:
            complaint = self._complaint()
            self._end()
            raise WorkerError(f"{self._solver} does not start with {self._python}: {complaint}")
        self.versions = event["versions"]

    @staticmethod
    def _read(process: subprocess.Popen[str], events: queue.Queue[dict[str, Any] | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            events.put(json.loads(line))
        events.put(None)

    def _complaint(self) -> str:
        self._errors.seek(0)
        lines = [line for line in self._errors.read().splitlines() if line.strip()]
        return lines[-1][:200] if lines else "it said nothing"

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self._process = None
