"""The login of Dask's dashboard: that of Prefect's clients, PREFECT_API_AUTH_STRING.

dask scheduler --preload deployments.dashboard
"""

from __future__ import annotations

import os
from typing import Any

from common.settings import get_settings
from storage.datasets.cluster_access import guard_dashboard


def dask_setup(scheduler: Any) -> None:
    """Called by Dask when the scheduler starts. Raises `KeyError` if there is no login: it does not start then."""
    guard_dashboard(scheduler, os.environ["PREFECT_API_AUTH_STRING"], get_settings().server_hosts)
