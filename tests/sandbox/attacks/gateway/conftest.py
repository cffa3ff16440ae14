from tests.sandbox.gateway.conftest import gateway, llm

__all__ = ["gateway", "llm"]
