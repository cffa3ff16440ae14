"""As `sandbox.rootless.supervisor`, but it finds no forwarder in time, or is killed while it waits for one."""

from __future__ import annotations

import os
import signal
import sys

from sandbox.errors import BackendError
from sandbox.process.supervisor import main
from sandbox.rootless import supervisor


class Killed(supervisor.RootlessSupervision):
    def _await_forwarder(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    workdir, *locks = sys.argv[1:]
    supervisor.READY_SECONDS = 0.0
    try:
        main(workdir, *locks, supervision=Killed if "killed" in workdir else supervisor.RootlessSupervision)
    except BackendError as error:
        sys.exit(str(error))
