"""What a client of the server does: it resets, steps, and asks for the state, one episode after the other."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.errors import UserError
from sandbox.serving import in_thread
from training.actions import Action, Observation
from training.episode import Step
from training.episodes import Episodes, NoSlot, Running

_logger = logging.getLogger("mlebench.training")


class Reset(BaseModel):
    """What a client may say of the episode that it begins."""

    model_config = ConfigDict(extra="ignore")

    seed: int | None = Field(default=None, ge=0, description="SEED in the sandbox; chooses the competition, too.")
    episode_id: str | None = Field(default=None, max_length=64, description="A name that no other episode has.")
    competition: str | None = Field(default=None, max_length=200, description="One of those that are served.")


class State(BaseModel):
    """The state of a session. It has nothing of other episodes, and nothing of the answers."""

    episode_id: str | None = None
    step_count: int = 0
    competition: str | None = None
    done: bool = False


class Rejected(Exception):
    """A message that is answered with an error: its code in OpenEnv, and the text."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


class Session:
    """One episode after the other, for one client."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes
        self.running: Running | None = None

    async def reset(self, data: dict[str, Any]) -> dict[str, Any]:
        """End the episode, if one is in progress, and begin another one."""
        asked = _validated(Reset, data)
        if self.running is not None and not self.running.episode.ended:  # nobody waits for the removal of one that has
            await self.close()

        def begin() -> tuple[Running, Observation]:
            running = self._episodes.begin(asked.competition, asked.seed, asked.episode_id)
            try:
                return running, running.begun()
            except BaseException:
                running.close()
                raise

        with _refusals():
            self.running, observation = await in_thread(begin)
        return _answer(observation)

    async def step(self, data: dict[str, Any]) -> dict[str, Any]:
        """Carry out an action."""
        action, running = _validated(Action, data), self.running
        if running is None:
            raise Rejected("EXECUTION_ERROR", "no episode is in progress: reset the environment")
        with _refusals():
            return _answer(await in_thread(lambda: running.step(action)))

    def state(self) -> dict[str, Any]:
        """The state of the session."""
        if self.running is None:
            return State().model_dump()
        episode = self.running.episode
        state = State(
            episode_id=episode.id, step_count=episode.steps, competition=episode.dataset.id, done=episode.ended
        )
        return state.model_dump()

    async def close(self) -> None:
        """End the episode."""
        running, self.running = self.running, None
        if running is not None:
            await in_thread(running.close)


def _validated(model: Any, data: dict[str, Any]) -> Any:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the message"
        raise Rejected("VALIDATION_ERROR", f"{where}: {first['msg']}", 422) from None


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Raise errors as `Rejected`. Those that no client can cause are logged; clients learn only that there is one."""
    try:
        yield
    except NoSlot as error:
        raise Rejected("CAPACITY_REACHED", str(error), 503) from None
    except UserError as error:
        raise Rejected("EXECUTION_ERROR", str(error), 409) from None
    except Exception as error:
        _logger.exception("an action failed")
        raise Rejected("EXECUTION_ERROR", "the server failed; its log says why", 500) from error


def _answer(told: Observation | Step) -> dict[str, Any]:
    """An observation as clients of OpenEnv read it."""
    if isinstance(told, Step):
        return {"observation": told.observation.model_dump(), "reward": told.reward, "done": told.done}
    return {"observation": told.model_dump(), "reward": None, "done": False}
