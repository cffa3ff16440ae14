"""What a container leaves: collected once, even if collecting was broken off."""

from __future__ import annotations

import contextlib

from sandbox.docker.watch import State, Watch
from sandbox.errors import BackendError
from sandbox.supervision import control
from sandbox.supervision.harvest import collect
from sandbox.world.files import remove_tree


def finish(watched: Watch, last: State, layout: control.Layout) -> control.Outcome:
    """Collect what the agent left, and write the outcome, last of all."""
    with contextlib.suppress(BackendError):
        remove_tree(layout.home / "tmp")
    has_submission, notes = collect(layout.home, layout.log, layout.collected, watched.limits)
    ending = watched.ending
    outcome = control.Outcome(
        status=ending.status if ending else "completed",
        message="; ".join([*([ending.message] if ending else []), *notes]) or None,
        exit_code=last.exit_code if ending is None or ending.status in ("crashed", "memory") else None,
        started_at=last.started_at.isoformat(),
        finished_at=last.finished_at.isoformat(),
        duration_seconds=(last.finished_at - last.started_at).total_seconds(),
        has_submission=has_submission,
    )
    control.write(layout.outcome, outcome)
    with contextlib.suppress(BackendError):
        remove_tree(layout.home)
    return outcome


def undo_collection(layout: control.Layout) -> None:
    """Undo a collection that was broken off: nothing is lost, and it can be done again."""
    for path in sorted(layout.collected.rglob("*")) if layout.collected.is_dir() else ():
        if path.is_file() and path.name != "agent.log":
            inside = path.relative_to(layout.collected)
            target = layout.home / ("submission/submission.csv" if str(inside) == "submission.csv" else inside)
            with contextlib.suppress(OSError):
                target.parent.mkdir(parents=True, exist_ok=True)
                path.rename(target)
    remove_tree(layout.collected)
