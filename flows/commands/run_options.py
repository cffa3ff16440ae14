"""The options of `mlebench run`, in the groups of its help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import click

from flows.commands.completion import AGENTS
from flows.commands.options import option
from flows.commands.quantities import CPUS, DISK, DURATION, MEMORY, SHARE, TIME_LIMIT
from flows.commands.types import RUN_GROUP, whole
from flows.fleet.queues import Priority
from sandbox import backends
from sandbox.isolation import Network

RETRIED = ("crashed", "timeout", "memory", "disk", "processes")
"""The statuses of runs that `--retry` accepts."""


_PUBLIC_SHARE = 0.3
"""What `--feedback` without a value means; Kaggle's own shares are mostly between 0.2 and 0.5."""


class _Statuses(click.ParamType):
    """Statuses of runs, separated by commas."""

    name = "statuses"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        statuses = tuple(dict.fromkeys(part.strip() for part in str(value).split(",") if part.strip()))
        for status in statuses:
            if status not in RETRIED:
                self.fail(f"{status!r} is not one of {', '.join(RETRIED)}", param, ctx)
        return statuses


@dataclass(frozen=True)
class RunOptions:
    """Options of the runs: agent, number, limits and conditions."""

    TITLE: ClassVar[str] = "Agent and runs"
    agent: Annotated[
        str,
        option(
            "--agent",
            "--agent-id",
            show_default=True,
            help="Name of an agent, or the path of its folder.",
            shell_complete=AGENTS,
        ),
    ] = "baseline"
    seeds: Annotated[
        int, option("--seeds", "--n-seeds", type=whole(1), show_default=True, help="Runs of each competition.")
    ] = 1
    seed: Annotated[
        tuple[int, ...],
        option(
            "--seed",
            multiple=True,
            type=whole(0),
            metavar="N",
            help="Only this seed; repeatable.",
        ),
    ] = ()
    retry: Annotated[
        tuple[str, ...] | None,
        option(
            "--retry",
            type=_Statuses(),
            metavar="STATUS,...",
            help=f"Make runs of the group again that ended so: {', '.join(RETRIED)}. `mlebench verify` reports it.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        option(
            "--dry-run",
            is_flag=True,
            help="Show what would be downloaded, prepared, run, reused and refused, how long it may take and what it "
            "may cost, and exit. Exit code 1 if something would be refused.",
        ),
    ] = False
    run_group: Annotated[
        str | None,
        option(
            "--run-group",
            type=RUN_GROUP,
            metavar="NAME",
            help="Name of this set of runs; an existing group is continued. Default: agent and time.",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        option(
            "--time-limit",
            type=TIME_LIMIT,
            metavar="TIME",
            help="Wall-clock limit of a run, e.g. 24h, 90m or seconds. Default: the agent's.",
        ),
    ] = None
    max_memory: Annotated[
        int | None,
        option(
            "--max-memory",
            type=MEMORY,
            metavar="SIZE",
            help="Most memory of a run, e.g. 64GB, whatever the agent asks.",
        ),
    ] = None
    max_cpus: Annotated[int | None, option("--max-cpus", type=CPUS, metavar="N", help="Most CPU cores of a run.")] = (
        None
    )
    max_disk: Annotated[
        int | None, option("--max-disk", type=DISK, metavar="SIZE", help="Most disk space of a run, e.g. 200GB.")
    ] = None
    container_config: Annotated[
        Path | None,
        option(
            "--container-config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The published tool's JSON file of container settings: its memory, CPUs and disk are the most that a "
            "run gets, and its runtime is used.",
        ),
    ] = None
    retain: Annotated[
        bool,
        option(
            "--retain",
            is_flag=True,
            help="Accepted for compatibility with the published tool; has no effect. Logs, code and submissions are "
            "always kept in the store, containers never.",
        ),
    ] = False
    checkpoint_every: Annotated[
        float | None,
        option(
            "--checkpoint-every",
            type=DURATION,
            metavar="TIME",
            help="Time between checkpoints of an agent that can resume, from which an interrupted run continues on any "
            "host; 0 for none. Default: MLEBENCH_CHECKPOINT_EVERY, or the agent's.",
        ),
    ] = None
    obfuscated: Annotated[
        bool,
        option(
            "--obfuscated",
            is_flag=True,
            help="Hide from agents which competition they work on: another description, and no name.",
        ),
    ] = False
    scorer: Annotated[
        bool,
        option(
            "--scorer",
            is_flag=True,
            help="Let agents compute the competition's metric on predictions and truth of their own (`score.sh`). A "
            "condition of the runs.",
        ),
    ] = False
    feedback: Annotated[
        float | None,
        option(
            "--feedback",
            type=SHARE,
            metavar="SHARE",
            is_flag=False,
            flag_value=_PUBLIC_SHARE,
            help="Let agents ask for scores on this share of the test units (`public_score.sh`; 0.3 if no share is "
            "given), and grade them on the others. A condition of the runs.",
        ),
    ] = None
    feedback_calls: Annotated[
        int | None,
        option(
            "--feedback-calls",
            type=whole(1),
            metavar="N",
            help="With --feedback: scores that a run can ask for within 24 hours. Default: 5.",
        ),
    ] = None
    feedback_required: Annotated[
        bool,
        option(
            "--feedback-required",
            is_flag=True,
            help="With --feedback: refuse competitions whose test set cannot be divided. By default they run without "
            "feedback.",
        ),
    ] = False
    overwrite: Annotated[
        bool,
        option(
            "--overwrite",
            is_flag=True,
            help="Replace runs of the group that were made under other conditions, such as another time limit. The "
            "evidence says so.",
        ),
    ] = False
    integrity: Annotated[
        bool,
        option("--integrity", is_flag=True, help="Examine code and logs of the runs for plagiarism and broken rules."),
    ] = False


@dataclass(frozen=True)
class IsolationOptions:
    """Options of isolation: where agents run and what they can reach."""

    TITLE: ClassVar[str] = "Isolation"
    allow_untrusted: Annotated[
        bool,
        option(
            "--allow-untrusted",
            is_flag=True,
            help="Run an untrusted agent without isolation. It can read this machine's files.",
        ),
    ] = False
    backend: Annotated[
        str,
        option(
            "--backend",
            type=click.Choice(backends.names()),
            show_default=True,
            help="Run agents as processes (trusted agents only), in containers, or isolated without an engine.",
        ),
    ] = "process"
    network: Annotated[
        Network,
        option(
            "--network",
            type=click.Choice(["none", "gateway", "allowlist", "open", "private"]),
            show_default=True,
            help="What isolated agents can reach besides the validation service: nothing, the LLM gateway, also "
            "the hosts of MLEBENCH_ALLOWED_HOSTS, all public addresses, or also private networks and this machine.",
        ),
    ] = "gateway"
    runtime: Annotated[
        str | None,
        option("--runtime", metavar="NAME", help="Container runtime: runc, sysbox-runc, runsc. Default: the engine's."),
    ] = None
    allow_privileged: Annotated[
        bool,
        option(
            "--allow-privileged",
            is_flag=True,
            help="Run an agent that requires a privileged container. It can take over this machine.",
        ),
    ] = False


@dataclass(frozen=True)
class PlacingOptions:
    """Options of placing: how many agents at the same time, and on which machines."""

    TITLE: ClassVar[str] = "Machines"
    agents: Annotated[
        int | None,
        option(
            "--agents",
            "--n-workers",
            type=whole(1),
            metavar="N",
            help="Agents at the same time on this machine. Default: MLEBENCH_AGENTS.",
        ),
    ] = None
    pool: Annotated[
        str | None,
        option(
            "--pool",
            metavar="NAME",
            help="Run the agents on the hosts of this work pool. Default: MLEBENCH_AGENT_POOL, or this machine.",
        ),
    ] = None
    priority: Annotated[
        Priority,
        option(
            "--priority",
            type=click.Choice(["high", "normal", "low"]),
            show_default=True,
            help="With a work pool: which group's agents come first where several wait.",
        ),
    ] = "normal"
    detach: Annotated[
        bool,
        option("--detach", is_flag=True, help="With a work pool: hand everything over to its hosts, return at once."),
    ] = False
