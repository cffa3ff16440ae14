"""The script that runs MLAgentBench: in a real process, with stand-ins for the package and the clients of models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sandbox

SCRIPT = Path(sandbox.__file__).parent / "agents" / "mlab" / "mlab_run.py"
STAND_IN = Path(__file__).parent / "stand_in"
# The script of a model's answers is a file of actions; each request takes the next one.
OPENAI = """
import json, os
from pathlib import Path
from types import SimpleNamespace as N
class APIStatusError(Exception): pass
class OpenAI:
    def __init__(self, max_retries): self.chat = N(completions=self)
    def create(self, *, model, messages, max_tokens, temperature, stop):
        asked, script = Path(os.environ["LOGS_DIR"], "asked.jsonl"), json.loads(Path(os.environ["SCRIPT"]).read_text())
        with asked.open("a+") as file:
            file.seek(0)
            number = len(file.readlines())
            print(json.dumps([model, messages[0]["content"]]), file=file)
        return N(choices=[N(message=N(content=script[number]))])
"""
# Closes one stream and then the other one, and goes on for as long as a busy loop needs to print thousands of lines.
CLOSES = """\
import os, time
print("begun", flush=True)
os.close(2)
time.sleep(0.5)
print("between", flush=True)
os.close(1)
time.sleep(0.5)
open("submission/submission.csv", "w").write("id\\n")
"""


def action(name: str, **given: str) -> str:
    return f"Thought: I think.\nAction: {name}\nAction Input: {json.dumps(given)}"


def ran(tmp_path: Path, *script: str, limit: str = "60") -> tuple[str, list[tuple[str, str]]]:
    """What a run with these answers of the model prints, and the actions' observations by their names."""
    (tmp_path / "openai.py").write_text(OPENAI)
    (tmp_path / "anthropic.py").write_text("class APIStatusError(Exception): pass\n")
    (tmp_path / "script.json").write_text(json.dumps(script))
    folders = {name: tmp_path / name for name in ("data", "submission", "code", "logs")}
    for folder in folders.values():
        folder.mkdir()
    (folders["data"] / "images").mkdir()
    for name in ("description.md", "train.csv", "images/1.png"):
        (folders["data"] / name).write_text("Predict the label.")
    (tmp_path / "instructions.txt").write_text("Instructions.")
    environment = {
        **os.environ,
        **{f"{name.upper()}_DIR": str(folder) for name, folder in folders.items()},
        "INSTRUCTIONS_FILE": str(tmp_path / "instructions.txt"),
        "TIME_LIMIT_SECONDS": limit,
        "MLEBENCH_PYTHON": f"exec {sys.executable}",  # as shells do that replace themselves by their last command
        "SCRIPT": str(tmp_path / "script.json"),
        "PYTHONPATH": f"{STAND_IN}:{tmp_path}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, str(SCRIPT), "--model", "gpt-4o", "--steps", "9"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    trace = json.loads((folders["logs"] / "env_log" / "trace.json").read_text())
    return done.stdout, [(each["action"]["name"], each["observation"]) for each in trace["steps"]]


@pytest.mark.parametrize("limit", ["60", "1795.25", "1e+06"])
def test_every_form_of_the_time_limit_starts_a_run(tmp_path: Path, limit: str) -> None:
    printed, steps = ran(tmp_path, action("Final Answer", final_answer="none"), limit=limit)
    assert "end: Finished" in printed
    assert steps == [("Final Answer", "end")]
    left = {path.name for path in (tmp_path / "code" / "competition").iterdir()}
    assert left == {"backup", "train.py"}, "the links are not part of the agent's code"


def test_every_action_sees_the_data(tmp_path: Path) -> None:
    _, steps = ran(
        tmp_path,
        action("List Files", dir_path="data"),
        action("List Files", dir_path="data/images"),
        action("List Files", dir_path=""),
        action("List Files", dir_path="/"),
        action("List Files", dir_path="nowhere"),
        action("Read File", file_name="data/description.md"),
        action("Understand File", file_name="data/train.csv", things_to_look_for="all"),
        "It is about labels.",
        action("Final Answer", final_answer="none"),
    )
    observed = [observation for _, observation in steps]
    assert observed[0].split() == ["description.md", "images/", "train.csv"]
    assert observed[1].split() == ["1.png"]
    assert observed[2].split() == ["backup/", "data@", "submission@", "train.py"]
    assert observed[3].startswith("EnvError: cannot access file /")
    assert observed[4] == "EnvError: Cannot list file in the nowhere/ directory"
    assert observed[5:] == ["Predict the label.", "It is about labels.", "end"]
    asked = [json.loads(line) for line in (tmp_path / "logs" / "asked.jsonl").read_text().splitlines()]
    assert {model for model, _ in asked} == {"gpt-4o"}
    assert "Instructions.\n\nPredict the label." in asked[0][1]


def test_a_script_that_closes_its_streams_neither_fills_the_log_nor_is_left_running(tmp_path: Path) -> None:
    printed, steps = ran(
        tmp_path,
        action("Edit Script (AI)", script_name="train.py", edit_instruction="write it", save_name="train.py"),
        f"```python\n{CLOSES}```",
        action("Execute Script", script_name="train.py"),
        action("Final Answer", final_answer="none"),
    )
    assert steps[1][1] == "The script has been executed. Here is the output:\nbegun\nbetween\n"
    assert (tmp_path / "submission" / "submission.csv").exists(), "it is waited for"
    assert printed.count("STDERR:") == 0
    assert printed.count("STDOUT:") == 2
