"""Containers for Harbor without Docker Compose, which needs a plugin of the command line that Debian does not have.

Runs in the environment of `tests.readers`. Images and mounts are those of the task. The image of mlebench, on which
verifiers are built, is the base image of agents with this checkout and its packages mounted.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import uuid
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities


class PlainDocker(BaseEnvironment):
    """A container of the Docker engine."""

    @staticmethod
    def type() -> str:
        return "plain-docker"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(
            disable_internet=True, network_allowlist=True, network_allowlist_hostnames=True, dynamic_network_policy=True
        )

    def _validate_definition(self) -> None:
        pass

    async def _apply_network_policy(self, network_policy: Any) -> None:
        """Containers here have no network in any phase."""

    async def start(self, force_build: bool) -> None:
        self.name = f"harbor-test-{uuid.uuid4().hex}"
        self.image = f"{self.name}-image"
        await self._docker("build", "--quiet", "--tag", self.image, str(self.environment_dir))
        compose = json.loads((self.environment_dir / "docker-compose.yaml").read_text())
        options = []
        for each in compose["services"]["main"]["volumes"]:
            source = re.sub(r"\$\{MLEBENCH_STORE:-(.*?)\}", r"\1", each["source"])
            options += ["--volume", f"{source}:{each['target']}:ro"]
        if self.environment_dir.name == "tests":
            checkout, packages = os.environ["CHECKOUT"], os.environ["PACKAGES"]
            options += ["--volume", f"{checkout}:/opt/mlebench:ro", "--volume", f"{packages}:/opt/packages:ro"]
            options += ["--env", "PYTHONPATH=/opt/mlebench:/opt/packages"]
        await self._docker(
            "run", "--detach", "--network", "none", "--name", self.name, *options, self.image, "sleep", "600"
        )
        mounts = await self._docker("inspect", "--format", "{{json .Mounts}}", self.name)
        seen = sorted((each["Source"], each["Destination"]) for each in json.loads(mounts.stdout or "[]"))
        with Path(os.environ["MOUNTS"]).open("a") as log:
            log.write(json.dumps([self.environment_dir.name, seen]) + "\n")
        await self.exec("mkdir -p /logs/agent /logs/verifier /logs/artifacts /solution")

    async def stop(self, delete: bool) -> None:
        await self._docker("rm", "--force", self.name)
        await self._docker("rmi", self.image, check=False)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._docker("cp", str(source_path), f"{self.name}:{target_path}")

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self.exec(f"mkdir -p {target_dir}")
        await self._docker("cp", f"{source_dir}/.", f"{self.name}:{target_dir}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await self._docker("cp", f"{self.name}:{source_path}", str(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await self._docker("cp", f"{self.name}:{source_dir}/.", str(target_dir))

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
        **_: Any,
    ) -> ExecResult:
        variables = [part for name, value in (env or {}).items() for part in ("--env", f"{name}={value}")]
        where = ["--workdir", cwd] if cwd else []
        found = await self._docker("exec", *where, *variables, self.name, "sh", "-c", command, check=False)
        with Path(os.environ["MOUNTS"]).with_name("commands.txt").open("a") as log:
            log.write(f"{self.environment_dir.name}: {command}\n{found.stdout}{found.stderr}\n")
        return found

    async def _docker(self, *arguments: str, check: bool = True) -> ExecResult:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec("docker", *arguments, stdout=pipe, stderr=pipe)
        out, error = await process.communicate()
        if check and process.returncode:
            raise RuntimeError(f"docker {' '.join(arguments)}: {error.decode()}")
        return ExecResult(stdout=out.decode(), stderr=error.decode(), return_code=process.returncode or 0)
