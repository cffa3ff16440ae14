"""Prefect flows, which chain the tasks, and the command line."""

from mlebench_command import require_own_packages

require_own_packages()

import common  # noqa: E402, F401  # before NumPy is imported
