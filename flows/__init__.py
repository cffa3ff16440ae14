"""Prefect flows, which chain the tasks, and the command line."""

import common  # noqa: F401  # before NumPy is imported
