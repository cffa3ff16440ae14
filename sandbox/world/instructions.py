"""The instructions that an agent reads first."""

from __future__ import annotations

from pathlib import PurePath

from common.units import counted, duration, size
from sandbox.backend import Allowance, PublicScores, RunSpec, ScorerTexts

TEXT = """\
You are taking part in a machine learning competition. You work alone: nobody will answer questions or watch your work.

COMPETITION
  {competition}
  The task, the data and the metric are described in {data}/description.md. Read it first.

DATA
  {data} (read-only)
  The training data have labels, the test data have none.{sample}

SUBMISSION
  {submission}/submission.csv
  One CSV file in the format of the description and the sample submission, with the same columns and all required rows.
  It is scored on the hidden labels of the test data with the competition's metric. Only the file that exists at the end
  counts; you may replace it as often as you like. Write a valid submission early, and then improve it.

VALIDATION
  {check}
{scorer}{public_scores}
YOUR OTHER FOLDERS
  {code}  the code that produced your submission; it is kept, so leave it there
  {logs}  other files that you want to keep
  {tmp}  scratch space; not kept

LIMITS
  {limits}
  At the time limit, all your processes get SIGTERM, and SIGKILL {grace} later. A submission that exists then still
  counts.

RULES
  Make the predictions with models that you train or adapt here on the given data. You must not label the test data by
  hand, look for its labels elsewhere, or submit somebody else's solution as your own.
"""

WITH_SERVICE = """\
sh {home}/validate_submission.sh {submission}/submission.csv
  reports whether the file is valid, or what is wrong with it. It never reports a score. {allowed}"""

SCORER = """
SCORING YOUR OWN PREDICTIONS
  sh {home}/score.sh PREDICTIONS TRUTH
  prints the competition's metric ({metric}) on your own predictions, in the format of the submission, and your
  own truth of the same rows, such as training rows that you have held out. It knows nothing of the test data. {allowed}
  {example} is an example of TRUTH, with invented values.
  sh {home}/score.sh --help says how TRUTH looks.
"""

SCORE_HELP = """\
sh score.sh PREDICTIONS TRUTH

Prints the competition's metric: {metric}.

PREDICTIONS  A CSV file in the format of the submission, with predictions for rows of your choice.
TRUTH        The truth of the same rows, such as training rows that you have held out.

{truth}

{example} is an example of TRUTH. Its values are invented: they say nothing about the test data.
Each file has at most 1 GiB, or as much as a submission may have if that is less.
Messages count rows from 1, without the header.
Exit code: 0 scored, 1 a file is wrong, 2 not scored, because the service is not available or was asked too often.
In Python: a POST of a form with the files predictions and truth to {url} answers {{"score": ...}}.
"""

PUBLIC_SCORES = """
PUBLIC SCORES
  sh {home}/public_score.sh FILE
  asks for the score of a file in the format of the submission on the public part of the test data, {share} of it, and
  prints the best score so far ({metric}). You can ask for {calls} within 24 hours. Improvements that may be
  noise are not told. sh {home}/public_score.sh --help says more.
  Your result is the score on the rest of the test data, the private part, which nobody tells you. It is that of
  {submission}/submission.csv, unless you choose others in {submission}/final.txt: one or two lines, each the number of
  a file that has a public score, or submission.csv. Of two, the one with the better result counts.
"""

PUBLIC_SCORE_HELP = """\
sh public_score.sh FILE

Prints the best score of your files so far on the public part of the test data, {share} of it, as JSON:
  submission  the number of FILE, by which final.txt can name it; FILE is kept, so you may change or remove it
  best        the best score so far, rounded to its noise; the metric is {metric}
  improved    whether FILE is better than all files before by more than the noise of the score
  calls_left  how often you can ask now; {calls} within 24 hours are allowed

FILE has the format of the submission. A file that is not valid is not counted.
Exit code: 0 scored, 1 the file is wrong, 2 not scored, because the service is not available or was asked too often.
In Python: a POST of a form with the file as "file" to {url} answers the same.
"""

WITHOUT_SERVICE = """\
Compare it with the sample submission: same columns, same ids, no empty cells, numbers where numbers are expected.
  A file in the wrong format gets no score."""


def instructions(spec: RunSpec, home: PurePath) -> str:
    """The instructions for one run, with paths as the agent sees them."""
    submission = home / "submission"
    check = WITHOUT_SERVICE
    if spec.validation_url:
        allowed = _calls(spec.allowance.validation_calls, spec.allowance.validation_calls_per_minute)
        check = WITH_SERVICE.format(home=home, submission=submission, allowed=allowed)
    return TEXT.format(
        competition="Its name is not disclosed." if spec.obfuscated else spec.competition_id,
        data=home / "data",
        sample=f"\n  A sample submission: {home / 'data' / spec.sample_submission}" if spec.sample_submission else "",
        submission=submission,
        code=home / "code",
        logs=home / "logs",
        tmp=home / "tmp",
        check=check,
        scorer=_scorer(spec, home),
        public_scores=_public_scores(spec, home),
        limits="\n  ".join(_limits(spec)),
        grace=duration(spec.limits.grace_seconds),
    )


def _limits(spec: RunSpec) -> list[str]:
    limits = spec.limits
    lines = [f"Time: {duration(limits.time_limit_seconds)} from now."]
    if spec.resume is not None:
        lines.insert(
            0, "This run was interrupted and continues. Your files are as they were; the limits are what remains."
        )
    if limits.memory_bytes:
        lines.append(
            f"Memory: {size(limits.memory_bytes)} for all your processes together; the run ends if they use more."
        )
    if limits.disk_bytes:
        lines.append(f"Disk: {size(limits.disk_bytes)} in addition to the data; the run ends if you use more.")
    if limits.processes:
        lines.append(f"Processes: {limits.processes} at once.")
    if limits.cpus:
        lines.append(f"CPU cores: {limits.cpus}.")
    lines.append(f"Submission: at most {size(limits.submission_bytes)}.")
    if spec.allowance.language_models:
        lines.append(_language_models(spec.allowance))
    return lines


def score_help(texts: ScorerTexts, url: str) -> str:
    """What `score.sh --help` prints."""
    return SCORE_HELP.format(metric=texts.metric, truth=texts.truth, example=texts.example_name, url=url)


def _scorer(spec: RunSpec, home: PurePath) -> str:
    if spec.scorer is None or not spec.scorer_url:
        return ""
    allowed = _calls(spec.allowance.scorer_calls, spec.allowance.scorer_calls_per_minute)
    example = home / spec.scorer.example_name
    return SCORER.format(home=home, metric=spec.scorer.metric, allowed=allowed, example=example)


def public_score_help(told: PublicScores, url: str) -> str:
    """What `public_score.sh --help` prints."""
    return PUBLIC_SCORE_HELP.format(url=url, **_told(told))


def _public_scores(spec: RunSpec, home: PurePath) -> str:
    if spec.public_scores is None or not spec.public_score_url:
        return ""
    return PUBLIC_SCORES.format(home=home, submission=home / "submission", **_told(spec.public_scores))


def _told(told: PublicScores) -> dict[str, str]:
    return {"metric": told.metric, "share": f"{100 * told.share:g} %", "calls": counted(told.calls_per_day, "score")}


def _calls(number: int | None, per_minute: int | None) -> str:
    if number is None:
        return "You can use it as often as you need."
    at_once = f", at most {per_minute} times per minute" if per_minute else ""
    return f"You can use it {number:,} times{at_once}."


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
