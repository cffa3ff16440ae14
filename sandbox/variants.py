"""Variants of an agent: one ``agent.yaml``, several ways to run it.

    kwargs: {steps: 500}
    variants:
      dev: {kwargs: {steps: 8}, limits: {time_limit_seconds: 600}}
      dev-large: {extends: dev, kwargs: {model: large}}

A variant consists of the fields at the top level, overridden by its own; mappings are merged recursively. It is
selected as ``aide/dev`` or ``aide@dev``.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

EXTENDS = "extends"


def name_and_variant(name: str) -> tuple[str, str | None]:
    """Split ``aide@dev`` into agent and variant.

    Names with / may be paths; `sandbox.agent_registry.load_agent` splits them, because it knows which agents exist.

    >>> name_and_variant("aide@dev"), name_and_variant("aide")
    (('aide', 'dev'), ('aide', None))
    """
    agent, separator, variant = name.rpartition("@")
    return (agent, variant) if separator and agent else (name, None)


def apply(fields: Mapping[str, Any], variant: str | None) -> dict[str, Any]:
    """The fields of a variant.

    Raises:
        LookupError: there is no such variant.
        ValueError: variants extend each other in a cycle, or one is not a mapping.
    """
    base = {name: value for name, value in fields.items() if name != "variants"}
    variants = fields.get("variants") or {}
    if not isinstance(variants, Mapping) or not all(
        isinstance(own_fields, Mapping) for own_fields in variants.values()
    ):
        raise ValueError("variants: must map names to fields, such as `dev: {kwargs: {steps: 8}}`")
    chain: list[Mapping[str, Any]] = []
    visited: list[str] = []
    while variant is not None:
        if variant in visited:
            raise ValueError(f"variants: {' extends '.join([*visited, variant])}")
        if variant not in variants:
            close = difflib.get_close_matches(variant, map(str, variants), n=1, cutoff=0.65)
            variant_names = ", ".join(map(str, variants)) or "none"
            hint = f"did you mean {close[0]}?" if close else f"known variants: {variant_names}"
            raise LookupError(f"no variant {variant!r}: {hint}")
        visited.append(variant)
        chain.append(variants[variant])
        variant = variants[variant].get(EXTENDS)
    for layer in reversed(chain):
        base = _merge(base, {name: value for name, value in layer.items() if name != EXTENDS})
    return base


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        merged[name] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged
