from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from common.providers import Provider
from sandbox.gateway.policy import Budget, GatewayPolicy
from sandbox.services.run_services import RECORDS, RunServices
from sandbox.serving import ServerThread, listen_tcp
from tests.sandbox.gateway.llm import KEY, ScriptedLLM


@pytest.fixture
def llm() -> Iterator[ScriptedLLM]:
    """A provider on loopback."""
    llm = ScriptedLLM()
    listener = listen_tcp("127.0.0.1", None)
    llm.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with ServerThread() as thread:
        thread.serve(llm.app(), listener)
        yield llm


@dataclass
class Gateway:
    """An open gateway as an agent has it, and what the operator sees of it."""

    services: RunServices
    workdir: Path
    http: httpx.Client

    @property
    def log(self) -> list[dict[str, Any]]:
        path = self.workdir / RECORDS / "gateway.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def chat(self, content: Any = "Solve it.", model: str = "gpt-4o", **fields: Any) -> httpx.Response:
        body = {"model": model, "messages": [{"role": "user", "content": content}], **fields}
        return self.http.post("/v1/chat/completions", json=body)

    def message(self, content: Any = "Solve it.", **fields: Any) -> httpx.Response:
        body = {"model": "claude-3-5-sonnet-20240620", "max_tokens": 100}
        body |= {"messages": [{"role": "user", "content": content}], **fields}
        return self.http.post("/v1/messages", json=body, headers={"anthropic-version": "2023-06-01"})

    def generate(self, content: Any = "Solve it.", *, stream: bool = False, **fields: Any) -> httpx.Response:
        body = {"contents": [{"role": "user", "parts": [{"text": content}]}], **fields}
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return self.http.post(f"/v1beta/models/gemini-2.5-flash:{method}", json=body)


@pytest.fixture
def gateway(llm: ScriptedLLM, tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Open a gateway to the scripted provider.

    Keyword arguments are of the policy, or of the budget; `models` are patterns of the models that the operator names.
    """
    opened: list[Gateway] = []

    def open_(*, workdir: str = "run", models: Sequence[str] = (), **fields: Any) -> Gateway:
        budget = Budget(**{name: fields.pop(name) for name in ("requests", "tokens", "dollars") if name in fields})
        key = SecretStr(KEY)
        providers = {
            "openai": Provider(base_url=f"{llm.url}/v1", api_key=key, price_list="openai", models=list(models)),
            "anthropic": Provider(
                api="anthropic", base_url=llm.url, api_key=key, price_list="anthropic", models=list(models)
            ),
            "gemini": Provider(api="gemini", base_url=llm.url, api_key=key, price_list="google", models=list(models)),
        }
        policy = GatewayPolicy(**{"providers": providers, "budget": budget, **fields})
        services = RunServices(tmp_path / workdir, gateway=policy)
        services.__enter__()
        env = services.env
        headers = {"authorization": f"Bearer {env['OPENAI_API_KEY']}"}
        url = env["OPENAI_BASE_URL"].removesuffix("/v1")
        http = httpx.Client(base_url=url, headers=headers, timeout=30, verify=False)  # reading certificates takes long
        opened.append(Gateway(services, tmp_path / workdir, http))
        return opened[-1]

    yield open_
    for each in opened:
        each.http.close()
        each.services.close()
