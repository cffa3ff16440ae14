"""The validation service of a run: `POST /validate` and `GET /health`, as in the published benchmark.

A response says whether the file is valid and, if not, why: it contains the grader's one-line message. It never contains
a score or the text of an exception. It comes after half a second, or a second, two, four and so on: the time that a
check takes may depend on the answers, and so few different times tell an agent little about them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from common.jsonlines import JsonLinesLog
from sandbox.limits import MIB, ValidationLimits
from sandbox.serving import in_thread
from sandbox.validation.checker import SubmissionChecker, Verdict
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
    """The service of one run. Calls are counted across restarts."""

    def __init__(self, checker: SubmissionChecker, folder: Path, limits: ValidationLimits, since: str = "") -> None:
        """Continue the log in `folder`, or start it.

        Args:
            checker: checks the submissions.
            folder: folder of the run for `validation.jsonl` and, temporarily, uploads.
            limits: number and size of the submissions.
            since: ISO time from which on calls count towards the limit.
        """
        self.log = JsonLinesLog(folder / "validation.jsonl", 64 * MIB)
        call_times = [record["time"] for record in self.log.records() if record["verdict"] != "refused"]
        self.calls = len(call_times)
        self.routes = [
            Route("/validate", self._validate, methods=["POST"]),
            Route("/health", self._health, methods=["GET"]),
        ]
        self._checker = checker
        self._folder = folder
        self._limits = limits
        self._uncounted = sum(call_time < since for call_time in call_times)
        self._refused = 0
        self._pending = 0
        self._turn = asyncio.Lock()
        self._allowance, self._refilled = float(limits.calls_per_minute), time.monotonic()

    def reset_limits(self) -> None:
        """Count only calls from now on towards the limit; earlier ones stay in the log."""
        self._uncounted = self.calls

    def close(self) -> None:
        """Close the checker."""
        self._checker.close()

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "running"})

    async def _validate(self, request: Request) -> Response:
        if reason := self._over_limit():
            return self._refuse(*reason)
        self._pending += 1
        try:
            async with self._turn:
                return await self._answer(request)
        finally:
            self._pending -= 1

    async def _answer(self, request: Request) -> Response:
        self.calls += 1
        began, asked_at = time.monotonic(), datetime.now(UTC)
        upload: Upload | None = None
        with tempfile.TemporaryDirectory(prefix="upload-", dir=self._folder) as folder:
            file = Path(folder) / "submission.csv"
            try:
                upload = await receive(request, file, self._limits.submission_bytes, UPLOAD_SECONDS)
                received = time.monotonic()
                verdict = await in_thread(partial(self._run_check, file))
                elapsed = time.monotonic() - received
                await asyncio.sleep(answer_time(elapsed) - elapsed)
            except TooLarge as error:
                verdict = Verdict("invalid", str(error))
            except BadUpload as error:
                self._record(asked_at, began, upload, Verdict("invalid", str(error)))
                return JSONResponse({"error": str(error)}, 400)
        self._record(asked_at, began, upload, verdict)
        if verdict.outcome == "failed":
            return JSONResponse({"error": INTERNAL_ERROR}, 500)
        valid = verdict.outcome == "valid"
        return JSONResponse({"result": "Submission is valid." if valid else f"Submission invalid! {verdict.message}"})

    def _run_check(self, file: Path) -> Verdict:
        try:
            return self._checker(file)
        except Exception:  # its text is for the log, never for the agent
            logger.exception("a submission could not be validated")
            return Verdict("failed")

    def _over_limit(self) -> tuple[str, int] | None:
        """Why a request is rejected, and the seconds after which to try again (0: never); None if it is accepted."""
        limits, now = self._limits, time.monotonic()
        if self.calls - self._uncounted >= limits.calls:
            return f"all {limits.calls} validations of this run are used up", 0
        if self._pending > MAX_WAITING:
            return "too many validations at once: wait for the responses", 5
        per_second = limits.calls_per_minute / 60
        self._allowance = min(self._allowance + (now - self._refilled) * per_second, limits.calls_per_minute)
        self._refilled = now
        if self._allowance < 1:
            return f"more than {limits.calls_per_minute} validations per minute", math.ceil(1 / per_second)
        self._allowance -= 1
        return None

    def _refuse(self, reason: str, seconds: int) -> Response:
        self._refused += 1
        if self._refused <= REFUSALS_RECORDED:
            self.log.append({"time": datetime.now(UTC).isoformat(), "verdict": "refused", "message": reason})
        retry_hint = f"; try again in {seconds} seconds" if seconds else ""
        headers = {"Retry-After": str(seconds)} if seconds else {}
        return JSONResponse({"error": f"Not validated: {reason}{retry_hint}."}, 429, headers)

    def _record(self, asked_at: datetime, began: float, upload: Upload | None, verdict: Verdict) -> None:
        record: dict[str, Any] = {
            "time": asked_at.isoformat(),
            "size": upload.size if upload else None,
            "sha256": upload.sha256 if upload else None,
            "verdict": verdict.outcome,
            "message": verdict.message if verdict.outcome == "invalid" else None,
            "seconds": round(time.monotonic() - began, 3),
        }
        self.log.append(record)
