"""Simulate the full benchmark on machines that you describe: how long it takes and what it costs.

Nothing is executed, except with --validate: it measures the costs of the stages on the demo split, predicts other runs
of it, makes them, and prints the errors of the predictions. The exit code is 1 if one is above 20 %.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.simulation.costs import UNKNOWN_BYTES, Costs, Job, jobs
from benchmarks.simulation.pipeline import Scenario, shares
from benchmarks.simulation.results import Result, frame, markdown, results
from competitions import registry

_GIGABIT = 125e6  # bytes a second


def main(arguments: list[str] | None = None) -> int:
    """Print the table of scenarios, or validate."""
    options = _parser().parse_args(arguments)
    if options.validate:
        return _validate(options)
    costs = Costs.read(options.costs) if options.costs else Costs()
    found = scenarios(costs, options)
    print(markdown(found))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        frame(found).to_parquet(options.out, index=False)
    if options.svg:
        from benchmarks.simulation.picture import picture

        options.svg.write_text(picture(found))
    if options.lists:
        _write_lists(options.lists, jobs(options.split, costs, options.unknown_gb * 1e9), options.machines[0])
    return 0


def _write_lists(folder: Path, all_jobs: list[Job], machines: int) -> None:
    """Write the competitions of each machine, for `mlebench run --list`."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, share in enumerate(shares(all_jobs, machines), 1):
        (folder / f"machine-{number:02}.txt").write_text("".join(f"{job.name}\n" for job in share))


def scenarios(costs: Costs, options: argparse.Namespace) -> list[Result]:
    """One scenario for each number of machines and each link."""
    first = Scenario(
        cores=options.cores,
        agents=options.gpus // options.gpus_per_agent if options.gpus else options.agents,
        downloads=options.downloads,
        preparations=options.preparations,
        connection=options.connection_mb * 1e6,
        disk=options.disk_mb * 1e6,
        store=options.store_gbit * _GIGABIT,
        seeds=options.seeds,
        agent_seconds=options.hours * 3600,
        prepared=options.prepared,
        together=options.together,
        pool=options.pool,
        machine_hour=options.machine_hour,
        run_dollars=options.run_dollars,
    )
    chosen = [
        replace(first, machines=machines, uplink=uplink * _GIGABIT)
        for uplink in options.uplink_gbit
        for machines in options.machines
    ]
    return results(jobs(options.split, costs, options.unknown_gb * 1e9), costs, chosen)


def _validate(options: argparse.Namespace) -> int:
    from benchmarks.simulation.validation import TARGET, comparisons, measure_all

    quickest = measure_all(options.agent_seconds, options.rounds, lambda line: print(line, flush=True))
    costs, found = comparisons(quickest)
    if options.costs:
        costs.write(options.costs)
    for each in found:
        print(each.line)
    worst = max(abs(each.error) for each in found)
    print(f"largest error {worst:.1%}, target {TARGET:.0%}")
    return 0 if worst <= TARGET else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulate",
        description=__doc__,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=110, max_help_position=30),
    )
    add = parser.add_argument
    add(
        "--machines",
        type=_positive,
        nargs="+",
        default=[1, 2, 4, 8, 15, 38],
        help="numbers of machines (default: 1 2 4 8 15 38)",
    )
    add(
        "--uplink-gbit",
        type=float,
        nargs="+",
        default=[1.0, 10.0],
        help="internet links in Gbit/s, shared by all machines (default: 1 10)",
    )
    add("--split", choices=registry.SPLITS, default="all", help="competitions to run (default: all)")
    add("--seeds", type=_positive, default=3, help="runs of each competition (default: 3)")
    add("--hours", type=float, default=24.0, help="duration of a run in hours (default: 24)")
    add("--cores", type=_positive, default=64, help="CPU cores of a machine (default: 64)")
    add("--agents", type=_positive, default=8, help="concurrent agents on a machine (default: 8)")
    add("--gpus", type=_positive, help="GPUs of a machine; sets the number of concurrent agents instead of --agents")
    add("--gpus-per-agent", type=_positive, default=1, help="GPUs of one agent, with --gpus (default: 1)")
    add("--downloads", type=_positive, default=2, help="concurrent downloads on a machine (default: 2)")
    add("--preparations", type=_positive, default=4, help="concurrent splits on a machine (default: 4)")
    add("--connection-mb", type=float, default=50.0, help="maximum MB/s of one download (default: 50)")
    add(
        "--disk-mb",
        type=float,
        default=1000.0,
        help="MB/s of a machine's disk, reads and writes together (default: 1000)",
    )
    add("--store-gbit", type=float, default=10.0, help="a machine's link to the object store in Gbit/s (default: 10)")
    add(
        "--unknown-gb",
        type=float,
        default=UNKNOWN_BYTES / 1e9,
        help="assumed size in GB of a download of unknown size (default: 30)",
    )
    add("--prepared", action="store_true", help="assume that all competitions are already prepared")
    add(
        "--together",
        action="store_true",
        help="start agents as soon as their competition is prepared; the real flow prepares all first",
    )
    add("--pool", action="store_true", help="the machines are the hosts of a work pool, see docs/fleet.md")
    add("--machine-hour", type=float, default=20.0, help="price of a machine in US dollars per hour (default: 20)")
    add(
        "--run-dollars",
        type=float,
        default=10.0,
        help="price of a run's language model calls in US dollars (default: 10)",
    )
    add("--costs", type=Path, help="JSON file of costs per stage to read; written by --validate")
    add("--out", type=Path, help="write the table as Parquet")
    add("--svg", type=Path, help="write a chart as SVG")
    add(
        "--lists",
        type=Path,
        help="write the competitions of each machine to this directory, for the first of --machines",
    )
    add("--validate", action="store_true", help="measure stage costs, then compare predictions with measured runs")
    add("--agent-seconds", type=_positive, default=30, help="duration of an agent with --validate (default: 30)")
    add(
        "--rounds",
        type=_positive,
        default=2,
        help="rounds of measurements with --validate; the quickest runs count (default: 2)",
    )
    return parser


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


if __name__ == "__main__":
    sys.exit(main())
