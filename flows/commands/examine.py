"""mlebench examine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import click

from common.errors import UserError
from flows.commands.answers import takes_json
from flows.commands.examine_contamination import ContaminationOptions, examine_contamination
from flows.commands.examine_plagiarism import PlagiarismOptions, examine_plagiarism
from flows.commands.examine_split_noise import SplitNoiseOptions, examine_split_noise
from flows.commands.examine_violations import ViolationOptions, examine_violations
from flows.commands.external import Examined, read_external
from flows.commands.failures import Failures
from flows.commands.options import GroupedCommand, StoreOptions, option, takes
from flows.commands.refresh import refresh_report
from flows.commands.types import RUN_GROUP

KINDS = ("plagiarism", "violations", "contamination", "split-noise")
_OF_OTHERS = KINDS[:2]
"""What can be examined in results of another system."""


@dataclass(frozen=True)
class CheckOptions:
    """What is examined."""

    TITLE: ClassVar[str] = "Selection of checks"
    only: Annotated[
        tuple[str, ...],
        option("--only", multiple=True, type=click.Choice(KINDS), help="Only this check; repeatable."),
    ] = ()
    submission: Annotated[
        Path | None,
        option(
            "--submission",
            type=click.Path(path_type=Path),
            help="Instead of a run group: JSONL file of another system's results, with competition_id, "
            "submission_path, code_path and logs_path on each line. Only for plagiarism and violations.",
        ),
    ] = None
    output_dir: Annotated[
        Path | None,
        option(
            "--output-dir",
            type=click.Path(file_okay=False, path_type=Path),
            help="Also write plagiarism.csv, violations.csv and shares.csv, the share of runs with each finding, into "
            "this folder.",
        ),
    ] = None


@click.command("examine", cls=GroupedCommand)
@click.argument("run_group", type=RUN_GROUP, required=False)
@takes(
    checks=CheckOptions,
    plagiarism=PlagiarismOptions,
    violations=ViolationOptions,
    contamination=ContaminationOptions,
    split_noise=SplitNoiseOptions,
    storage=StoreOptions,
)
@takes_json
def command(
    run_group: str | None,
    checks: CheckOptions,
    plagiarism: PlagiarismOptions,
    violations: ViolationOptions,
    contamination: ContaminationOptions,
    split_noise: SplitNoiseOptions,
    storage: StoreOptions,
) -> int:
    """Examine the runs of RUN_GROUP. The results are written to the tables and to the report of the group.

    plagiarism: compares the code with public notebooks (`mlebench kernels`) and with other agents' runs. Prints pairs
    that are 60 % similar or more, which the report shows side by side.

    violations: searches code and logs for broken rules with static detectors, and with the language model of
    MLEBENCH_INTEGRITY_MODEL if it is set. The findings are for a person to judge; each quotes the line that it is based
    on. Exit code 1 if the model did not answer about a part; the same command asks again about the runs with such
    parts.

    contamination: measures how familiar a language model is with the competitions, and whether scores correlate with
    that. It is left out unless --model or MLEBENCH_FAMILIARITY_MODEL names the model. Familiarity is the mean
    probability that it assigns to the tokens of a competition's description and discussions. The provider's completions
    endpoint must support `echo` with `logprobs`, as vLLM does.

    split-noise: measures how much scores and medals depend on which rows are in the test set. Each valid submission is
    scored on random halves of its test set.
    """
    if (run_group is None) == (checks.submission is None):
        raise click.UsageError("name a run group, or a file with --submission")
    if checks.submission and (other := set(checks.only) - set(_OF_OTHERS)):
        raise click.UsageError(f"--submission is for {' and '.join(_OF_OTHERS)}, not for {min(other)}")
    examinations: dict[str, Callable[[Examined], int]] = {
        "plagiarism": lambda examined: examine_plagiarism(examined, plagiarism, checks.output_dir),
        "violations": lambda examined: examine_violations(examined, violations, checks.output_dir),
        "contamination": lambda examined: examine_contamination(examined, contamination),
        "split-noise": lambda examined: examine_split_noise(examined, split_noise),
    }
    kinds = [kind for kind in KINDS if kind in checks.only] or list(_OF_OTHERS if checks.submission else KINDS)
    if not checks.only and contamination.chosen_model() is None:
        kinds = [kind for kind in kinds if kind != "contamination"]
    if "contamination" in kinds:
        contamination.require_model()
    failures, code = Failures(), 0
    with _examined(run_group, checks.submission, storage) as examined:
        for kind in kinds:
            try:
                code = max(code, examinations[kind](examined))
            except UserError as error:
                if len(kinds) == 1:
                    raise
                failures.tell(kind, error)
        if run_group is not None and failures.count < len(kinds):
            refresh_report(examined.store, run_group)
    return max(code, 1 if failures.count else 0)


@contextlib.contextmanager
def _examined(run_group: str | None, submission: Path | None, storage: StoreOptions) -> Iterator[Examined]:
    if run_group is not None:
        store = storage.open_usable()
        yield Examined(store, run_group, store)
        return
    from tasks.external import GROUP, external_runs

    assert submission is not None
    with external_runs(read_external(submission)) as store:
        yield Examined(store, GROUP, storage.open(new=True))
