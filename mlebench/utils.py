"""Helpers that programs and folders in the published format import."""

from __future__ import annotations

import gzip
import logging
import shutil
import tarfile
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.plain_json import parse_json
from common.texts import read_text

if TYPE_CHECKING:
    import pandas as pd

    Frame = pd.DataFrame

StrPath = str | Path
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z")
_LOG_FORMAT = "[%(asctime)s] [%(filename)s:%(lineno)d] %(message)s"


def get_logger(name: str, level: int = logging.INFO, filename: StrPath | None = None) -> logging.Logger:
    """The logger `name`, which writes to standard error, or to the end of the file `filename`.

    Further calls for a name set its level and add no second handler to the same place.
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    place = f"mlebench: {Path(filename).resolve() if filename else 'stderr'}"
    if not any(handler.name == place for handler in logger.handlers):
        handler = logging.FileHandler(filename, encoding="utf-8") if filename else logging.StreamHandler()
        handler.name = place
        handler.setFormatter(logging.Formatter(_LOG_FORMAT))
        logger.addHandler(handler)
    return logger


def get_timestamp() -> str:
    """The local time as `2026-01-31T12-00-00-UTC`, which may be part of a file's name."""
    return time.strftime("%Y-%m-%dT%H-%M-%S-%Z")


def read_jsonl(file_path: StrPath, skip_commented_out_lines: bool = False) -> list[Any]:
    """The JSON values of the lines of a file, without blank lines.

    Args:
        file_path: the file.
        skip_commented_out_lines: leave out lines that begin with `#` or `//`.

    Raises:
        ValueError: a line is not JSON; it names the line.
    """
    return [value for _, value in numbered_jsonl(file_path, skip_commented_out_lines)]


def numbered_jsonl(file_path: StrPath, skip_commented_out_lines: bool = False) -> Iterator[tuple[int, Any]]:
    """The values that `read_jsonl` gives, with the numbers of their lines."""
    for number, line in enumerate(read_text(Path(file_path)).split("\n"), 1):
        text = line.strip()
        if not text or (skip_commented_out_lines and text.startswith(("#", "//"))):
            continue
        try:
            yield number, parse_json(text)
        except ValueError as error:
            raise ValueError(f"{file_path}, line {number} is not JSON: {error}") from error


def load_yaml(fpath: StrPath) -> Any:
    """The content of a YAML file; of the plain types only."""
    import yaml

    return yaml.safe_load(read_text(Path(fpath)))


def read_csv(*args: Any, **kwargs: Any) -> Frame:
    """The frame that `pandas.read_csv` gives with exact floats; an empty file gives a frame without columns."""
    import pandas as pd

    try:
        frame: Frame = pd.read_csv(*args, **{"float_precision": "round_trip", **kwargs})
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    return frame


def load_answers(path_to_answers: StrPath) -> Any:
    """The answers of a competition: a frame of a CSV file, a list of dictionaries of JSON lines."""
    suffix = Path(path_to_answers).suffix.lower()
    if suffix == ".csv":
        return read_csv(path_to_answers)
    if suffix == ".jsonl":
        return read_jsonl(path_to_answers, skip_commented_out_lines=True)
    raise ValueError(f"{path_to_answers}: answers are a .csv or a .jsonl file")


def is_empty(dir: StrPath) -> bool:
    """Whether a directory has no entries. Raises `NotADirectoryError` if it is none."""
    return next(Path(dir).iterdir(), None) is None


def extract(src: StrPath, dst: StrPath, recursive: bool = False) -> None:
    """Unpack the archive `src` (zip, tar, 7z, or one file in gzip) into the directory `dst`.

    A member that would be written outside of `dst` is refused or written inside. With `recursive`, archives in it are
    unpacked beside themselves, into folders of their names without suffix, or with a number behind if a file has that
    name. A file that is no archive, whatever its name, stays as it is.
    """
    source, target = Path(src), Path(dst)
    if not source.is_file():
        raise FileNotFoundError(f"{source} is not a file")
    target.mkdir(parents=True, exist_ok=True)
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            archive.extractall(target)  # noqa: S202  # neither this nor the next ones leave `target`
    elif tarfile.is_tarfile(source):
        with tarfile.open(source) as tar:
            tar.extractall(target, filter="data")
    elif source.suffix.lower() == ".gz":
        with gzip.open(source) as packed, (target / source.stem).open("wb") as file:
            shutil.copyfileobj(packed, file)
    elif source.suffix.lower() == ".7z":
        import py7zr

        with py7zr.SevenZipFile(source) as seven:
            seven.extractall(target)  # noqa: S202
    else:
        raise NotImplementedError(f"{source} is not an archive of a known kind: {', '.join(_ARCHIVES)}")
    if recursive:
        for inner in [path for path in target.rglob("*") if path.is_file() and _is_archive(path)]:
            folder, number = inner.with_suffix(""), 2
            while folder.exists() and not folder.is_dir():
                folder, number = inner.with_name(f"{inner.stem}-{number}"), number + 1
            extract(inner, folder, recursive=True)


def _is_archive(path: Path) -> bool:
    """Whether a file has the name and the first bytes of an archive."""
    suffix = path.suffix.lower()
    if suffix not in _ARCHIVES:
        return False
    if zipfile.is_zipfile(path) or tarfile.is_tarfile(path):
        return True
    with path.open("rb") as file:
        start = file.read(6)
    return start.startswith({".gz": b"\x1f\x8b", ".7z": b"7z\xbc\xaf\x27\x1c"}.get(suffix, b"no archive"))


def compress(src: StrPath, dst: StrPath, exist_ok: bool = False) -> None:
    """Pack a file, or the content of a directory, into the zip file `dst`.

    Members are named from the directory `src`, whose own name is left out. Raises `FileExistsError` if `dst` exists,
    unless `exist_ok`. It may lie in `src`: it is not packed itself, and it is complete or not there.
    """
    source, target = Path(src), Path(dst)
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist")
    if target.exists() and not exist_ok:
        raise FileExistsError(f"{target} exists already")
    base, paths = (source, sorted(source.rglob("*"))) if source.is_dir() else (source.parent, [source])
    files = [path for path in paths if path.is_file() and path.resolve() != target.resolve()]
    draft = target.with_name(f".{uuid.uuid4().hex}.partial")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in files:
                archive.write(path, path.relative_to(base))
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def import_fn(fn_import_string: str) -> Callable[..., Any]:
    """The function that `module.path:function` or `file:PATH:function` names.

    `mlebench.competitions.ID.grade:grade` and `mlebench.competitions.ID.prepare:prepare` are those of the competition
    with that id, although an id with dashes is not the name of a module.
    """
    from mlebench._catalog import imported

    function: Callable[..., Any] = imported(fn_import_string)
    return function


def get_module_dir() -> Path:
    """The directory of the package `mlebench`."""
    return Path(__file__).resolve().parent


def get_repo_dir() -> Path:
    """The checkout that the package is imported from, or the current directory if it is installed."""
    parent = get_module_dir().parent
    return parent if (parent / "pyproject.toml").is_file() else Path.cwd()


def get_runs_dir() -> Path:
    """The directory `runs` in `get_repo_dir()`."""
    return get_repo_dir() / "runs"


def generate_run_id(competition_id: str, agent_id: str | None = None, run_group: str | None = None) -> str:
    """A name for a run that no run has: the competition, and a random part."""
    return f"{competition_id}_{uuid.uuid4()}"


def create_run_dir(
    competition_id: str | None = None, agent_id: str | None = None, run_group: str | None = None
) -> Path:
    """Create a directory for a run below `get_runs_dir()`; without arguments, below a name with the time."""
    group = run_group or f"{get_timestamp()}_run-group{f'_{agent_id}' if agent_id else ''}"
    folder = get_runs_dir() / group
    if competition_id is not None:
        folder /= generate_run_id(competition_id, agent_id, run_group)
    folder.mkdir(parents=True, exist_ok=run_group is not None)
    return folder


def purple(text: str) -> str:
    """The text with the codes that make a terminal show it in purple."""
    return f"\033[1;35m{text}\033[0m"


def authenticate_kaggle_api() -> Any:
    """Kaggle's own client, `kaggle.KaggleApi`, with credentials. Raises `PermissionError` if there are none."""
    from storage.sources.kaggle import credentials
    from storage.sources.kaggle.errors import CREDENTIALS

    if credentials.find() is None:  # Kaggle's client would end the process
        raise PermissionError(f"Kaggle authentication failed: {CREDENTIALS}")
    from kaggle.api.kaggle_api_extended import KaggleApi

    api = KaggleApi()
    api.authenticate()
    return api
