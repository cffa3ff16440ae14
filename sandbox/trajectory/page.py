"""A trajectory as a page for the browser. The page runs no script and loads nothing from the network."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from common import plain_json
from common.cleaning import visible

FILE = "trajectory.html"
"""Name of the file in the folder of a run."""
PAGE_CHARACTERS = 1_500_000
TEXT_CHARACTERS = 8_000
"""Maximum number of characters of one text that the page shows; the file has all of them."""
_MAX_OPEN_CHARACTERS = 1_500
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
article{border-left:4px solid #999;margin:1rem 0;padding:.1rem 0 .1rem 1rem;overflow-wrap:anywhere}
article.agent{border-color:#2563a8}article.user{border-color:#b45f06}
h1{font-size:1.4rem}h2{font-size:.85rem;margin:.2rem 0;color:#555;font-weight:600}
pre{white-space:pre-wrap;margin:.3rem 0;background:#f5f5f5;padding:.5rem;font-size:13px}
details{margin:.3rem 0}summary{cursor:pointer;color:#555}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}pre{background:#242424}h2,summary{color:#aaa}}
"""


def render(trajectory: dict[str, Any], title: str) -> str:
    """The page of an ATIF trajectory. Long texts are cut, and a page that gets too long ends early and says so."""
    pieces: list[str] = []
    remaining_characters = PAGE_CHARACTERS
    steps = trajectory["steps"]
    for step in steps:
        piece = "".join(_step(step))
        remaining_characters -= len(piece)
        if remaining_characters < 0:
            pieces.append(f"<p>{len(steps) - len(pieces)} more steps are in trajectory.json.</p>")
            break
        pieces.append(piece)
    totals = trajectory["final_metrics"]
    cost = f", ${totals['total_cost_usd']:,.4f}" if "total_cost_usd" in totals else ""
    notes = f"<p>{_shown(trajectory['notes'])}</p>" if "notes" in trajectory else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<link rel="icon" href="data:,"><title>{_shown(title)}</title><style>{_STYLE}</style></head><body>'
        f"<h1><bdi>{_shown(title)}</bdi></h1>"
        f"<p>{_shown(trajectory['agent']['name'])}: {len(steps):,} steps, {totals['total_prompt_tokens']:,} tokens in, "
        f"{totals['total_completion_tokens']:,} tokens out{cost}.</p>{notes}{''.join(pieces)}</body></html>\n"
    )


def _shown(text: object) -> str:
    """A text from anybody, escaped for the page."""
    return escape(visible(text))


def _step(step: dict[str, Any]) -> Iterator[str]:
    facts = [f"{step['step_id']}. {step['source']}", step.get("model_name"), step["timestamp"][:19].replace("T", " ")]
    if metrics := step.get("metrics"):
        facts.append(f"{metrics['prompt_tokens']:,} → {metrics['completion_tokens']:,} tokens")
        facts.append(f"${metrics['cost_usd']:,.4f}" if "cost_usd" in metrics else None)
    extra = step.get("extra", {})
    facts += [extra["status"] if extra.get("status", "ok") != "ok" else None, extra.get("message")]
    heading = " · ".join(_shown(fact) for fact in facts if fact)
    yield f'<article class="{step["source"]}"><h2>{heading}</h2>'
    yield _text(step.get("reasoning_content", ""), "reasoning")
    yield _text(step["message"])
    for call in step.get("tool_calls", ()):
        yield _text(plain_json.dumps(call["arguments"], indent=1, ensure_ascii=False), f"calls {call['function_name']}")
    for result in step.get("observation", {}).get("results", ()):
        yield _text(result["content"], "result")
    yield "</article>\n"


def _text(text: str, label: str = "") -> str:
    if not text:
        return ""
    cut_note = (
        f"\n… {len(text) - TEXT_CHARACTERS:,} more characters in trajectory.json" if len(text) > TEXT_CHARACTERS else ""
    )
    block = f"<pre>{_shown(text[:TEXT_CHARACTERS])}{cut_note}</pre>"
    if not label and len(text) <= _MAX_OPEN_CHARACTERS:
        return block
    return f"<details><summary>{_shown(label or text[:80])}</summary>{block}</details>"
