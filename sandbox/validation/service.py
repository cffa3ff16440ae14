"""The validation service of a run: `POST /validate` and `GET /health`, as in the published benchmark, and others.

`sandbox.validation.endpoints` lists what it can be asked. Each endpoint counts, limits and journals its calls, and
checks one request at a time.

A response of `/validate` says whether the file is valid and, if not, why: it contains the grader's one-line message. It
never contains a score or the text of an exception. It comes after half a second, or a second, two, four and so on: the
time that a check takes may depend on the answers, and so few different times tell an agent little about them. Responses
of `/score` have a score, of the agent's own predictions and truth: no answers are at hand there. Responses of
`/public-score` have the best score on the public part of the test set, and come after as few different times.
"""

from __future__ import annotations

import asyncio
import logging
import math
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from common.jsonlines import JsonLinesLog
from sandbox.limits import MIB
from sandbox.serving import in_thread
from sandbox.validation.checker import Check, Verdict
from sandbox.validation.endpoints import ENDPOINTS, Endpoint, response
from sandbox.validation.upload import BadUpload, TooLarge, Upload, receive

logger = logging.getLogger(__name__)

STEP_SECONDS = 0.5
UPLOAD_SECONDS = 300.0
MAX_WAITING = 4
"""Requests that may wait while one is processed."""
REFUSALS_RECORDED = 1000
INTERNAL_ERROR = (
    "the submission could not be checked because of an error on our side, which has been recorded; it may be valid"
)


def answer_time(seconds: float) -> float:
    """Seconds after which to answer a check that took `seconds`: the next of a few times, each twice the one before.

    >>> answer_time(0.01), answer_time(0.5), answer_time(0.6), answer_time(9.0)
    (0.5, 0.5, 1.0, 16.0)
    """
    return STEP_SECONDS * 2.0 ** max(0, math.ceil(math.log2(max(seconds, STEP_SECONDS) / STEP_SECONDS)))


class ValidationService:
    """The service of one run, with the endpoints for which there is a check."""

    def __init__(self, checks: Mapping[str, Check], folder: Path, since: str = "") -> None:
        """Continue the logs in `folder`, or start them.

        Args:
            checks: what answers each endpoint, by the names in `ENDPOINTS`.
            folder: folder of the run for the journals and, temporarily, uploads.
            since: ISO time from which on calls count towards the limits.
        """
        self._calls = [_Calls(ENDPOINTS[name], check, folder, since) for name, check in checks.items()]
        self.routes = [Route("/health", self._health, methods=["GET"])]
        self.routes += [Route(calls.endpoint.path, calls.answer, methods=["POST"]) for calls in self._calls]

    def reset_limits(self) -> None:
        """Count only calls from now on towards the limits; earlier ones stay in the logs."""
        for calls in self._calls:
            calls.reset_limits()

    def close(self) -> None:
        """Close the checkers."""
        for calls in self._calls:
            calls.close()

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "running"})


class _Calls:
    """The calls of an endpoint. They are counted across restarts."""

    def __init__(self, endpoint: Endpoint, check: Check, folder: Path, since: str) -> None:
        self.endpoint = endpoint
        self._checker, self._limits, self._folder = check.checker, check.limits, folder
        self._log = JsonLinesLog(folder / endpoint.journal, 64 * MIB)
        call_times = [record["time"] for record in self._log.records() if record["verdict"] != "refused"]
        self._count = len(call_times)
        self._uncounted = sum(call_time < since for call_time in call_times)
        self._refused = 0
        self._pending = 0
        self._turn = asyncio.Lock()
        self._allowance, self._refilled = float(self._limits.calls_per_minute), time.monotonic()

    def reset_limits(self) -> None:
        self._uncounted = self._count

    def close(self) -> None:
        self._checker.close()

    async def answer(self, request: Request) -> Response:
        """Answer a request, after those that wait, or refuse it."""
        if reason := self._over_limit():
            return self._refuse(*reason)
        self._pending += 1
        try:
            async with self._turn:
                return await self._answer(request)
        finally:
            self._pending -= 1

    async def _answer(self, request: Request) -> Response:
        self._count += 1
        began, asked_at = time.monotonic(), datetime.now(UTC)
        uploads: dict[str, Upload] = {}
        with tempfile.TemporaryDirectory(prefix="upload-", dir=self._folder) as name:
            folder, fields = Path(name), self.endpoint.files
            try:
                uploads = await receive(request, folder, fields, self._limits.submission_bytes, UPLOAD_SECONDS)
                received = time.monotonic()
                verdict = await in_thread(partial(self._check, [folder / f"{field}.csv" for field in fields]))
                if self.endpoint.in_steps:
                    elapsed = time.monotonic() - received
                    await asyncio.sleep(answer_time(elapsed) - elapsed)
            except TooLarge as error:
                verdict = self.endpoint.verdict("invalid", str(error))
            except BadUpload as error:
                self._record(asked_at, began, uploads, self.endpoint.verdict("invalid", str(error)))
                return JSONResponse({"error": str(error)}, 400)
        self._record(asked_at, began, uploads, verdict)
        if verdict.outcome == "failed":
            return JSONResponse({"error": INTERNAL_ERROR}, 500)
        return JSONResponse(*response(self.endpoint, verdict))

    def _check(self, files: list[Path]) -> Verdict:
        try:
            return self._checker(*files)
        except Exception:  # its text is for the log, never for the agent
            logger.exception("a submission could not be checked")
            return self.endpoint.verdict("failed")

    def _over_limit(self) -> tuple[str, int] | None:
        """Why a request is rejected, and the seconds after which to try again (0: never); None if it is accepted."""
        limits, now = self._limits, time.monotonic()
        if self._count - self._uncounted >= limits.calls:
            return f"all {limits.calls} {self.endpoint.calls} of this run are used up", 0
        if self._pending > MAX_WAITING:
            return f"too many {self.endpoint.calls} at once: wait for the responses", 5
        per_second = limits.calls_per_minute / 60
        self._allowance = min(self._allowance + (now - self._refilled) * per_second, limits.calls_per_minute)
        self._refilled = now
        if self._allowance < 1:
            return f"more than {limits.calls_per_minute} {self.endpoint.calls} per minute", math.ceil(1 / per_second)
        self._allowance -= 1
        return None

    def _refuse(self, reason: str, seconds: int) -> Response:
        self._refused += 1
        if self._refused <= REFUSALS_RECORDED:
            self._log.append({"time": datetime.now(UTC).isoformat(), "verdict": "refused", "message": reason})
        retry_hint = f"; try again in {seconds} seconds" if seconds else ""
        headers = {"Retry-After": str(seconds)} if seconds else {}
        return JSONResponse({"error": f"{self.endpoint.refused}: {reason}{retry_hint}."}, 429, headers)

    def _record(self, asked_at: datetime, began: float, uploads: Mapping[str, Upload], verdict: Verdict) -> None:
        sizes: dict[str, Any] = {field: upload.size for field, upload in uploads.items()}
        hashes: dict[str, Any] = {field: upload.sha256 for field, upload in uploads.items()}
        several = len(self.endpoint.files) > 1
        self._log.append(
            {
                "time": asked_at.isoformat(),
                "size": sizes if several else sizes.get("file"),
                "sha256": hashes if several else hashes.get("file"),
                "verdict": verdict.outcome,
                **(verdict.told if verdict.outcome == "valid" else dict.fromkeys(verdict.told)),
                "message": verdict.message if verdict.outcome != "failed" else None,
                "seconds": round(time.monotonic() - began, 3),
            }
        )
