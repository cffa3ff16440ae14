"""Run agents: their definitions, the process and Docker backends, the LLM gateway and the validation service.

Import from the modules (``sandbox.definitions``, ``sandbox.backend``, ``sandbox.process.backend``). The package itself
imports nothing, so that importing it is cheap.
"""
