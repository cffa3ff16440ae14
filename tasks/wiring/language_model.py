"""Language models for integrity checks, called through the same gateway as agents use, with its budget and its log."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.jsonlines import parse
from sandbox.gateway.policy import GatewayPolicy
from sandbox.services.run_services import RECORDS, RunServices

ANSWER_TOKENS = 2000
_SECONDS = 600.0


class ModelError(UserError):
    """A request to a language model failed; the message says why."""


class LanguageModel:
    """A model behind a running gateway."""

    def __init__(self, name: str, api: str, env: dict[str, str], journal: Path) -> None:
        import httpx

        self.name, self._api, self._journal = name, api, journal
        prefix = api.upper()
        key = env[f"{prefix}_API_KEY"]
        headers = {"authorization": f"Bearer {key}", "x-api-key": key, "anthropic-version": "2023-06-01"}
        base = env[f"{prefix}_BASE_URL"].rstrip("/").removesuffix("/v1")
        self._http = httpx.Client(base_url=base, headers=headers, timeout=_SECONDS, trust_env=False)

    def ask(self, prompt: str) -> str:
        """The model's answer to a prompt. Raises `ModelError` if the request fails."""
        body: dict[str, Any] = {"model": self.name, "messages": [{"role": "user", "content": prompt}]}
        if self._api == "anthropic":
            answer = self.post("/v1/messages", body | {"max_tokens": ANSWER_TOKENS})
            parts = answer.get("content") or [{}]
            return "".join(str(part.get("text") or "") for part in parts)
        answer = self.post("/v1/chat/completions", body | {"max_completion_tokens": ANSWER_TOKENS})
        choices = answer.get("choices") or [{}]
        return str((choices[0].get("message") or {}).get("content") or "")

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a POST request; returns the JSON object of the response. Raises `ModelError` if the request fails."""
        import httpx

        try:
            response = self._http.post(path, json=body)
            answer = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ModelError(f"model {self.name} does not answer: {error or type(error).__name__}") from error
        if response.status_code != 200 or not isinstance(answer, dict):
            problem = answer.get("error") if isinstance(answer, dict) else None
            message = problem.get("message") if isinstance(problem, dict) else problem
            raise ModelError(f"the request to model {self.name} failed: {message or f'HTTP {response.status_code}'}")
        return answer

    def calls(self) -> list[dict[str, Any]]:
        """The calls so far, as the gateway logged them."""
        return list(parse(self._journal.read_bytes())) if self._journal.exists() else []

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


@contextmanager
def language_model(name: str, policy: GatewayPolicy, api: str | None = None) -> Iterator[LanguageModel]:
    """Start a gateway for the `with` block and connect to a model of one of the policy's providers.

    The budget of the policy covers all calls in the block. Raises `ModelError` if no provider serves the model.
    """
    spoken = [each for each in ("openai", "anthropic") if api in (None, each)]
    served = next((each for each in spoken if policy.provider_for(each, name)), None)  # type: ignore[arg-type]
    if served is None:
        raise ModelError(f"no provider serves the model {name!r}; see MLEBENCH_PROVIDERS__NAME__BASE_URL and _MODELS")
    with (
        tempfile.TemporaryDirectory(prefix="mlebench-model-") as folder,
        RunServices(Path(folder), gateway=policy) as services,
    ):
        model = LanguageModel(name, served, services.env, Path(folder) / RECORDS / "gateway.jsonl")
        try:
            yield model
        finally:
            model.close()
