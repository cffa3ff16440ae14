"""Step 5: grade a run's submission against the answers."""

from __future__ import annotations

from prefect import task
from prefect.logging import get_run_logger

from tasks.grading import grade_run
from tasks.wiring.context import open_store
from tasks.wiring.grades import finished_grade
from tasks.wiring.prefect_tasks import retry_options, while_stored
from tasks.wiring.requests import GradeRequest


def _stored_key(request: GradeRequest) -> str | None:
    return request.key if finished_grade(open_store(request.store), request) else None


@task(
    name="grade",
    task_run_name="grade {request.competition_id} seed {request.seed}",
    persist_result=True,
    cache_key_fn=while_stored(_stored_key),
    **retry_options(),
)
def grade(request: GradeRequest) -> str:
    """Grade a run; see `grade_run`. Logs the details if the grader itself failed."""
    record = grade_run(request)
    if record.detail:
        get_run_logger().error("%s", record.detail)
    return record.outcome
