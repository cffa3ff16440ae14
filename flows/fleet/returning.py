"""The end of a process whose flow run does not end with it as Prefect would record it: cancelled, or given back."""

from __future__ import annotations

import logging
import os
from typing import Any, NoReturn
from uuid import UUID

from prefect import get_client, runtime
from prefect.client.schemas.objects import State
from prefect.states import Scheduled

from flows.fleet.runs import tags_of_no_host


def give_back(why: str) -> NoReturn:
    """Return the flow run of this process to its work pool, where any host takes it at once, and end the process.

    This is no crash, after which it would be submitted again a limited number of times.
    """
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(UUID(runtime.flow_run.id))
        client.update_flow_run(run.id, tags=tags_of_no_host(run.tags))
    end_as(Scheduled(message=why))


def end_as(state: State[Any]) -> NoReturn:
    """End this process with its flow run in this state. Prefect would record a crash or a failure."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(UUID(runtime.flow_run.id), state, force=True)
    logging.shutdown()
    os._exit(0)  # a worker would take another code for a crash
