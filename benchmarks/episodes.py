"""Episodes of `mlebench serve`, against `docker run` and `docker exec`: `python -m benchmarks.episodes`.

The server has two slots, and its clients talk to it over WebSocket. Each figure is the median of several. The exit code
is 1 if the reset of a variant takes a second, or a step 50 ms.

reset        of a variant, whose sandbox was started ahead; against `docker run --rm IMAGE true`
cold reset   without a sandbox that was started ahead
step         the command `true`; against `docker exec CONTAINER true`
submit       until the reward is there
episode      of a scripted agent, which writes a file, runs it and submits; episodes a minute of two such agents
idle         what an episode without an action takes: memory of the server and the sandbox, and CPU of the server
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from sandbox.definitions import BASE_IMAGE
from sandbox.docker import engine

COMPETITION = "breast-cancer"
VARIANT = f"{COMPETITION}--rows60-seed0"
SLOTS = 2
TIMES = 5
IDLE_SECONDS = 10.0
MOST_RESET_SECONDS, MOST_STEP_SECONDS = 1.0, 0.05
_COPY = "import shutil; shutil.copy('data/sample_submission.csv', 'submission/submission.csv')"


class Client:
    """A client of the server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, kind: str, **data: Any) -> dict[str, Any]:
        """Send a message, and return the data of the answer."""
        self._connection.send(json.dumps({"type": kind, "data": data}))
        answer: dict[str, Any] = json.loads(self._connection.recv(120))
        if answer["type"] == "error":
            raise RuntimeError(str(answer["data"]))
        return dict(answer["data"])

    def episode(self) -> None:
        """An episode of the scripted agent."""
        self.ask("reset")
        self.ask("step", type="write", path="code/copy.py", content=_COPY)
        self.ask("step", type="run", command="$MLEBENCH_PYTHON code/copy.py")
        if not self.ask("step", type="submit")["observation"]["info"]["valid"]:
            raise RuntimeError("the submission of the scripted agent is not valid")


@contextlib.contextmanager
def served(store: Path, backend: str, warm: int) -> Iterator[tuple[Callable[[], Client], psutil.Process]]:
    """A server; yields what connects to it, and its process."""
    command = [sys.executable, "-m", "flows.cli", "serve", "-c", VARIANT, "--store", str(store), "--port", "0"]
    command += ["--backend", backend, "--allow-untrusted", "--warm", str(warm)]
    environment = {
        **os.environ,
        "MLEBENCH_AGENTS": str(SLOTS),
        "MLEBENCH_HOST_NAME": f"benchmark-{os.getpid()}",
        "MLEBENCH_SCRATCH": str(store.parent / "scratch"),
    }
    with contextlib.ExitStack() as connections:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        connections.callback(process.wait)
        connections.callback(process.terminate)
        assert process.stdout is not None
        process.stdout.readline()
        url = process.stdout.readline().strip().replace("http", "ws", 1)

        def client() -> Client:
            return Client(connections.enter_context(connect(f"{url}/ws", max_size=None, open_timeout=60)))

        yield client, psutil.Process(process.pid)


def median(work: Callable[[], Any], first: Callable[[], Any] = lambda: None, pause: float = 0.0) -> float:
    """The median of the seconds that it takes, with something else and a pause before each."""
    seconds = []
    for _ in range(TIMES):
        first()
        time.sleep(pause)
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def run(*command: str) -> None:
    """Run a program."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def memory(server: psutil.Process, scratch: Path) -> float:
    """MB of the server and all that it has started here (pages that are shared count once), and of its containers."""
    processes = [server, *server.children(recursive=True)]
    own_bytes = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):  # it has just ended
            own_bytes += process.memory_full_info().pss
    client = engine.connect()
    with contextlib.closing(client):
        containers = client.containers.list(filters=engine.labelled(workdir=""))
        own_containers = [each for each in containers if each.labels[engine.WORKDIR].startswith(str(scratch))]
        stats: list[Any] = [container.stats(stream=False) for container in own_containers]
    return float(own_bytes + sum(_used(each["memory_stats"]) for each in stats)) / 1e6


def _used(stats: dict[str, Any]) -> int:
    return int(stats["usage"] - stats["stats"].get("inactive_file", 0))


def processor_seconds(server: psutil.Process) -> float:
    """CPU time of the server and of what it has started here; the container engine has its own."""
    total = 0.0
    for process in [server, *server.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:2])
    return total


def measured(store: Path, backend: str) -> dict[str, float]:
    """The figures of a backend."""
    with served(store, backend, warm=1) as (client, server):
        agent = client()
        agent.episode()  # imports modules, and starts the graders
        figures = {"reset": median(lambda: agent.ask("reset"), agent.episode, pause=4.0)}
        figures["step"] = median(lambda: agent.ask("step", type="run", command="true"))
        start = time.perf_counter()
        agent.ask("step", type="submit")
        figures["submit"] = time.perf_counter() - start
    with served(store, backend, warm=0) as (client, server):
        agents = [client() for _ in range(SLOTS)]
        agents[0].episode()
        figures["cold reset"] = median(lambda: agents[0].ask("reset"), agents[0].episode, pause=4.0)
        agents[0].ask("step", type="submit")
        while any(path.is_dir() for path in store.parent.glob("scratch/episodes/*/*")):
            time.sleep(0.1)  # until the sandbox is removed
        before = memory(server, store.parent)
        for agent in agents:
            agent.ask("reset")
        figures["idle MB"] = (memory(server, store.parent) - before) / SLOTS
        busy = processor_seconds(server)
        time.sleep(IDLE_SECONDS)
        figures["idle CPU"] = (processor_seconds(server) - busy) / IDLE_SECONDS / SLOTS
        for agent in agents:
            agent.ask("step", type="submit")
    with served(store, backend, warm=1) as (client, server):
        agents = [client() for _ in range(SLOTS)]
        agents[0].episode()
        start, count = time.perf_counter(), 5
        with ThreadPoolExecutor(SLOTS) as pool:
            list(pool.map(lambda agent: [agent.episode() for _ in range(count)], agents))
        figures["episodes a minute"] = 60 * count * SLOTS / (time.perf_counter() - start)
    sys.stderr.write(f"{backend}: {figures}\n")
    return figures


def baselines() -> dict[str, float]:
    """The seconds of `docker run` and of `docker exec`."""
    name = f"mlebench-benchmark-{os.getpid()}"
    run("docker", "run", "--rm", "--detach", "--name", name, "--network", "none", BASE_IMAGE, "sleep", "600")
    try:
        execute = median(lambda: run("docker", "exec", name, "true"))
    finally:
        run("docker", "rm", "--force", name)
    start = median(lambda: run("docker", "run", "--rm", "--network", "none", BASE_IMAGE, "true"))
    return {"reset": start, "cold reset": start, "step": execute}


def main() -> int:
    """Print a table; returns 1 if an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.episodes", description=__doc__)
    parser.add_argument("--backend", choices=("docker", "process"), action="append", help="default: both")
    backends = parser.parse_args().backend or ["docker", "process"]
    with tempfile.TemporaryDirectory() as work:
        store = Path(work) / "store"
        for name in (COMPETITION, VARIANT):
            run(sys.executable, "-m", "flows.cli", "prepare", "-c", name, "--store", str(store))
        docker = baselines()
        figures = {backend: measured(store, backend) for backend in backends}
    lines = [f"| | {' | '.join(backends)} | docker |", "|---|" + "---:|" * (len(backends) + 1)]
    for figure in figures[backends[0]]:
        values = [_shown(figure, figures[backend][figure], docker.get(figure)) for backend in backends]
        baseline = f"{docker[figure]:.3f} s" if figure in docker else ""
        lines.append(f"| {figure} | {' | '.join(values)} | {baseline} |")
    sys.stdout.write("\n".join(lines) + "\n")
    missed = [
        backend
        for backend in backends
        if figures[backend]["reset"] >= MOST_RESET_SECONDS or figures[backend]["step"] >= MOST_STEP_SECONDS
    ]
    return 1 if missed else 0


def _shown(figure: str, value: float, baseline: float | None) -> str:
    if figure == "episodes a minute":
        return f"{value:.0f}"
    if figure == "idle MB":
        return f"{value:.1f} MB"
    if figure == "idle CPU":
        return f"{value:.1%} of a core"
    ratio = f" ({baseline / value:.1f})" if baseline else ""
    return f"{value:.3f} s{ratio}"


if __name__ == "__main__":
    sys.exit(main())
