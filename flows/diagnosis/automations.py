"""Automations on the Prefect server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefect.events.schemas.automations import AutomationCore


def ensure(wanted: AutomationCore) -> None:
    """Register an automation, or replace the one of its name if that is different."""
    from prefect import get_client

    with get_client(sync_client=True) as client:
        existing = client.read_automations_by_name(wanted.name)
        # A new one does not know the flow runs that the old one watches, and would miss those that have just died.
        if any(_content(automation) == _content(wanted) for automation in existing):
            return
        for automation in existing:
            client.delete_automation(automation.id)
        client.create_automation(wanted)


def _content(automation: AutomationCore) -> Any:
    return automation.model_dump(mode="json", include={"trigger": True, "actions": True}, exclude={"trigger": {"id"}})
