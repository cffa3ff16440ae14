"""Language models for integrity checks, called through the same gateway as agents use, with its budget and its log.

Requests are made several at a time. Those that fail for a transient cause (rate limits, overload, lost connections) are
tried again with growing pauses; those that fail for another one (a rejected key, a used-up budget) are not.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.jsonlines import parse
from grading.integrity.questions import NoAnswer
from sandbox.gateway.policy import GatewayPolicy
from sandbox.services.run_services import RECORDS, RunServices

MAX_ANSWER_TOKENS = 16_000
"""Maximum length of an answer. Reasoning models count their reasoning as part of it."""
MAX_REQUESTS = 16
"""Number of requests at a time."""
_REQUEST_SECONDS = 600.0
_MAX_TRIES, _FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 7, 2.0, 60.0  # about three minutes in all
_RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAX_FAILURES_IN_A_ROW = 20  # after which the model is not asked any more
_pause = time.sleep


class ModelError(UserError, NoAnswer):
    """A request to a language model failed; the message says why."""


class _PassingError(ModelError):
    """A request failed for a transient cause; `after` is the pause that the provider asked for, in seconds."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class LanguageModel:
    """A model behind a running gateway. Several threads can use it."""

    def __init__(self, name: str, api: str, env: dict[str, str], journal: Path) -> None:
        import httpx

        self.name, self._api, self._journal = name, api, journal
        self._temperature: dict[str, Any] = {"temperature": 0}  # the same text should get the same answer
        self._failures = 0  # in a row
        prefix = api.upper()
        key = env[f"{prefix}_API_KEY"]
        headers = {"authorization": f"Bearer {key}", "x-api-key": key, "anthropic-version": "2023-06-01"}
        base = env[f"{prefix}_BASE_URL"].rstrip("/").removesuffix("/v1")
        self._http = httpx.Client(base_url=base, headers=headers, timeout=_REQUEST_SECONDS, trust_env=False)

    def ask(self, prompt: str) -> str:
        """The model's answer to a prompt. Raises `ModelError` if the request fails."""
        body: dict[str, Any] = {"model": self.name, "messages": [{"role": "user", "content": prompt}]}
        if self._api == "anthropic":
            answer = self._chat("/v1/messages", body | {"max_tokens": MAX_ANSWER_TOKENS})
            parts = answer.get("content") or [{}]
            return "".join(str(part.get("text") or "") for part in parts)
        answer = self._chat("/v1/chat/completions", body | {"max_completion_tokens": MAX_ANSWER_TOKENS})
        choices = answer.get("choices") or [{}]
        return str((choices[0].get("message") or {}).get("content") or "")

    def ask_all(self, ask: Callable[[str], Any], prompts: Iterable[str]) -> Iterator[Any]:
        """Apply `ask` to prompts, `MAX_REQUESTS` at a time. Yields the results in the order of the prompts."""
        with ThreadPoolExecutor(MAX_REQUESTS) as threads:
            yield from threads.map(ask, prompts)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a POST request; returns the JSON object of the response.

        Raises `ModelError` if the request fails for good, or if all requests before it did.
        """
        if self._failures >= _MAX_FAILURES_IN_A_ROW:
            raise ModelError(f"model {self.name} was not asked: {self._failures} requests in a row had failed")
        pause = _FIRST_PAUSE_SECONDS
        for tries_left in reversed(range(_MAX_TRIES)):
            try:
                answer = self._post(path, body)
            except _PassingError as error:
                if not tries_left:
                    self._failures += 1
                    raise
                # The pause is random, so that requests that were refused together are not repeated together.
                _pause(error.after or pause * random.uniform(0.5, 1.5))
                pause = min(2 * pause, _MAX_PAUSE_SECONDS)
            except ModelError:
                self._failures += 1
                raise
            else:
                self._failures = 0
                return answer
        raise AssertionError("the last try returns or raises")

    def _chat(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        temperature = self._temperature  # another thread may change it meanwhile
        try:
            return self.post(path, body | temperature)
        except ModelError as error:
            if not temperature or "temperature" not in str(error):
                raise
            self._temperature = {}  # reasoning models refuse to be given one
            return self.post(path, body)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        import httpx

        try:
            response = self._http.post(path, json=body)
        except httpx.HTTPError as error:
            raise _PassingError(f"model {self.name} does not answer: {error or type(error).__name__}") from error
        try:
            answer = response.json()
        except ValueError as error:
            if response.status_code in _RETRIED_STATUSES:
                raise _PassingError(f"the request to model {self.name} failed: HTTP {response.status_code}") from error
            raise ModelError(f"model {self.name} does not answer with JSON: {error}") from error
        if response.status_code == 200 and isinstance(answer, dict):
            return answer
        problem = answer.get("error") if isinstance(answer, dict) else None
        message = problem.get("message") if isinstance(problem, dict) else problem
        failure = f"the request to model {self.name} failed: {message or f'HTTP {response.status_code}'}"
        used_up = isinstance(problem, dict) and "insufficient_quota" in (problem.get("type"), problem.get("code"))
        refused = response.headers.get("x-should-retry") == "false"  # as of a wrong key, says the gateway
        if response.status_code in _RETRIED_STATUSES and not used_up and not refused:
            raise _PassingError(failure, _seconds(response.headers.get("retry-after")))
        raise ModelError(failure)

    def calls(self) -> list[dict[str, Any]]:
        """The calls so far, as the gateway logged them."""
        return list(parse(self._journal.read_bytes())) if self._journal.exists() else []

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _seconds(text: str | None) -> float | None:
    """The value of a Retry-After header in seconds, at most `_MAX_PAUSE_SECONDS`; None for another form of it."""
    try:
        return min(max(float(text or ""), 0.0), _MAX_PAUSE_SECONDS) or None
    except ValueError:
        return None


@contextmanager
def language_model(name: str, policy: GatewayPolicy, api: str | None = None) -> Iterator[LanguageModel]:
    """Start a gateway for the `with` block and connect to a model of one of the policy's providers.

    The budget of the policy covers all calls in the block. Raises `ModelError` if no provider serves the model.
    """
    protocols = [protocol for protocol in ("openai", "anthropic") if api in (None, protocol)]
    served_protocol = next((protocol for protocol in protocols if policy.provider_for(protocol, name)), None)  # type: ignore[arg-type]
    if served_protocol is None:
        raise ModelError(f"no provider serves the model {name!r}; see MLEBENCH_PROVIDERS__NAME__BASE_URL and _MODELS")
    with (
        tempfile.TemporaryDirectory(prefix="mlebench-model-") as folder,
        RunServices(Path(folder), gateway=policy) as services,
    ):
        model = LanguageModel(name, served_protocol, services.env, Path(folder) / RECORDS / "gateway.jsonl")
        try:
            yield model
        finally:
            model.close()
