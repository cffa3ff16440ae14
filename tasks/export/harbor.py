"""Competitions as tasks of Harbor, schema 1.4: the agent's container has the public data, the verifier's the answers.

The verifier has a separate container, so that the agent never has access to the answers. By default both containers
mount their part of the dataset from the store, and the task contains no data. Providers of sandboxes without volumes
need the data in the images; for them, the data are fetched from the store into the task.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from common import plain_json
from common.errors import UserError
from competitions import registry
from competitions.competition import Competition
from competitions.editions import VERSIONS, Edition
from storage.dataset import Dataset
from storage.datasets.current import require
from storage.datasets.local_copy import local_copy
from storage.store import Store
from tasks.wiring.context import local_cache

Data = Literal["mount", "copy"]

HOME, ANSWERS = "/home", "/answers"
AGENT_SECONDS, VERIFIER_SECONDS = 24 * 3600.0, 3600.0
MODEL_HOSTS = ("api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai")
"""Hosts that agents can reach: only language models, and no site with answers."""
INSTRUCTION = """\
{description}

---

# Your task

You take part in the machine learning competition above, alone: nobody will answer questions.

- The data are in `{home}/data` (read-only). The training data have labels, the test data have none.{sample}
- Write your predictions for the test data to `{home}/submission/submission.csv`, in the format of the description. It
  is scored on hidden labels with the competition's metric. Only the file that exists at the end counts. Write a valid
  one early, and then improve it.
- Leave the code that makes it in `{home}/code`.
- Make the predictions with models that you train or adapt here on the given data. You must not label the test data by
  hand, look for its labels elsewhere, or submit somebody else's solution as your own.
"""
AGENT_IMAGE = """\
FROM {image}
USER root
RUN cd {home} && mkdir -p data submission code logs && chmod 777 submission code logs
{copy}WORKDIR {home}
"""
VERIFIER_IMAGE = """\
# The image of mlebench, built from a checkout by `python -m deployments.image`.
FROM {image}
USER root
RUN mkdir -p {answers} /tests /logs/verifier {home}/submission
{copy}COPY test.sh /tests/test.sh
WORKDIR /tests
"""
TEST = """\
#!/bin/sh
exec python -m tasks.export.verifier {competition} --edition {edition} --answers {answers} \\
    --submission {home}/submission/submission.csv --rewards /logs/verifier/reward.json
"""
SOLVE = """\
#!/bin/sh
set -e
gold="$(dirname "$0")/gold_submission.csv"
if [ ! -f "$gold" ]; then
    echo "The task was exported without the answers: mlebench export --format harbor --oracle adds them." >&2
    exit 1
fi
cp "$gold" {home}/submission/submission.csv
"""


@dataclass(frozen=True)
class HarborOptions:
    """How tasks are written.

    data: mount the data from the store, or copy them into the task.
    oracle: put the right answers into `solution/`, for Harbor's oracle agent.
    agent_image, verifier_image: images that the agent's and the verifier's are built on.
    """

    data: Data = "mount"
    oracle: bool = False
    agent_image: str = "mlebench-base"
    verifier_image: str = "mlebench"


def write_task(store: Store, competition_id: str, edition: Edition, folder: Path, options: HarborOptions) -> Path:
    """Write the task of a competition into a new folder below `folder`; returns its path.

    Raises:
        UserError: the competition is not prepared, the folder exists, or the data cannot be mounted.
    """
    competition = registry.get(competition_id)
    dataset = require(store, Dataset(edition, competition_id))
    path = folder / competition_id
    if path.exists():
        raise UserError(f"{path} exists already; remove it, or choose another --output-dir")
    for part in ("environment", "tests", "solution"):
        (path / part).mkdir(parents=True)
    (path / "instruction.md").write_text(_instruction(competition, edition), "utf-8")
    (path / "task.toml").write_text(_toml(_configuration(competition, dataset)), "utf-8")
    texts = {"home": HOME, "answers": ANSWERS, "competition": competition_id, "edition": edition}
    copies = _data(store, dataset, path, options)
    public = {"image": options.agent_image, "copy": copies["public"], **texts}
    private = {"image": options.verifier_image, "copy": copies["private"], **texts}
    _script(path / "environment" / "Dockerfile", AGENT_IMAGE.format(**public), executable=False)
    _script(path / "tests" / "Dockerfile", VERIFIER_IMAGE.format(**private), executable=False)
    _script(path / "tests" / "test.sh", TEST.format(**texts))
    _script(path / "solution" / "solve.sh", SOLVE.format(**texts))
    if options.oracle:
        with local_copy(store, dataset, "private", local_cache()) as root:
            shutil.copyfile(root / competition.facts.files.gold_submission, path / "solution" / "gold_submission.csv")
    return path


_IMAGE_PARTS = {
    "public": ("environment", f"{HOME}/data", "data"),
    "private": ("tests", f"{ANSWERS}/private", "answers"),
}
"""For each part of a dataset: the folder of the image that gets it, its path in the image, and its name if copied."""


def _data(store: Store, dataset: Dataset, path: Path, options: HarborOptions) -> dict[str, str]:
    """Give each image its part of the dataset, and only that; returns the line of its Dockerfile for it."""
    lines = {}
    for part, (folder, target, name) in _IMAGE_PARTS.items():
        if options.data == "copy":
            with local_copy(store, dataset, part, local_cache()) as root:
                shutil.copytree(root / part, path / folder / name)
            lines[part] = f"COPY {name} {target}\n"
            continue
        if store.local("prepared") is None:
            raise UserError(f"{store.root} is not a directory of this machine that can be mounted: give --data copy")
        below = store.relative(f"{store.prepared(dataset)}/{part}")
        root_of_store = str(store.local()).replace("$", "$$")
        mount = {
            "type": "bind",
            "source": f"${{MLEBENCH_STORE:-{root_of_store}}}/{below}",
            "target": target,
            "read_only": True,
            "bind": {"create_host_path": False},
        }
        content = plain_json.dumps({"services": {"main": {"volumes": [mount]}}}, indent=2)  # JSON is YAML
        (path / folder / "docker-compose.yaml").write_text(content + "\n", "utf-8")
        lines[part] = ""
    return lines


def _instruction(competition: Competition, edition: Edition) -> str:
    sample = competition.facts.files.sample_submission
    sample_note = (
        f"\n  A sample submission: `{HOME}/data/{sample.removeprefix('public/')}`"
        if sample.startswith("public/")
        else ""
    )
    return INSTRUCTION.format(description=competition.describe(edition).rstrip(), home=HOME, sample=sample_note)


def _configuration(competition: Competition, dataset: Dataset) -> dict[str, Any]:
    """The content of `task.toml`."""
    facts = competition.facts
    return {
        "schema_version": "1.4",
        "artifacts": [f"{HOME}/submission"],
        "task": {
            "name": f"mle-bench/{facts.id}",
            "description": f"{facts.name}: {facts.metric.name}, {facts.metric.direction} is better",
            "keywords": ["machine-learning", "kaggle", facts.complexity],
        },
        "metadata": {
            "category": facts.category,
            "complexity": facts.complexity,
            "edition": VERSIONS[dataset.edition],
            "dataset_key": str(dataset.key),
        },
        "environment": {"network_mode": "public", "workdir": HOME},
        "agent": {"timeout_sec": AGENT_SECONDS, "network_mode": "allowlist", "allowed_hosts": list(MODEL_HOSTS)},
        "verifier": {
            "timeout_sec": VERIFIER_SECONDS,
            "environment_mode": "separate",
            "environment": {"network_mode": "no-network"},
        },
    }


def _toml(content: dict[str, Any], table: str = "") -> str:
    """TOML of texts, numbers, flags, lists of these, and tables."""
    plain = {name: value for name, value in content.items() if not isinstance(value, dict)}
    lines = [f"{name} = {plain_json.dumps(value, ensure_ascii=False)}" for name, value in plain.items()]
    tables = [
        "\n" + _toml(value, f"{table}.{name}" if table else name)
        for name, value in content.items()
        if isinstance(value, dict)
    ]
    return "\n".join([*([f"[{table}]"] if table else []), *lines]) + "\n" + "".join(tables)


def _script(path: Path, text: str, *, executable: bool = True) -> None:
    path.write_text(text, "utf-8")
    path.chmod(0o755 if executable else 0o644)
