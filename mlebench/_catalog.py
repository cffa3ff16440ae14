"""Functions by the names that `config.yaml` gives them, also those of our competitions, which have other signatures."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common import plain_json
from competitions.competition import Competition

_OURS = re.compile(r"mlebench\.competitions\.(?P<id>[^.:]+)\.(?P<part>grade|prepare):(?P=part)")


def competition(competition_id: str) -> Competition:
    """The competition of the catalog, or of a folder in MLEBENCH_COMPETITIONS. Raises `FileNotFoundError`."""
    from competitions import registry
    from competitions.errors import UnknownCompetition

    try:
        return registry.get(competition_id)
    except UnknownCompetition:
        read_settings()
    try:
        return registry.get(competition_id)
    except UnknownCompetition as error:
        raise FileNotFoundError(str(error)) from error


def read_settings() -> None:
    """Apply the settings, which name folders of further competitions."""
    from tasks.wiring.process import apply_settings

    apply_settings()


def name_of(competition_id: str, part: str) -> str:
    """The name of a competition's function, as the published `config.yaml` gives it."""
    return f"mlebench.competitions.{competition_id}.{part}:{part}"


def imported(name: str, *, check_only: bool = False) -> Any:
    """The function "module.path:function" or "file:PATH:function"; with `check_only`, only the form is checked.

    Raises `ValueError` for another form, and what importing raises.
    """
    module, _, function = name.rpartition(":")
    if not module or not function:
        raise ValueError(f"{name!r} names no function: write 'module.path:function' or 'file:PATH:function'")
    if check_only:
        return None
    if found := _OURS.fullmatch(name):
        return (_Grade if found["part"] == "grade" else _Prepare)(found["id"])
    if module.startswith("file:"):
        path = Path(module.removeprefix("file:")).absolute()
        spec = importlib.util.spec_from_file_location(f"mlebench_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return getattr(loaded, function)
    return getattr(importlib.import_module(module), function)


@dataclass(frozen=True)
class _Grade:
    """The grader of a competition, in edition v1."""

    id: str

    def __call__(self, submission: Any, answers: Any) -> float:
        """The unrounded score of a frame, with the answers that `mlebench.utils.load_answers` reads.

        A frame need not come from a file: it is graded like the file that `frame.to_csv(index=False)` writes.
        """
        ours = competition(self.id)
        right = _parsed(ours, answers) if isinstance(answers, list) else _as_from_file(answers)
        return ours.score_table(_as_from_file(submission), right, "v1")


@dataclass(frozen=True)
class _Prepare:
    """The preparation of a competition, in edition v1."""

    id: str

    def __call__(self, raw: Path, public: Path, private: Path) -> Path:
        """Prepare the unpacked download `raw` into two folders; returns `public`."""
        from storage.datasets import prepare

        public, private = Path(public), Path(private)
        competition(self.id)
        public.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".mlebench-", dir=public.parent) as scratch:
            prepare(self.id, Path(raw), Path(scratch))
            for part, target in (("public", public), ("private", private)):
                _move_files(Path(scratch) / part, target)
        return public


def _as_from_file(frame: Any) -> Any:
    """The frame with rows numbered from 0 and columns of NumPy's types, as `mlebench.utils.read_csv` gives them."""
    import numpy as np
    import pandas as pd

    if not frame.index.equals(pd.RangeIndex(len(frame))):
        frame = frame.reset_index(drop=True)
    others = [number for number, dtype in enumerate(frame.dtypes) if not isinstance(dtype, np.dtype)]
    if others:
        frame = frame.copy(deep=False)
    for number in others:
        values = frame.iloc[:, number].to_numpy(dtype=object, na_value=np.nan)
        frame.isetitem(number, pd.Series(values, dtype=object).infer_objects())
    return frame


def _parsed(ours: Competition, answers: list[Any]) -> Any:
    """Answers of JSON lines as the competition's grader has them."""
    with TemporaryDirectory(prefix="mlebench-") as folder:
        path = Path(folder, ours.facts.files.answers)
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{plain_json.dumps(answer)}\n" for answer in answers), "utf-8")
        return ours.answers(Path(folder))


def _move_files(source: Path, target: Path) -> None:
    """Move what a folder has into another one, which may exist."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.is_dir() and (target / path.name).is_dir():
            _move_files(path, target / path.name)
        else:
            shutil.move(path, target / path.name)  # it may be on another file system
