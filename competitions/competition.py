"""A competition: its folder, its facts, and the operations on it.

A folder is imported as a package of its own, so that its modules can import each other: `from .columns import TARGET`.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from importlib.machinery import FileFinder, ModuleSpec
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.concurrency import parallel_map
from common.errors import COMPETITION_PACKAGE, UserError, explained, invalid_yaml, one_line
from common.texts import read_text, typed_wrong
from competitions.editions import EDITIONS, Edition, text_of
from competitions.errors import BadCompetition
from competitions.facts import CompetitionFacts
from competitions.fingerprints import Closure, closure, digest, module_file, shown
from competitions.from_source import FromSource
from competitions.sharing import depends_on_edition

if TYPE_CHECKING:
    from competitions.preparing.declaration import Preparation
    from competitions.preparing.download import Download
    from competitions.scoring.reading import Reads

Part = Literal["prepare", "grade", "bundle"]
PARTS: tuple[Part, ...] = get_args(Part)
_NOT_CODE = {".md", ".yaml", ".pyc"}
_REQUIRED = ("competition.yaml", "description.md", "prepare.py", "grade.py")
_CACHED_ANSWERS: dict[tuple[str, str], tuple[tuple[int, ...], Any]] = {}
"""The parsed answers of the last calls of `Competition.grade`: global, because competitions are values."""
_MAX_CACHED_ANSWERS = 4
_MAX_CACHED_BYTES = 64 << 20  # of a file of answers
_MIN_PARALLEL_BYTES = 1 << 20  # of a file of answers that is read at the same time as the submission
_SETTLED_NANOSECONDS = 2_000_000_000  # after which a change of a file certainly changes its time stamp


class Competition(BaseModel):
    """A competition of the catalog, or of a user's own folder."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    folder: Path = Field(description="The directory with competition.yaml, prepare.py and grade.py.")
    facts: CompetitionFacts = Field(description="The content of competition.yaml.")
    published_format: ClassVar[bool] = False
    """Whether the folder has the format of the published benchmark, see `competitions.published_format`."""

    @classmethod
    def load(cls, folder: Path) -> Competition:
        """Load the competition in `folder`. Raises `BadCompetition` naming what is missing or invalid."""
        missing = [name for name in _REQUIRED if not (folder / name).is_file()]
        if missing:
            raise BadCompetition(f"{folder} is not a competition: {', '.join(missing)} missing")
        facts = facts_in(folder / "competition.yaml", CompetitionFacts.model_validate)
        if facts.id != folder.name:
            raise BadCompetition(f"{folder / 'competition.yaml'}: id {facts.id!r} differs from the folder's name")
        return cls(folder=folder, facts=facts)

    @property
    def id(self) -> str:
        """Kaggle's slug."""
        return self.facts.id

    @property
    def description(self) -> str:
        """The description for agents in edition v1; see `describe`."""
        return self.describe("v1")

    @property
    def obfuscated_description(self) -> str:
        """The obfuscated description in edition v1; see `describe`."""
        return self.describe("v1", obfuscated=True)

    def describe(self, edition: Edition, *, obfuscated: bool = False) -> str:
        """The description for agents, as Markdown. The file is read at each call, because a process may live for weeks.

        `obfuscated` selects the description without the competition's identity. Raises `UserError` if there is none.
        """
        path = self.folder / ("description_obfuscated.md" if obfuscated else "description.md")
        if obfuscated and not path.is_file():
            raise UserError(f"{self.id} has no obfuscated description: write {path}")
        return text_of(read_text(path), edition)

    @property
    def archive_md5(self) -> str | None:
        """MD5 of the published download, if competition.yaml has it."""
        return self.facts.checksums.download

    @property
    def archive_bytes(self) -> int | None:
        """Approximate size of the download, if competition.yaml has it."""
        return self.facts.size_bytes

    def params(self, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The parameters of `prepare`, with `overrides` applied. Raises `UserError` for an unknown name."""
        unknown = sorted(set(overrides or {}) - set(self.facts.params))
        if unknown:
            known_names = ", ".join(sorted(self.facts.params)) or "none"
            raise UserError(f"{self.id} has no parameter {', '.join(unknown)}; it has: {known_names}")
        return {**self.facts.params, **(overrides or {})}

    def files_of(self, edition: Edition) -> Edition:
        """The edition whose prepared files an edition has: v1 if `prepare` does not depend on the edition."""
        return edition if depends_on_edition(self.folder / "prepare.py") else EDITIONS[0]

    def fingerprint(self, part: Part = "prepare") -> str:
        """Hash of the code, the data files and the libraries that `part` depends on, as 16 hexadecimal digits.

        These are `part`.py, its imports from the folder and from this project, and the other files of the folder. Files
        that only other parts use are excluded, so that a changed grader does not cause a dataset to be prepared again.
        Descriptions are excluded for the same reason, and `competition.yaml`, whose values count where they are used.
        """
        used = self._closure(part)
        other_closures = [self._closure(other_part) for other_part in PARTS if other_part != part]
        unrelated = {path for other_closure in other_closures for path in other_closure.files} - used.files
        files = {
            path.relative_to(self.folder).as_posix(): path
            for path in self._files()
            if path not in unrelated and (path.suffix == ".py" or not self._of_others(path, used, other_closures))
        }
        files |= {self._shown(path): path for path in used.files if not path.is_relative_to(self.folder)}
        return digest(part, files, used.libraries)

    def grader_fingerprint(self, edition: Edition) -> str:
        """Hash of everything in the project that determines a score in an edition, as 16 hexadecimal digits.

        Besides what grade.py uses, these are the code that reads submissions and answers, the facts that say what is
        read, and, where the edition has a policy of submissions, its code and the columns that it requires.
        """
        modules = ["competitions.scoring.reading"]
        facts: dict[str, Any] = {"answers": self.facts.files.answers, "resampling": self.facts.resampling}
        if self._has_policy(edition):
            modules.append("competitions.policy")
            facts["submission"] = self.facts.submission
        closures = [closure(module_file(name)) for name in modules]
        files = {shown(path): path for used in closures for path in used.files}
        return digest(f"{self.fingerprint('grade')} {facts}", files, chain(*(used.libraries for used in closures)))

    def _of_others(self, path: Path, used: Closure, other_closures: Iterable[Closure]) -> bool:
        """Whether a data file is named in the code of other parts only."""
        return not used.names(path.name) and any(other_closure.names(path.name) for other_closure in other_closures)

    def _closure(self, part: Part) -> Closure:
        return closure(self.folder / f"{part}.py", self.folder)

    def _shown(self, path: Path) -> str:
        """The name of a file outside of the folder in a fingerprint."""
        return shown(path)

    def _files(self) -> list[Path]:
        """The files of the folder that code may use."""
        return [
            path
            for path in self.folder.rglob("*")
            if path.suffix not in _NOT_CODE
            and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(self.folder).parts)
            and path.is_file()
        ]

    def declare(self, raw: Download, edition: Edition = "v1", params: Mapping[str, Any] | None = None) -> Preparation:
        """Run prepare.py and return the prepared dataset as a declaration. Nothing is written.

        Raises `DownloadError` if an archive expands to more than the published one can; see `CompetitionFacts`.
        """
        self._check_edition(edition)
        if self.facts.most_bytes is not None:
            raw.limit(self.facts.most_bytes)
        preparation: Preparation = self.module("prepare").prepare(raw, edition=edition, params=self.params(params))
        return preparation

    def grade(self, submission: Path, prepared: Path, edition: Edition = "v1") -> float:
        """The unrounded score of the CSV `submission`, graded with the answers below the directory `prepared`.

        Raises `InvalidSubmission` with a message for the agent.
        """
        submission, prepared = Path(submission), Path(prepared)
        path = prepared / self.facts.files.answers
        if not path.is_file() or path.stat().st_size < _MIN_PARALLEL_BYTES:
            return self.score(submission, self._kept_answers(prepared), edition)
        # The answers come first: an error in them, which is not the agent's, is raised before one in the submission.
        reading = [partial(self._kept_answers, prepared), partial(self.read_submission, submission, edition)]
        answers, table = parallel_map(lambda reader: reader(), reading)
        return self.score_table(table, answers, edition)

    def answers(self, prepared: Path) -> Any:
        """The parsed answers below `prepared`, usually a data frame. Parsed once, they score many submissions."""
        from competitions.scoring.reading import read_answers

        reader = getattr(self.module("grade"), "read_answers", None)
        if reader:
            return reader(prepared)
        return read_answers(prepared / self.facts.files.answers, reads=self._reads)

    def _kept_answers(self, prepared: Path) -> Any:
        """The answers, parsed again only if their file differs from that of the last calls."""
        if hasattr(self.module("grade"), "read_answers"):  # it is not known which files that function reads
            return self.answers(prepared)
        path = prepared / self.facts.files.answers
        stat = path.stat()
        identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if stat.st_size > _MAX_CACHED_BYTES or time.time_ns() - stat.st_mtime_ns < _SETTLED_NANOSECONDS:
            return self.answers(prepared)
        entry = _CACHED_ANSWERS.pop(key := (self._package(), str(path)), None)
        if entry is None or entry[0] != identity:
            entry = identity, self.answers(prepared)
        _CACHED_ANSWERS[key] = entry  # most recently used last
        for oldest in list(_CACHED_ANSWERS)[:-_MAX_CACHED_ANSWERS]:
            _CACHED_ANSWERS.pop(oldest, None)
        return entry[1].copy(deep=False)

    @property
    def _reads(self) -> Reads:
        """What the grader reads, and the columns by which the test set is divided for resampling."""
        from competitions.scoring.reading import Reads

        reads: Reads = getattr(self.module("grade"), "READS", Reads())
        if reads.answers is None or (cut := self.facts.resampling) is None:
            return reads
        return replace(reads, answers=tuple(dict.fromkeys([*reads.answers, *filter(None, (cut.id, cut.column))])))

    def score(self, submission: Path, answers: Any, edition: Edition = "v1") -> float:
        """Like `grade`, with parsed answers."""
        return self.score_table(self.read_submission(submission, edition), answers, edition)

    def read_submission(self, submission: Path, edition: Edition = "v1") -> Any:
        """The parsed CSV `submission`, usually a data frame. Raises `InvalidSubmission` if it cannot be parsed.

        Columns may be left out that do not count in `edition`.
        """
        from competitions.scoring.reading import read_submission

        reader = getattr(self.module("grade"), "read_submission", None)
        if reader:
            return reader(submission)
        return read_submission(submission, reads=self._reads, edition=edition)

    def score_table(self, submission: Any, answers: Any, edition: Edition = "v1") -> float:
        """The unrounded score of a submission read by `read_submission`. Raises `InvalidSubmission`."""
        self._check_policy(submission, answers, edition)
        return float(self.module("grade").grade(submission, answers, edition))

    def check_table(self, submission: Any, answers: Any, edition: Edition = "v1") -> None:
        """Raise `InvalidSubmission` if a submission read by `read_submission` is not valid, whatever the answers.

        Only the public part of the answers, such as the ids, may decide. If scoring depends on more, grade.py has a
        function `check` that is at least as strict; otherwise the submission is scored.
        """
        self._check_policy(submission, answers, edition)
        module = self.module("grade")
        getattr(module, "check", module.grade)(submission, answers, edition)

    def load_grader(self) -> None:
        """Import everything that grading needs, so that processes forked afterwards share it."""
        import numpy.rec  # noqa: F401  # NumPy imports it for pandas' first frame

        import competitions.policy
        import competitions.scoring.reading  # noqa: F401

        self.module("grade")

    def bundle(self) -> bytes:
        """Create the download archive of a competition whose source is `bundled` with its bundle.py."""
        if not (self.folder / "bundle.py").is_file():
            raise BadCompetition(f"{self.id} has source 'bundled' but no bundle.py")
        archive: bytes = self.module("bundle").bundle()
        return archive

    def function(self, name: str) -> Any:
        """The function `name` of prepare.py. Workers call such functions to create derived files."""
        return getattr(self.module("prepare"), name)

    def module(self, name: str) -> ModuleType:
        """The module `name`.py of the folder, for example "prepare". Raises `BadCompetition` for a syntax error."""
        try:
            return self._imported(name)
        except SyntaxError as error:  # its own text does not name the folder, and does not reach another process
            where = error.filename or self.folder / f"{name}.py"
            line = f", line {error.lineno}" if error.lineno else ""
            raise BadCompetition(f"{where}{line}: {error.msg}") from error

    def _imported(self, name: str) -> ModuleType:
        return importlib.import_module(f"{self._package()}.{name}")

    def _package(self) -> str:
        """The name under which the folder is imported as a package. The first call creates the package.

        The name contains a hash of the path, so that two folders never collide, even if they have the same id or the
        same file names. An id does not have to be a Python identifier. `sys.modules` is global, as for every import.
        """
        stat = self.folder.stat()
        folder = _real_path(str(self.folder), stat.st_dev, stat.st_ino)
        digits = hashlib.blake2b(folder.encode(), digest_size=6).hexdigest()
        name = f"{COMPETITION_PACKAGE}{self.id.replace('-', '_')}_{digits}"
        if name not in sys.modules:
            package = ModuleType(name, doc=f"The folder {folder}.")
            package.__path__ = [folder]
            package.__spec__ = ModuleSpec(name, loader=None, is_package=True)
            package.__spec__.submodule_search_locations = package.__path__
            sys.path_importer_cache[folder] = FileFinder(folder, (FromSource, [".py"]))
            sys.modules.setdefault(name, package)
        return name

    def _check_policy(self, submission: Any, answers: Any, edition: Edition) -> None:
        self._check_edition(edition)
        if self._has_policy(edition):
            from competitions.policy import require_policy

            require_policy(submission, self.facts.submission, answers)

    def _has_policy(self, edition: Edition) -> bool:
        """Whether submissions are checked before the grader sees them."""
        return edition != "v1" and bool(self.facts.submission)

    def _check_edition(self, edition: str) -> None:
        if edition not in EDITIONS:
            raise UserError(f"unknown edition {edition!r}; editions are {', '.join(EDITIONS)}")


def facts_in(path: Path, facts_of: Callable[[Any], CompetitionFacts]) -> CompetitionFacts:
    """The facts that `facts_of` makes of the content of a YAML file. Raises `BadCompetition` naming what is invalid."""
    import yaml

    try:
        # The C loader is ten times faster, but not part of every build of PyYAML.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        text = read_text(path)
        return facts_of(yaml.load(text, Loader=loader))  # noqa: S506
    except yaml.YAMLError as error:
        raise BadCompetition(f"{path} is {invalid_yaml(error)}{typed_wrong(text)}") from error
    except ValidationError as error:
        raise BadCompetition(f"{path}: {explained(error)}") from error
    except RecursionError as error:
        raise BadCompetition(f"{path} is nested too deeply") from error
    except UserError as error:  # no text
        raise BadCompetition(str(error)) from error
    except (ValueError, TypeError) as error:  # a date that does not exist
        raise BadCompetition(f"{path} is not valid: {one_line(error)}") from error


@lru_cache(maxsize=1024)
def _real_path(folder: str, _device: int, _inode: int) -> str:
    """The path without links. It is needed several times for each submission."""
    return os.path.realpath(folder)
