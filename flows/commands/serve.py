"""mlebench serve."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import click

from common.errors import UsageError, UserError
from competitions.editions import EDITIONS
from flows.commands.options import Selection, StoreOptions, option, takes
from flows.commands.quantities import POSITIVE_DURATION
from flows.commands.types import RUN_GROUP, whole
from training import BACKENDS

_TOKEN_CHARACTERS = 16
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{{_TOKEN_CHARACTERS},}}")
"""What a token has to be: it is part of a URL."""


@dataclass(frozen=True)
class EpisodeOptions:
    """Options of the episodes."""

    TITLE: ClassVar[str] = "Episodes"
    edition: Annotated[
        Any, option("--edition", type=click.Choice(EDITIONS), show_default=True, help="Edition of the datasets.")
    ] = "v1"
    backend: Annotated[
        str,
        option(
            "--backend",
            type=click.Choice(BACKENDS),
            show_default=True,
            help="Where commands run. `process` does not isolate them.",
        ),
    ] = "docker"
    seconds: Annotated[
        float,
        option("--time-limit", type=POSITIVE_DURATION, metavar="TIME", help="Time of an episode. Default: 30 minutes."),
    ] = 1800.0
    steps: Annotated[int, option("--steps", type=whole(1), show_default=True, help="Actions of an episode.")] = 100
    command_seconds: Annotated[
        float,
        option(
            "--command-limit",
            type=POSITIVE_DURATION,
            metavar="TIME",
            help="Time of a command. Default: 50 seconds, because clients of OpenEnv wait 60 for an answer unless they "
            "are told otherwise (message_timeout_s).",
        ),
    ] = 50.0
    public_scores: Annotated[
        int,
        option(
            "--feedback-calls",
            type=whole(0),
            show_default=True,
            help="Actions `public_score` of an episode, each with a score on the public part of the test set.",
        ),
    ] = 5
    idle: Annotated[
        float,
        option(
            "--idle",
            type=POSITIVE_DURATION,
            metavar="TIME",
            help="An episode without an action for so long ends. Default: 10 minutes.",
        ),
    ] = 600.0
    warm: Annotated[
        int,
        option("--warm", type=whole(0), show_default=True, help="Sandboxes that are started before they are needed."),
    ] = 1
    name: Annotated[
        str,
        option("--name", type=RUN_GROUP, show_default=True, help="Name under which episodes are recorded."),
    ] = "training"


@dataclass(frozen=True)
class Permissions:
    """What is refused unless the operator allows it."""

    TITLE: ClassVar[str] = "Permissions"
    allow_eval: Annotated[
        bool,
        option("--allow-eval", is_flag=True, help="Serve the 22 Lite competitions, on which agents are evaluated."),
    ] = False
    allow_test_scores: Annotated[
        bool,
        option(
            "--allow-test-scores",
            is_flag=True,
            help="Serve whole competitions, whose rewards are scores on the benchmark's test sets. Scores of agents "
            "that were trained with them must not be reported.",
        ),
    ] = False
    allow_untrusted: Annotated[
        bool,
        option("--allow-untrusted", is_flag=True, help="Run commands without isolation (--backend process)."),
    ] = False


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8765, show_default=True, type=whole(0, 65535), help="0 for any free port.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the token of clients, made if it is missing. Default: a new token at every start.",
)
@takes(selection=Selection, storage=StoreOptions, chosen=EpisodeOptions, allowed=Permissions)
def command(
    host: str,
    port: int,
    token_file: Path | None,
    selection: Selection,
    storage: StoreOptions,
    chosen: EpisodeOptions,
    allowed: Permissions,
) -> int:
    """Serve prepared competitions as environments to train agents in, in the protocol of OpenEnv.

    Clients connect to the URL that is printed, in which the token stands. At most MLEBENCH_AGENTS episodes are in
    progress at a time. Ctrl-C ends the server and all episodes.
    """
    if not selection:
        raise UsageError("name the competitions to serve, such as -c spaceship-titanic--rows200-seed0")
    from common import guard
    from sandbox.isolation import Isolation
    from training.episode import EpisodeLimits
    from training.episodes import Episodes, TrainingOptions
    from training.server import Server, serve

    limits = EpisodeLimits(
        chosen.seconds, chosen.steps, command_seconds=chosen.command_seconds, public_scores=chosen.public_scores
    )
    options = TrainingOptions(
        tuple(selection.ids()),
        edition=chosen.edition,
        isolation=Isolation(chosen.backend, network="none", allow_untrusted=allowed.allow_untrusted),
        limits=limits,
        warm=chosen.warm,
        allow_eval=allowed.allow_eval,
        allow_test_scores=allowed.allow_test_scores,
        group=chosen.name,
    )
    credential = _credential(token_file)
    try:
        listener = guard.listen(port, host)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UserError(f"port {port} of {host} cannot be used ({reason}): choose others (--host, --port)") from None
    with listener, Episodes(storage.open_usable(), options) as episodes:
        address = guard.address(listener.getsockname()[1], host)
        click.echo(f"Serving {', '.join(sorted(episodes.names))}: {episodes.slots} episodes at a time")
        click.echo(f"http://{credential}@{address}")
        serve(Server(episodes, chosen.idle).app(credential), listener)
    return 0


def _credential(token_file: Path | None) -> str:
    """The login of clients, with the token of a file if there is one."""
    from common import guard

    if token_file is None:
        return guard.new_credential()
    try:
        if not token_file.exists():
            guard.write_private(token_file, guard.new_credential().partition(":")[2] + "\n")
        token = token_file.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise UserError(f"the token cannot be read from {token_file}: {error}") from None
    if _TOKEN.fullmatch(token) is None:
        raise UserError(f"{token_file} must have a token of {_TOKEN_CHARACTERS} or more letters, digits, - and _")
    return f"{guard.USER}:{token}"
