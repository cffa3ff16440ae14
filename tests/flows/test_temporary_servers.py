"""Temporary Prefect servers in a container, where the first process has started one of them and inherits all others."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIRST = '''
    import os, subprocess, sys
    from flows.temporary_server import end_orphans

    SERVER = [sys.executable, "-c", "import time; time.sleep(1000)", "flows.prefect_server"]
    MLEBENCH = "from flows.temporary_server import end_orphans; end_orphans()"
    KILLED = f"""{MLEBENCH}; import os, subprocess
    print(subprocess.Popen({SERVER}, stdout=subprocess.DEVNULL).pid, flush=True)
    os.kill(os.getpid(), 9)
    """.replace("    ", "")

    assert os.getpid() == 1
    os.environ["PREFECT__SERVER_EPHEMERAL"] = "1"
    end_orphans()
    mine = subprocess.Popen(SERVER)
    orphan = int(subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE).stdout)
    subprocess.run([sys.executable, "-c", MLEBENCH], check=True)
    print(os.WTERMSIG(os.waitpid(orphan, 0)[1]), mine.poll())
    mine.kill()
'''


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become the first process")
def test_a_second_mlebench_leaves_the_server_of_the_first_process_alone() -> None:
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c"]
    done = subprocess.run(
        [*command, textwrap.dedent(FIRST)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == "15 None\n"
