"""The folders, instructions and environment variables of every agent, the same in every backend.

The layout is the published one, so that existing agents work: ``data/`` (read-only), ``submission/submission.csv``,
``logs/``, ``code/``, ``agent/start.sh`` and ``instructions.txt``, all below one home: ``/home`` in containers, a folder
of the run's work directory in the process backend.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePath

from common import trees
from sandbox.backend import RunSpec
from sandbox.errors import BackendError
from sandbox.scripts import interpreter
from sandbox.world import quota
from sandbox.world.checkpoint import unpack
from sandbox.world.files import copy_data
from sandbox.world.instructions import instructions, public_score_help, score_help

WRITABLE = ("submission", "logs", "code", "tmp")
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
DESCRIPTION = "description.md"
NO_GPUS = "void"
"""Value of NVIDIA_VISIBLE_DEVICES for no GPUs."""
VALIDATE = Path(__file__).with_name("validate_submission.sh")
SCORE = Path(__file__).with_name("score.sh")


def lay_out(spec: RunSpec, home: Path, agent_home: PurePath | None = None, *, with_data: bool = True) -> None:
    """Create the agent's world in a new directory.

    It contains no symbolic links, and no relative path leads from it to the prepared dataset.

    Args:
        spec: the run.
        home: created; must not exist.
        agent_home: the path of ``home`` as the agent sees it; the same by default.
        with_data: whether to copy the data; otherwise ``data/`` is an empty mount point.

    Raises:
        BackendError: the data do not exist, they contain something that cannot be given to an agent, or ``home`` is
            inside the prepared dataset.
    """
    if not spec.data.is_dir():
        raise BackendError(f"{spec.competition_id} is not prepared: {spec.data} is not a directory")
    if home.resolve().is_relative_to(spec.data.resolve().parent):
        raise BackendError(
            f"the work directory {home} is in the prepared dataset: an agent could reach the answers; choose another"
        )
    home.mkdir(parents=True)
    if spec.own_disk and not with_data:  # the data do not count towards the limit
        quota.mount(home, spec.limits.disk_bytes)
    for name in WRITABLE:
        (home / name).mkdir()
    for file in spec.agent.files():
        target = home / "agent" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        with spec.agent.opened(file) as source, target.open("xb") as copy:
            for piece in trees.pieces(source):
                copy.write(piece)
            target.chmod(0o755 if os.fstat(source).st_mode & 0o111 else 0o644)
    if with_data:
        copy_data(spec.data, home / "data", may_link=spec.agent.trusted)
    else:
        (home / "data").mkdir()
    if spec.description is not None:
        _lay_description(spec, spec.description, home, with_data=with_data)
    agent_home = agent_home or home
    (home / "instructions.txt").write_text(instructions(spec, agent_home), encoding="utf-8")
    if spec.validation_url:
        _lay_script(VALIDATE, home / VALIDATE.name, {"URL": spec.validation_url.rstrip("/")})
    if spec.scorer is not None and spec.scorer_url:
        url = f"{spec.scorer_url.rstrip('/')}/score"
        values = {"URL": url, "FIELDS": "predictions truth", "COUNT": "2", "HELP": score_help(spec.scorer, url)}
        _lay_script(SCORE, home / "score.sh", values)
        (home / spec.scorer.example_name).write_text(spec.scorer.example, encoding="utf-8")
    if spec.public_scores is not None and spec.public_score_url:
        url = f"{spec.public_score_url.rstrip('/')}/public-score"
        help_text = public_score_help(spec.public_scores, url)
        values = {"URL": url, "FIELDS": "file", "COUNT": "1", "HELP": help_text}
        _lay_script(SCORE, home / "public_score.sh", values)
    if spec.resume is not None:
        unpack(spec.resume, home)


def _lay_script(source: Path, script: Path, values: Mapping[str, str]) -> None:
    """Write a script that asks a service, with values in place of their names."""
    text = source.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value.strip())
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)


def descriptions(spec: RunSpec) -> list[str]:
    """Names of the files in ``data`` that the text of the run replaces: ours, and if it is obfuscated all others."""
    other_names = (path.name for path in spec.data.glob("description*.md")) if spec.obfuscated else ()
    return sorted({DESCRIPTION, *other_names})


def _lay_description(spec: RunSpec, text: str, home: Path, *, with_data: bool) -> None:
    """Replace the descriptions by the text. If the data are mounted, the text is a separate file to mount over them."""
    if not with_data and spec.obfuscated:  # such a run has data of its own, see `replace_descriptions`
        return
    if not with_data:
        if not (spec.data / DESCRIPTION).is_file():
            raise BackendError(f"{spec.data} has no {DESCRIPTION} to mount the run's text over; create an empty one")
        (home / DESCRIPTION).write_text(text, encoding="utf-8")
        return
    replace_descriptions(spec, text, home / "data")


def replace_descriptions(spec: RunSpec, text: str, folder: Path) -> None:
    """Replace the descriptions in the run's own copy of the data by a text."""
    folder.chmod(0o755)
    for name in descriptions(spec):
        (folder / name).unlink(missing_ok=True)  # it may be a link to the prepared data
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o444)
    folder.chmod(0o555)


def environment(spec: RunSpec, home: PurePath, *, python: str, path: str, threads: int) -> dict[str, str]:
    """The agent's complete environment. It inherits nothing from the orchestrator, and therefore no secrets.

    The agent's definition and the run can set variables, except for those that describe the agent's world.

    Args:
        spec: the run.
        home: the agent's home as the agent sees it.
        python: interpreter with the scientific packages, for ``MLEBENCH_PYTHON``.
        path: value of ``PATH``.
        threads: number of threads for numerical libraries.
    """
    chosen = {
        "PATH": path,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **dict.fromkeys(THREADS, str(threads)),
        **spec.agent.env,
        **spec.env,
    }
    world = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "DATA_DIR": str(home / "data"),
        "SUBMISSION_DIR": str(home / "submission"),
        "LOGS_DIR": str(home / "logs"),
        "CODE_DIR": str(home / "code"),
        "AGENT_DIR": str(home / "agent"),
        "INSTRUCTIONS_FILE": str(home / "instructions.txt"),
        "COMPETITION_ID": "competition" if spec.obfuscated else spec.competition_id,
        "SEED": str(spec.seed),
        "TIME_LIMIT_SECONDS": _number(spec.limits.time_limit_seconds),
        "MLEBENCH_PYTHON": python,
        # Never left out: images of CUDA say "all", which an engine with NVIDIA's runtime would obey.
        "NVIDIA_VISIBLE_DEVICES": ",".join(spec.allocation.gpus) or NO_GPUS,
    }
    if spec.resume is not None:
        world["MLEBENCH_RESUMED"] = "1"
    if spec.sample_submission:
        world["SAMPLE_SUBMISSION"] = str(home / "data" / spec.sample_submission)
    if spec.validation_url:
        world["VALIDATE_SCRIPT"] = str(home / "validate_submission.sh")
    if spec.scorer is not None and spec.scorer_url:
        world["SCORE_SCRIPT"] = str(home / "score.sh")
        world["EXAMPLE_TRUTH"] = str(home / spec.scorer.example_name)
    if spec.public_scores is not None and spec.public_score_url:
        world["PUBLIC_SCORE_SCRIPT"] = str(home / "public_score.sh")
    for name in ("llm_requests", "llm_tokens", "llm_dollars"):
        if (limit := getattr(spec.allowance, name)) is not None:
            world[f"{name}_limit".upper()] = _number(limit)
    return {**chosen, **world}


def _number(value: float) -> str:
    """A limit as agents read it: never rounded to six digits, and never as 1e+06, which shells cannot calculate with.

    >>> [_number(value) for value in (86400.0, 1_000_000.0, 1795.25, 12_345_678)]
    ['86400', '1000000', '1795.25', '12345678']
    """
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def start_command(spec: RunSpec, home: Path, agent_home: PurePath | None = None) -> list[str]:
    """The command that starts the agent: its start file if that is executable, else bash (sh where there is none)."""
    script = Path("agent", spec.agent.start)
    shell = shutil.which("bash") or "/bin/sh"
    return [*interpreter(home / script, shell), str((agent_home or home) / script), *spec.agent.arguments()]
