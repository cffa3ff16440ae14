"""mlebench notify."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import click

from common.errors import UserError
from common.units import counted

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.blocks.abstract import NotificationBlock

_BLOCK_NAME = "mlebench"


@click.command("notify")
@click.option("--slack", metavar="URL", help="Incoming webhook of a Slack channel.")
@click.option("--webhook", metavar="URL", help='Receives POST requests with {"subject": ..., "body": ...}.')
@click.option("--mail", metavar="ADDRESS", multiple=True, help="Recipient of mail by SendGrid; repeatable.")
@click.option("--sender", metavar="ADDRESS", help="Sender of the mail; the API key is read from SENDGRID_API_KEY.")
@click.option("--block", metavar="TYPE/NAME", help="Any notification block that the Prefect server has.")
@click.option("--off", is_flag=True, help="Remove the notifications.")
@click.option("--dry-run", "dry", is_flag=True, help="With --off: only show what would be removed.")
def command(
    slack: str | None,
    webhook: str | None,
    mail: tuple[str, ...],
    sender: str | None,
    block: str | None,
    off: bool,
    dry: bool,
) -> int:
    """Be told when a run group has finished, when a nightly fails or its scores move, when a host falls silent.

    Sets up automations on the Prefect server, which send the messages with one of its notification blocks, and sends a
    first message. Calling it again replaces the receiver.
    """
    choices = [bool(choice) for choice in (slack, webhook, mail, block, off)]
    if sum(choices) != 1:
        raise click.UsageError("choose one of --slack, --webhook, --mail, --block and --off")
    if dry and not off:
        raise click.UsageError("--dry-run is for --off only")
    from flows.fleet import notifications
    from flows.fleet.queues import require_server

    require_server("notifications need")
    if off:
        for subject in (removed := notifications.remove(dry=dry)):
            click.echo(f"  {'would remove' if dry else 'removed'} notification of {subject}")
        click.echo(f"{counted(len(removed), 'notification')} {'would be removed' if dry else 'removed'}")
        return 0
    if block:
        notification_block, document = _loaded(block)
    else:
        notification_block = _block(slack, webhook, mail, sender)
        document = cast("UUID", notification_block.save(_BLOCK_NAME, overwrite=True))
    try:
        with notification_block.raise_on_failure():
            _ = notification_block.notify(
                "This is a test: mlebench will write here when a run group has finished, when a nightly fails or its "
                "scores move, and when a host falls silent.",
                "mlebench: notifications are set up",
            )
    except Exception as error:  # each library that sends has its own errors
        raise UserError(f"the first message could not be sent, nothing was set up: {error}") from error
    for subject in notifications.set_up(document):
        click.echo(f"notifies of {subject}")
    return 0


def _block(slack: str | None, webhook: str | None, mail: tuple[str, ...], sender: str | None) -> NotificationBlock:
    from prefect.blocks.notifications import CustomWebhookNotificationBlock, SendgridEmail, SlackWebhook
    from pydantic import SecretStr

    if slack:
        return SlackWebhook(url=SecretStr(slack))
    if webhook:
        content = {"subject": "{{subject}}", "body": "{{body}}"}
        return CustomWebhookNotificationBlock(
            name=_BLOCK_NAME, url=webhook, json_data=content, headers=None, cookies=None
        )
    key = os.environ.get("SENDGRID_API_KEY")
    if not sender or not key:
        raise click.UsageError("--mail needs --sender ADDRESS, and SENDGRID_API_KEY in the environment")
    return SendgridEmail(api_key=SecretStr(key), sender_email=sender, to_emails=list(mail))


def _loaded(name: str) -> tuple[NotificationBlock, UUID]:
    """A block of the server, and the id of its document."""
    from prefect.blocks.abstract import NotificationBlock
    from prefect.blocks.core import Block

    try:
        notification_block = Block.load(name)
    except ValueError as error:
        raise UserError(f"the Prefect server has no block {name!r}; `prefect block ls` lists them") from error
    if not isinstance(notification_block, NotificationBlock):
        raise UserError(f"block {name!r} cannot notify; `prefect block ls` lists the blocks of the server")
    document = notification_block._block_document_id
    assert document is not None
    return notification_block, document
