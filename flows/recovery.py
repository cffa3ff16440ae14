"""The flow that an automation starts when the heartbeats of a flow run have stopped; see `flows.diagnosis.zombies`."""

from __future__ import annotations

import time

from prefect import flow
from prefect.settings import get_current_settings

from flows.diagnosis import zombies
from tasks.wiring.artifacts import show_table
from tasks.wiring.prefect_server import shown


@flow(name="recovery", flow_run_name="recovery")
def recovery(confirm_seconds: float | None = None) -> dict[str, str]:
    """Mark flow runs whose process or machine has died as crashed, and run those of deployments again.

    Their finished work is reused. It is safe to start this by hand: it does nothing if there is nothing to resolve.
    Returns what was done with each flow run, by name.

    Args:
        confirm_seconds: Time to wait for another heartbeat before a flow run is resolved, because heartbeats are also
            missing after an outage of the server. Default: the heartbeat interval.
    """
    aborted = zombies.resubmit_aborted()
    dead = zombies.find()
    if not dead and not aborted:
        return {}
    if dead:
        beat = get_current_settings().flows.heartbeat_frequency or 0
        time.sleep(beat if confirm_seconds is None else confirm_seconds)
    done = zombies.resolve(dead) | dict.fromkeys(aborted, "resubmitted")
    names = {zombie.id: zombie.name for zombie in dead} | aborted
    rows = [{"flow run": names[run], "result": result, "id": str(run)} for run, result in done.items()]
    with shown("the table of what was recovered"):
        show_table("recovered", rows, "Flow runs whose process had died")
    return {names[run]: result for run, result in done.items()}
