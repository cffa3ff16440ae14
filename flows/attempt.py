"""One attempt: fetch the data, run the agent, grade. The unit of work that a fleet hands out.

In a work pool it is the flow `attempt`: a flow run of its own, on whichever host takes it. Without a pool it is the
task `make_attempt` of the flow that evaluates the group. The process that makes an attempt also runs its validation
service and its gateway to language models, so that a failure of these affects no other attempt.
"""

from __future__ import annotations

from typing import Any, NoReturn

from prefect import flow, get_client, runtime, task
from prefect.client.schemas.objects import FlowRun, State
from prefect.exceptions import TerminationSignal
from prefect.flows import Flow
from prefect.states import Cancelled as CancelledState

from common import slurm
from common.errors import Cancelled, UserError
from common.settings import get_settings
from flows.fleet.cancellation import watch_cancellation
from flows.fleet.returning import end_as, give_back
from flows.watching.attempts import watched
from flows.watching.naming import agent_name
from tasks.agent_run import cancel_run, end_agent, remove_agent
from tasks.steps import agent_run, grade
from tasks.wiring.attempts import run_key
from tasks.wiring.backends import leave_all
from tasks.wiring.context import RunContext
from tasks.wiring.grades import grade_request
from tasks.wiring.job import HandedOver
from tasks.wiring.prefect_server import shown, wait_for_server
from tasks.wiring.process import apply_settings
from tasks.wiring.requests import Attempt


def attempt_name(attempt: Attempt) -> str:
    """The name of an attempt among those of all groups.

    >>> from tasks.wiring.requests import RunRequest
    >>> request = RunRequest(agent="dummy", run_group="g", store="/s")
    >>> attempt_name(Attempt(request=request, competition_id="a", seed=1, key=""))
    'dummy on a seed 1, group g'
    """
    return f"{agent_name(attempt.request.agent)} on {attempt.name}, group {attempt.request.run_group}"


def _name() -> str:
    return attempt_name(Attempt.model_validate(runtime.flow_run.parameters["attempt"]))


def end(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:  # Prefect gives the names
    """End the agent of a cancelled flow run, and keep what it left, if its own process could not complete that."""
    apply_settings()
    end_agent(Attempt.model_validate(flow_run.parameters["attempt"]))


@flow(name="attempt", flow_run_name=_name, on_cancellation=[end])
def attempt(attempt: Attempt) -> str:
    """Make one attempt: run the agent on one competition with one seed, and grade what it leaves.

    If its process is ended, the agent goes on, and the next flow run of this attempt on this host finds it. If the flow
    run is cancelled, the agent is ended, and what it has handed in is kept. If the job of its worker is about to end,
    the agent is ended, and another host goes on with the flow run.

    Args:
        attempt: The run group, the competition and the seed.
    """
    apply_settings()
    wait_for_server()
    _require_same(attempt)
    _tag_host()
    with watch_cancellation(str(runtime.flow_run.id), lambda: cancel_run(attempt)) as watcher:
        try:
            return _make(attempt)
        except Cancelled:
            _end_cancelled()
        except HandedOver as error:
            give_back(str(error))
        except TerminationSignal:
            watcher.stop()  # storing what the agent left may take a while
            if not _cancelled():
                leave_all()
                if slurm.job():  # which is being ended with all its processes, the agent's, too
                    remove_agent(attempt)
                    give_back("Its Slurm job was ended.")
                raise
            end_agent(attempt)
            if watcher.has_ended_process:
                _end_cancelled()
            raise


@task(name="attempt", task_run_name="attempt {attempt.name}")
def make_attempt(attempt: Attempt) -> str:
    """Make one attempt in this process."""
    return _make(attempt)


def _make(attempt: Attempt) -> str:
    with watched(attempt):
        agent_run(attempt)
        return grade(grade_request(attempt))


def _require_same(attempt: Attempt) -> None:
    """Raise `UserError` unless this host's agent is the one of the attempt's key."""
    if run_key(RunContext.of(attempt.request), attempt.seed, attempt.dataset_key or "") != attempt.key:
        raise UserError(
            f"{attempt.name}: the agent {attempt.request.agent!r} on host {get_settings().host_name} differs from the "
            "one that was submitted: install the same mlebench and the same agent on all hosts, then run again"
        )


def _cancelled() -> bool:
    """Whether the signal means that the flow run is cancelled. Otherwise its worker is being stopped."""
    # A server that is away is not waited for: the worker that is being stopped does not wait for long, either.
    with shown("whether an attempt is cancelled"), get_client(sync_client=True) as client:
        state = client.read_flow_run(runtime.flow_run.id).state
        return state is not None and (state.is_cancelling() or state.is_cancelled())
    return False  # then the hook `end` decides it


def _end_cancelled() -> NoReturn:
    end_as(CancelledState(message="Its agent was ended."))  # its worker may be gone


def _tag_host() -> None:
    """Tag the flow run with the name of this host, for boards. Not essential."""
    with shown("the host of an attempt"), get_client(sync_client=True) as client:
        flow_run = client.read_flow_run(runtime.flow_run.id)
        other_tags = [tag for tag in flow_run.tags if not tag.startswith("host:")]
        client.update_flow_run(flow_run.id, tags=[*other_tags, f"host:{get_settings().host_name}"])
