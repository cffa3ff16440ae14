"""Notifications about groups, nightlies and hosts, sent by automations of the Prefect server.

Flows and workers announce events. Automations on the server turn them into messages and send them with a notification
block, so nothing here has to run when a host falls silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from common.cleaning import inert
from tasks.wiring.prefect_server import served, shown

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.events import Event
    from prefect.events.schemas.automations import AutomationCore, EventTrigger

HostEvent = Literal["mlebench.host.alive", "mlebench.host.stopped"]
GROUP_FINISHED = "mlebench.group.finished"
NIGHTLY_FAILED = "mlebench.nightly.failed"
HOST_ALIVE: HostEvent = "mlebench.host.alive"
HOST_STOPPED: HostEvent = "mlebench.host.stopped"

BEAT_SECONDS = 60
"""Interval between two events of a host that takes attempts."""
SILENT_SECONDS = 180
"""A host without an event for this time is said to have fallen silent."""
_HANDLING_TIME = timedelta(seconds=20)
"""After this time, a server has handled an event."""
_NAME_PREFIX = "mlebench: notify of "
_HOST_PREFIX = "mlebench.host."


@dataclass(frozen=True)
class Message:
    """The content of a notification. Its texts may quote agents and submissions; `link` is our own address."""

    subject: str
    body: str
    link: str = ""

    def payload(self) -> dict[str, str]:
        """The payload of the event, without markup: mail would show it as HTML, and other receivers as theirs."""
        return {"subject": inert(self.subject), "body": f"{inert(self.body)} {self.link}".rstrip()}


def announce(event: str, what: str, message: Message | None = None, *, after: Event | None = None) -> Event | None:
    """Emit an event on the Prefect server, if there is one that stays. Never fails.

    Args:
        event: Name of the event.
        what: Its resource, for example `mlebench.host.anna`.
        message: What the notifications of the event say.
        after: Event that the server must have handled before this one: it handles two at a time, in any order.

    Returns:
        The event, unless nothing was emitted.
    """
    from prefect.events import emit_event

    if not served():  # a temporary server has no automations
        return None
    with shown(f"the event {event}"):
        payload = message.payload() if message else None
        return emit_event(event, {"prefect.resource.id": what}, payload=payload, follows=after)
    return None


def announce_host(name: str, event: HostEvent, last: Event | None = None) -> Event | None:
    """Announce that a host takes attempts, or that it was stopped on purpose.

    Args:
        name: Name of the host.
        event: What is announced.
        last: The previous event of the host, as this function returned it.

    Returns:
        The event, unless nothing was emitted.
    """
    # Only an event that was just sent may still be unhandled. A server that has restarted does not know earlier events,
    # and would wait for them.
    recent = last is not None and datetime.now(UTC) - last.occurred < _HANDLING_TIME
    return announce(event, f"{_HOST_PREFIX}{name}", after=last if recent else None)


def set_up(block: UUID) -> list[str]:
    """Create or replace the automations that notify; returns what they notify of.

    Args:
        block: Id of the document of the notification block that sends the messages.
    """
    from prefect import get_client

    remove()
    new_automations = automations(block)
    with get_client(sync_client=True) as client:
        for automation in new_automations:
            client.create_automation(automation)
    return [automation.name.removeprefix(_NAME_PREFIX) for automation in new_automations]


def remove(*, dry: bool = False) -> list[str]:
    """Delete the automations that notify, unless `dry`; returns what they notify of."""
    from prefect import get_client

    with get_client(sync_client=True) as client:
        existing = [
            automation for name in _SUBJECTS for automation in client.read_automations_by_name(f"{_NAME_PREFIX}{name}")
        ]
        for automation in existing if not dry else ():
            client.delete_automation(automation.id)
    return [automation.name.removeprefix(_NAME_PREFIX) for automation in existing]


_SUBJECTS = ("finished groups", "nightlies that failed or whose scores moved", "hosts that fell silent")


def automations(block: UUID) -> list[AutomationCore]:
    """The automations that notify with a block: of groups, of nightlies, of hosts."""
    announced_text = ("{{ event.payload.subject }}", "{{ event.payload.body }}")
    silence_text = (
        "A host of the fleet has fallen silent",
        "No sign of {{ labels['prefect.resource.id'] }} for "
        f"{SILENT_SECONDS // 60} minutes. Its attempts begin anew on other hosts after their own silence; look at the "
        "machine, then start `mlebench worker` on it again.",
    )
    return [
        _automation(_SUBJECTS[0], _each(GROUP_FINISHED), announced_text, block),
        _automation(_SUBJECTS[1], _each(NIGHTLY_FAILED), announced_text, block),
        _automation(_SUBJECTS[2], _silence(), silence_text, block),
    ]


def _automation(name: str, trigger: EventTrigger, text: tuple[str, str], block: UUID) -> AutomationCore:
    from prefect.events.actions import SendNotification
    from prefect.events.schemas.automations import AutomationCore

    subject, body = text
    sending = SendNotification(block_document_id=block, subject=subject, body=body)
    return AutomationCore(name=f"{_NAME_PREFIX}{name}", description="", trigger=trigger, actions=[sending])


def _each(event: str) -> EventTrigger:
    return _trigger("Reactive", expect=[event], within=timedelta(0))


def _silence() -> EventTrigger:
    """Fires once for each host whose events stop, unless it said that it was stopped."""
    return _trigger(
        "Proactive",
        expect=[HOST_ALIVE, HOST_STOPPED],
        within=timedelta(seconds=SILENT_SECONDS),
        after={HOST_ALIVE},
        for_each={"prefect.resource.id"},
    )


def _trigger(posture: str, expect: Sequence[str], **options: Any) -> EventTrigger:
    from prefect.events.schemas.automations import EventTrigger

    return EventTrigger.model_validate({"posture": posture, "expect": set(expect), "threshold": 1, **options})
