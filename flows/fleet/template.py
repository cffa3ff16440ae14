"""The job template of our work pools, of which a flow run can change nothing.

By default, whoever may create a flow run also says with which command, directory and environment its process starts.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import WorkPool

_NO_VARIABLES = {"type": "object", "properties": {}, "additionalProperties": False}


def closed(template: dict[str, Any]) -> dict[str, Any]:
    """A template whose variables are replaced by their defaults, such as those that an operator chose."""
    from prefect.utilities.templating import apply_values

    variables = template["variables"].get("properties", {})
    defaults = {
        name: variable["default"] for name, variable in variables.items() if variable.get("default") is not None
    }
    job = apply_values(template["job_configuration"], defaults)
    # Workers add the `env` of flow runs to one that is in the template, even if there is no variable.
    return {
        "job_configuration": {name: value for name, value in job.items() if value != {}},
        "variables": _NO_VARIABLES,
    }


def open_to(template: dict[str, Any]) -> list[str]:
    """The properties that a flow run can set of the process that a worker starts for it.

    >>> open_to({"job_configuration": {"command": "{{ x }}", "stream_output": True}, "variables": _NO_VARIABLES})
    ['command']
    """
    job = template.get("job_configuration", {})
    return sorted(name for name, value in job.items() if "{{" in str(value) or (name == "env" and value is not None))


def ensure_pool(client: SyncPrefectClient, name: str) -> WorkPool:
    """The work pool of this name. It is created if it is missing, and closed if its type is process. Idempotent."""
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
    from prefect.workers.process import ProcessWorker

    default = ProcessWorker.get_default_base_job_template()
    try:
        pool = client.read_work_pool(name)
    except ObjectNotFound:
        with contextlib.suppress(ObjectAlreadyExists):  # by another host, in the meantime
            client.create_work_pool(WorkPoolCreate(name=name, type="process", base_job_template=closed(default)))
        pool = client.read_work_pool(name)
    if pool.type == "process":
        closed_template = closed(pool.base_job_template or default)
        if pool.base_job_template != closed_template:
            client.update_work_pool(name, WorkPoolUpdate(base_job_template=closed_template))
    return pool
