"""The instructions that an agent reads first."""

from __future__ import annotations

from pathlib import PurePath

from common.units import duration, size
from sandbox.backend import Allowance, RunSpec

TEXT = """\
You are taking part in a machine learning competition, on your own: nobody will answer questions or look at what you do.

COMPETITION
  {competition}
  The task, the data and the metric are described in {data}/description.md. Read it first.

DATA
  {data} (read-only)
  The training data have labels, the test data have none.{sample}

WHAT TO HAND IN
  {submission}/submission.csv
  One CSV file in the format of the description and the sample submission: the same columns, and one row for every row
  asked for. It is scored on the hidden labels of the test data with the competition's metric. Only the file that exists
  at the end counts; you may replace it as often as you like. Write a valid one early, and improve on it.

HOW TO CHECK IT
  {check}

YOUR OTHER FOLDERS
  {code}  the code that produced your submission: leave it there, it is kept
  {logs}  anything else that you want to keep
  {tmp}  scratch space; not kept

LIMITS
  {limits}
  When the time is over, all your processes get SIGTERM, and SIGKILL {grace} later. A submission that exists by then
  still counts.

RULES
  Make the predictions with models that you train or adapt here on the data given. Labelling the test data by hand,
  looking for its labels elsewhere, and submitting somebody else's solution as yours are not allowed.
"""

WITH_SERVICE = """\
sh {home}/validate_submission.sh {submission}/submission.csv
  says whether the file is valid, or what is wrong with it. It never says how good it is. {allowed}"""

WITHOUT_SERVICE = """\
Compare it with the sample submission: same columns, same ids, no empty cells, numbers where numbers are expected.
  A file that does not fit is worth nothing."""


def instructions(spec: RunSpec, home: PurePath) -> str:
    """The instructions for one run, with the paths as the agent sees them."""
    submission = home / "submission"
    check = WITHOUT_SERVICE
    if spec.validation_url:
        check = WITH_SERVICE.format(home=home, submission=submission, allowed=_validations(spec.allowance))
    return TEXT.format(
        competition=spec.competition_id if spec.description is None else "Which one it is does not matter here.",
        data=home / "data",
        sample=f"\n  A sample submission: {home / 'data' / spec.sample_submission}" if spec.sample_submission else "",
        submission=submission,
        code=home / "code",
        logs=home / "logs",
        tmp=home / "tmp",
        check=check,
        limits="\n  ".join(_limits(spec)),
        grace=duration(spec.limits.grace_seconds),
    )


def _limits(spec: RunSpec) -> list[str]:
    limits = spec.limits
    lines = [f"Time: {duration(limits.time_limit_seconds)} from now."]
    if limits.memory_bytes:
        lines.append(
            f"Memory: {size(limits.memory_bytes)} for all your processes together; the run ends when they take more."
        )
    if limits.disk_bytes:
        lines.append(f"Disk: {size(limits.disk_bytes)} besides the data; the run ends when you take more.")
    if limits.processes:
        lines.append(f"Processes: {limits.processes} at once.")
    if limits.cpus:
        lines.append(f"CPU cores: {limits.cpus}.")
    lines.append(f"A submission may have {size(limits.submission_bytes)}.")
    if spec.allowance.language_models:
        lines.append(_language_models(spec.allowance))
    return lines


def _validations(allowance: Allowance) -> str:
    if allowance.validation_calls is None:
        return "Ask as often as you need."
    at_once = f", {allowance.validation_calls_per_minute} a minute" if allowance.validation_calls_per_minute else ""
    return f"You may ask {allowance.validation_calls:,} times{at_once}."


def _language_models(allowance: Allowance) -> str:
    amounts = [
        f"{amount:,} {unit}"
        for amount, unit in (
            (allowance.llm_requests, "requests"),
            (allowance.llm_tokens, "tokens (input and output together)"),
            (allowance.llm_dollars, "US dollars"),
        )
        if amount is not None
    ]
    if not amounts:
        return "Language models: as many requests as you need."
    return f"Language models: at most {', '.join(amounts)} for the whole run; after that every request is refused."
