"""The flow that an automation starts when a flow run has fallen silent: see `flows.diagnosis.zombies`."""

from __future__ import annotations

import time

from prefect import flow
from prefect.artifacts import create_table_artifact
from prefect.settings import get_current_settings

from flows.diagnosis import zombies


@flow(name="recovery", flow_run_name="recovery")
def recovery(confirm_seconds: float | None = None) -> dict[str, str]:
    """Mark flow runs whose process or machine died as crashed, and have those of deployments run again.

    What they had finished is reused. Starting it by hand does no harm: where there is nothing to resolve, it does
    nothing. Returns what became of each, by name.

    Args:
        confirm_seconds: How long a silent flow run is given to show that it lives after all, as after an outage of
            the server. Default: the time between two signs of life.
    """
    found = zombies.find()
    if not found:
        return {}
    beat = get_current_settings().flows.heartbeat_frequency or 0
    time.sleep(beat if confirm_seconds is None else confirm_seconds)
    done = zombies.resolve(found)
    names = {each.id: each.name for each in found}
    rows = [{"flow run": names[run], "result": result, "id": str(run)} for run, result in done.items()]
    create_table_artifact(table=rows, key="recovered", description="Flow runs whose process had died")
    return {names[run]: result for run, result in done.items()}
