"""Run AIDE, and after every step submit the output of its best program. After an interruption, continue its journal.

AIDE 0.2 ignores OPENAI_BASE_URL for models named gpt-* and o* and calls api.openai.com. This script makes it call the
gateway.
"""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from aide import run
from aide.backend import backend_openai
from aide.journal import Journal
from aide.utils import serialize
from aide.utils.metric import WorstMetricValue

SUBMISSION = Path(os.environ["SUBMISSION_DIR"], "submission.csv")
VALIDATION = Path(os.environ["LOGS_DIR"], "validation.jsonl")
CODE = Path(os.environ["CODE_DIR"], "solution.py")
SESSION = Path(os.environ["HOME"], ".aide", "journal.json")


def hand_in(cfg: Any, journal: Any) -> None:
    """Called after every step. Submits the newest program's output if no other program was better."""
    save(cfg, journal)
    copy = SESSION.with_suffix(".part")
    shutil.copyfile(Path(cfg.log_dir, "journal.json"), copy)
    copy.replace(SESSION)
    newest, best = journal.nodes[-1], journal.get_best_node()
    metric = None if newest.is_buggy else newest.metric.value
    print(json.dumps({"step": len(journal), "buggy": bool(newest.is_buggy), "metric": metric}), flush=True)
    written = Path(cfg.workspace_dir, "working", "submission.csv")
    submitted = written.is_file() and (newest is best or not SUBMISSION.exists())
    if submitted:
        unfinished = SUBMISSION.with_suffix(".part")
        shutil.copyfile(written, unfinished)
        unfinished.replace(SUBMISSION)
        CODE.write_text(newest.code)
    if metric is not None:
        candidate = {"score": metric, "time": time.time(), "name": f"step {len(journal)}", "submitted": submitted}
        with VALIDATION.open("a") as file:
            file.write(json.dumps(candidate) + "\n")


def earlier_journal() -> Any:
    """The journal of the run that this one continues."""
    journal = serialize.load_json(SESSION, Journal)
    for node in journal.nodes:
        if node.is_buggy:  # is read as NaN, which is neither better nor worse than others
            node.metric = WorstMetricValue()
    print(json.dumps({"resumed": len(journal)}), flush=True)
    return journal


SESSION.parent.mkdir(exist_ok=True)
if os.environ.get("MLEBENCH_RESUMED") and SESSION.is_file():
    run.Journal = earlier_journal
backend_openai.OPENAI_BASE_URL = os.environ.get("OPENAI_BASE_URL", backend_openai.OPENAI_BASE_URL)
save, run.save_run = run.save_run, hand_in
run.run()
