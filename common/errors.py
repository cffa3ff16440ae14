"""Errors that a user can fix, and helpers for their messages. Each message is one line that says what to do.

The tree below has all of them, with the modules that define them. An error has a class of its own if some code handles
it separately. For the other errors, `kind` says what a caller can do about them.

    UserError                             common.errors
        Cancelled                         common.errors
        UsageError                        common.errors
            UnknownCompetition            competitions.errors
            UnknownSplit                  competitions.errors
            UnknownAgent                  sandbox.errors
        BadCompetition                    competitions.errors
        DownloadError                     competitions.errors
            NotAZip                       competitions.preparing.archives.zips
            KaggleError                   storage.sources.kaggle.errors
                NoAccess                  storage.sources.kaggle.errors
                    RulesNotAccepted      storage.sources.kaggle.errors
                NoCredentials             storage.sources.kaggle.errors
                    RejectedCredentials   storage.sources.kaggle.errors
                NotFound                  storage.sources.kaggle.errors
                Unreachable               storage.sources.kaggle.errors
            NotAZip                       competitions.preparing.archives.zips
            Unavailable                   competitions.errors
        ClusterError                      storage.datasets.cluster
        ChecksumMismatch                  storage.datasets.verify
        LeaseLost                         storage.lease
        RecordError                       storage.runs.records
        StoreError                        storage.writers
            InvalidJson                   storage.store
        AgentError                        sandbox.errors
        BackendError                      sandbox.errors
            EngineUnreachable             sandbox.docker.engine
            BackendClosed                 sandbox.errors
            BuildError                    sandbox.errors
            RunLost                       sandbox.errors
            UntrustedAgentRefused         sandbox.errors
        ModelError                        tasks.language_model
        NoSlot                            training.episodes
        TooFewUnits                       competitions.variants.units
        Underivable                       competitions.variants.units
        DivisionFailed                    tasks.wiring.feedback
        HandedOver                        tasks.wiring.job
        PartlyFailed                      flows.watching.outcome

These are caught in the package that raises them, and do not reach a user:

    NotRegular                            common.trees
    ShortAnswer                           competitions.preparing.archives.reading
    InvalidSubmission                     competitions.scoring.errors
    ScoreNote                             competitions.scoring.notes
    UnsupportedCsv                        competitions.tables.csv_blocks
    Uncuttable                            grading.workers.cutting
    Unreadable                            grading.integrity.examiner
    NoAnswer                              grading.integrity.questions
    Skipped                               grading.competition_checks.subject
    SourceChanged                         storage.sources.source
    Unanswered                            storage.unanswered
    OverBudget                            sandbox.gateway.budget
    Refused                               sandbox.gateway.content
    UpstreamError                         sandbox.gateway.relay
    RequestRejected                       sandbox.gateway.request
    MemoryLimitReached                    sandbox.gateway.limits
    BadUpload                             sandbox.validation.upload
        TooLarge                          sandbox.validation.upload
    Unusable                              sandbox.rootless.unpacking
    CheckpointStopped                     sandbox.world.checkpoint
    NoSuchFile                            training.sandboxes
    Rejected                              training.sessions
    ServiceError                          deployments.background
    DifferentResult                       benchmarks.measure
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Literal, Self

from common.terminal import clean

if TYPE_CHECKING:
    from pydantic import ValidationError

Kind = Literal[
    "network",
    "dns",
    "store",
    "prefect",
    "scheduler",
    "engine",
    "limits",
    "tls",
    "disk full",
    "refused",
    "clock",
    "missing",
    "user input",
    "damaged data",
    "memory",
    "bug",
]
"""The kinds of errors, each of which has a row in `common.causes`."""


class UserError(Exception):
    """An error that the user can fix. The command line shows its message as one line, without a traceback.

    `kind` names its row in the table of causes (`common.causes`). Subclasses override it, and `of_kind` sets it for one
    error. None: the kind of the error that it was raised from, or "user input".

    Messages can quote foreign text, and are shown by terminals, logs and the Prefect UI. Characters that move a cursor
    or reverse a text are therefore shown as escape sequences.
    """

    kind: Kind | None = None

    def __str__(self) -> str:
        return clean(super().__str__())

    def of_kind(self, kind: Kind) -> Self:
        """The error itself, with another kind, which it keeps when it is sent between processes."""
        self.kind = kind
        return self


class UsageError(UserError):
    """A call that can never work: a name that does not exist, or options that exclude each other. Exit code 2."""


class Cancelled(UserError):
    """Somebody has cancelled the work, which is no failure."""


def close_matches(wanted: str, known: Iterable[str]) -> str:
    """`` Did you mean a, b?`` for the names most like `wanted`, or an empty string if none is near.

    >>> close_matches("leaf-clasification", ["leaf-classification", "dogs"])
    ' Did you mean leaf-classification?'
    >>> close_matches("titanic", ["spaceship-titanic"]), close_matches("nobody", ["notify", "body-shapes"])
    (' Did you mean spaceship-titanic?', '')
    """
    names = sorted(set(known))
    matches = difflib.get_close_matches(wanted, names, n=3, cutoff=0.65)
    matches += [name for name in names if len(wanted) > 3 and wanted in name and name not in matches][:3]
    return f" Did you mean {', '.join(matches)}?" if matches else ""


COMPETITION_PACKAGE = "competition_"
"""How the names of packages begin that are made of competitions' folders; see `competitions.competition`."""
_CODE_OF_COMPETITIONS = (COMPETITION_PACKAGE, "mlebench.competitions.")


_LINE = "line_of_competition"


def keep_line(error: BaseException) -> None:
    """Note what `line_of` says in the exception itself, which another process gets without the traceback."""
    setattr(error, _LINE, line_of(error))


def line_of(error: BaseException) -> str | None:
    """Where code of a competition's folder raised an exception: "digits/grade.py, line 12". None if none of it did."""
    found = getattr(error, _LINE, None)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).startswith(_CODE_OF_COMPETITIONS):
            path = Path(frame.f_code.co_filename)
            found = f"{path.parent.name}/{path.name}, line {line}"
    return found


def one_line(error: Exception) -> str:
    r"""A validation error's text folded to one line.

    >>> one_line(ValueError("a\n  b"))
    'a b'
    """
    return re.sub(r"\s+", " ", str(error)).strip()


_TYPES = {
    "a text": ("string_type", "string_unicode"),
    "a whole number": ("int_type", "int_parsing", "int_from_float", "int_parsing_size"),
    "a number": ("float_type", "float_parsing"),
    "a finite number": ("finite_number",),
    "true or false": ("bool_type", "bool_parsing"),
    "a list": ("list_type", "tuple_type", "set_type"),
    "a table": ("dict_type", "model_type", "model_attributes_type", "dataclass_type"),
    "a time": ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
    "a date, such as 2026-02-15": ("date_type", "date_parsing", "date_from_datetime_parsing"),
    "given": ("missing",),
    "{expected}": ("literal_error", "enum"),
    "at least {ge}": ("greater_than_equal",),
    "more than {gt}": ("greater_than",),
    "at most {le}": ("less_than_equal",),
    "less than {lt}": ("less_than",),
    "of the form {pattern}": ("string_pattern_mismatch",),
    "of at least {min_length} entries": ("too_short",),
    "of at least {min_length} characters": ("string_too_short",),
    "of at most {max_length} characters": ("string_too_long",),
}
_EXPECTED = {name: f"must be {what}" for what, names in _TYPES.items() for name in names}
"""What pydantic's kinds of errors mean, without its words for types."""
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxstring = 2, 200


def explained(error: ValidationError) -> str:
    """The errors in the fields of a file, in one line, without pydantic's words."""
    return "; ".join(_message(item) for item in error.errors()[:10])


def expected(item: Any) -> str:
    """What pydantic expected in one place, in plain words; `item` is one of an error's `errors()`."""
    return _EXPECTED.get(item["type"], "").format(**item.get("ctx", {})) or item["msg"].removeprefix("Value error, ")


def _message(item: Any) -> str:
    location = ".".join(str(part)[:100] for part in item["loc"])
    if item["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{location}: unknown field"
    if item["type"] == "missing":
        return f"{location}: missing"
    text = expected(item)
    return f"{location}: {text} (it is {_SHORT.repr(item['input'])})" if location else str(text)


def invalid_yaml(error: Exception) -> str:
    """Why a text is not YAML, with the line."""
    mark = getattr(error, "problem_mark", None)
    location = f" (line {mark.line + 1})" if mark else ""
    return f"not valid YAML{location}: {getattr(error, 'problem', None) or str(error).splitlines()[0]}"
