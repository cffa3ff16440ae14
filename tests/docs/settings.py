"""The page of settings, docs/settings.md, from `common.settings`.

`python -m tests.docs.settings` brings it up to date. What precedes the line BEGIN is written by hand.
"""

from __future__ import annotations

import html
from pathlib import Path

from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo

from common.providers import Price, Provider
from common.settings import OTHER_VARIABLES, PREFIX, Settings
from common.splits import OwnSplit

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"
BEGIN = "<!-- generated from common/settings.py by python -m tests.docs.settings -->"
# Defaults that depend on the machine or the user, in words.
DEPENDENT = {
    "store": "`~/.local/share/mlebench`",
    "scratch": "`~/.cache/mlebench`",
    "dask_workers": "all cores",
    "agents": "all cores",
    "host_name": "the name of the machine",
}
SECTIONS: dict[str, tuple[type[BaseModel], str, str]] = {
    "All settings": (Settings, PREFIX, ""),
    "Splits": (OwnSplit, "", "The fields of each entry of `splits`; all are required."),
    "Providers": (Provider, "", "The fields of each entry of `providers`."),
    "Prices": (Price, "", "The fields of each entry of `prices`, in US dollars for a million tokens."),
}


def reference() -> str:
    """What follows BEGIN: the tables of settings, of what they consist of, and of variables that are no settings."""
    parts = []
    for heading, (model, prefix, about) in SECTIONS.items():
        rows = [
            f"| `{f'{prefix}{name}'.upper() if prefix else name}` | {_meaning(field)} | {_default(name, field)} |"
            for name, field in model.model_fields.items()
        ]
        name = "variable" if prefix else "field"
        table = [f"| {name} | meaning | default |", "|---|---|---|", *rows]
        parts.append("\n".join([f"## {heading}", "", *([about, ""] if about else []), *table, ""]))
    others = [f"| `{name}` | {about} |" for name, about in OTHER_VARIABLES.items()]
    head = ["## Other variables", "", "They have the same prefix, but are no settings.", ""]
    parts.append("\n".join([*head, "| variable | what it is |", "|---|---|", *others, ""]))
    return "\n".join(parts)


def _meaning(field: FieldInfo) -> str:
    return html.escape(field.description or "", quote=False).replace("|", "\\|")


def _default(name: str, field: FieldInfo) -> str:
    """The default; empty where there is none, or where the meaning states it."""
    if field.is_required():
        return "required"
    if name in DEPENDENT and field.default_factory is not None:
        return DEPENDENT[name]
    value = field.get_default(call_default_factory=True, validated_data={})
    if value in (None, [], {}) or not str(value):
        return ""
    if isinstance(value, ByteSize):
        return value.human_readable(decimal=value % 10**9 == 0, separator=" ").replace(".0 ", " ")
    return f"`{str(value).lower() if isinstance(value, bool) else str(value).removesuffix('.0')}`"


def update(text: str) -> str:
    """The document with the generated part as it must be."""
    return f"{text.partition(BEGIN)[0]}{BEGIN}\n\n{reference()}"


if __name__ == "__main__":
    DOCUMENT.write_text(update(DOCUMENT.read_text("utf-8")), "utf-8")
