"""Results of other systems are examined from a JSONL file, with CSV files out; no run group is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flows.cli import main
from tests.flows.test_integrity_plagiarism import COMPETITION, kernels
from tests.flows.test_integrity_violations import CODE, LOG, Reader, llm
from tests.grading.integrity.copies import everything, read
from tests.stores import Store

__all__ = ["kernels", "llm"]


def listed(folder: Path, *results: dict[str, Any]) -> Path:
    """A JSONL file of results, with folders of code and logs for each."""
    lines = []
    for number, files in enumerate(results):
        line: dict[str, Any] = {"competition_id": COMPETITION, "submission_path": None}
        for part in ("code", "logs"):
            if part in files:
                (folder / f"{number}" / part).mkdir(parents=True)
                for name, text in files[part].items():
                    (folder / f"{number}" / part / name).write_text(text)
                line[f"{part}_path"] = f"{number}/{part}"
        lines.append(json.dumps(line))
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "results.jsonl"


def examine(store: Store, command: str, *arguments: object) -> int:
    return main(["examine", "--only", command, *map(str, arguments), "--store", store.root])


def test_plagiarism_of_results_that_are_in_no_store(
    kernels: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    thief, honest = {"a.py": everything(read("kernel_gbm"))}, {"b.py": read("honest_forest")}
    path = listed(tmp_path, {"code": thief}, {"code": honest})
    assert examine(kernels, "plagiarism", "--submission", path, "--output-dir", tmp_path / "out") == 0
    found = pd.read_csv(tmp_path / "out" / "plagiarism.csv")
    assert found[found["flagged"]][["seed", "file", "other"]].to_numpy().tolist() == [[0, "a.py", "someone/kernel_gbm"]]
    assert "2 runs compared" in capfd.readouterr().out
    assert not kernels.glob("runs/*")
    assert not kernels.glob("tables/*")


def test_violations_and_the_share_of_each(store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = listed(tmp_path, {"code": {"m.py": CODE}, "logs": {"a.log": LOG}}, {"code": {"m.py": "x = 1\n"}})
    assert examine(store, "violations", "--submission", path, "--output-dir", tmp_path / "out") == 0
    found = pd.read_csv(tmp_path / "out" / "violations.csv")
    assert "network" in set(found["rule"])
    shares = pd.read_csv(tmp_path / "out" / "shares.csv").set_index("rule")
    assert (shares.loc["network", "runs"], shares.loc["network", "share"]) == (1, 0.5)
    assert "50.0% of the runs: accesses the network" in capfd.readouterr().out


def test_questions_of_a_users_own(llm: Reader, store: Store, tmp_path: Path) -> None:
    """The model is asked these, after the text, and not the built-in ones."""
    llm._whole = lambda path, body: answered(llm, body)  # type: ignore[method-assign]
    path = listed(tmp_path, {"code": {"m.py": CODE}})
    (tmp_path / "questions.json").write_text(json.dumps({"imports-web": "Does it import a library for the web?"}))
    arguments = ["--questions", tmp_path / "questions.json", "--extra-prompt", "Mind the imports."]
    assert examine(store, "violations", "--submission", path, *arguments, "--output-dir", tmp_path / "out") == 0
    found = pd.read_csv(tmp_path / "out" / "violations.csv")
    assert found[found["by"] == "gpt-4o"][["rule", "quote", "line"]].to_numpy().tolist() == [
        ["imports-web", "import requests", 2]
    ]
    assert pd.read_csv(tmp_path / "out" / "shares.csv").set_index("rule").loc["imports-web", "share"] == 1


def answered(llm: Reader, body: Any) -> Any:
    asked = body["messages"][0]["content"]
    assert "Mind the imports.\n- imports-web: Does it import a library for the web?" in asked
    assert "hand-written" not in asked
    text = json.dumps({"imports-web": {"violation": True, "quote": "import requests", "why": "it does"}})
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}], "usage": usage}


def test_links_are_not_followed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.py").write_text(CODE)
    path = listed(tmp_path, {"code": {"m.py": "x = 1\n"}})
    (tmp_path / "0" / "code" / "link.py").symlink_to(tmp_path / "secret" / "key.py")
    (tmp_path / "0" / "code" / "folder").symlink_to(tmp_path / "secret")
    assert examine(store, "violations", "--submission", path, "--output-dir", tmp_path / "out") == 0
    assert "network" not in set(pd.read_csv(tmp_path / "out" / "violations.csv")["rule"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "has no submissions"),
        ("{}\n", "results.jsonl:1: not a JSON object"),
        ('{"competition_id": "../x", "submission_path": null}\n', "is not the id"),
        ('{"competition_id": "x", "submission_path": null, "code_path": "nowhere"}\n', "nowhere does not exist"),
    ],
)
def test_what_is_no_list_is_one_line(
    store: Store, tmp_path: Path, content: str, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.jsonl").write_text(content)
    for command in ("plagiarism", "violations"):
        assert examine(store, command, "--submission", tmp_path / "results.jsonl") == 1
        assert says in capfd.readouterr().err
        assert examine(store, command) == 2, "neither a group nor a file"
