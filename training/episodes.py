"""Episodes at the same time: their datasets, their sandboxes, their slots of the host, and their journal."""

from __future__ import annotations

import contextlib
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from common.errors import UserError
from common.settings import Settings, get_settings
from competitions import registry
from competitions.competition import Competition
from competitions.editions import Edition
from sandbox.backend import Allocation, RunSpec
from sandbox.host.slots import Claim
from sandbox.isolation import Isolation
from storage.dataset import Dataset
from storage.store import Store
from storage.training_mark import mark
from storage.writers import StoreError
from tasks.wiring.context import caps, local_cache
from tasks.wiring.host import host_slots
from training.actions import Action, Observation
from training.datasets import TrainingDataset, has_whole_test_set, is_evaluated, require_allowed
from training.episode import Episode, EpisodeLimits, Step
from training.journal import Journal, Trajectory
from training.sandboxes import Sandboxes, in_parallel

_logger = logging.getLogger("mlebench.training")
SEEDS, DRAWN_SEEDS = 2**63, 2**32
"""Seeds are below the first, as the table of episodes has them, and drawn ones below the second, as numpy has them."""
_GRADED = 8
"""Datasets whose graders are kept running, at least. The graders of a dataset take some hundred MB."""
_PAUSE_SECONDS = 0.1
_IDS = re.compile(r"[A-Za-z0-9._-]{1,64}")


class NoSlot(UserError):
    """All slots of the host are taken."""


@dataclass(frozen=True)
class TrainingOptions:
    """The operator's choices."""

    competitions: tuple[str, ...]
    edition: Edition = "v1"
    isolation: Isolation = field(default_factory=lambda: Isolation("docker", network="none"))
    limits: EpisodeLimits = field(default_factory=EpisodeLimits)
    warm: int = 0
    """Sandboxes that are started before an episode needs them."""
    allow_eval: bool = False
    allow_test_scores: bool = False
    patience: float = 20.0
    """Seconds to wait for a slot: an episode that has just ended is still being removed."""
    group: str | None = None
    """The name under which episodes are recorded; by default they are not."""


class Running:
    """An episode in progress, with what the journal says about it."""

    def __init__(
        self, episode: Episode, record: dict[str, Any], journal: Journal | None, release: Callable[[], None]
    ) -> None:
        self.episode, self._record, self._journal = episode, record, journal
        self.trajectory, self.touched, self._began = Trajectory(), time.monotonic(), time.monotonic()
        self._mutex, self._ending = threading.Lock(), threading.Lock()
        self._removal = threading.Thread(target=release, name="episode end", daemon=True)
        self._ended = False

    @property
    def id(self) -> str:
        """The id of the episode."""
        return self.episode.id

    @property
    def seed(self) -> int:
        """The seed that the agent is told."""
        return int(self._record["seed"])

    def begun(self) -> Observation:
        """What the agent is told first."""
        observation = self.episode.begun()
        self.trajectory.begun(observation)
        return observation

    def step(self, action: Action) -> Step:
        """Carry out an action. At the end of the episode, its sandbox is removed, for which nobody waits."""
        with self._mutex:
            if self._ended:
                raise UserError("the episode has ended: reset the environment")
            self.touched = time.monotonic()
            step = self.episode.step(action)
            self.trajectory.add(action, step.observation, step.reward)
            self.touched = time.monotonic()
        if step.done:
            self._end()
        return step

    def idle_seconds(self) -> float:
        """Time since the last action; 0 during one."""
        return 0.0 if self._mutex.locked() else time.monotonic() - self.touched

    def row(self) -> dict[str, Any]:
        """The row of the table of episodes."""
        episode, info = self.episode, self.episode.info
        judged = {name: info.get(name) for name in ("valid", "score", "part", "medal", "human_percentile")}
        return {
            **self._record,
            **judged,
            "improvement": info.get("improvement"),
            "end": info.get("end", "abandoned"),
            "reward": episode.reward if info else None,
            "steps": episode.steps,
            "public_scores": episode.limits.public_scores - episode.left().public_scores,
            "duration_seconds": time.monotonic() - self._began,
        }

    def close(self) -> None:
        """End the episode if it has not ended, and remove its sandbox. An action in progress is interrupted."""
        self._end()
        self._removal.join()

    def _end(self) -> None:
        with self._ending:
            if self._ended:
                return
            self._ended = True
            try:  # before the removal: until that has ended, who ends all episodes finds this one, and waits
                if self._journal is not None:
                    self._journal.record(self.row(), self.trajectory)
            except StoreError as error:  # the client still gets its reward
                _logger.warning("episode %s is not recorded: %s", self.id, error)
            finally:
                self._removal.start()


class Episodes:
    """Begins episodes. Its methods may be called from any thread. Close it, or use it in a `with` statement."""

    def __init__(self, store: Store, options: TrainingOptions, settings: Settings | None = None) -> None:
        """Check that the datasets are there and may be used, and remove sandboxes that killed processes have left.

        Raises:
            UserError: a competition is not prepared or must not be trained on, or this machine cannot run sandboxes.
        """
        if not options.competitions:
            raise UserError("nothing to train on: name competitions")
        self._store, self.options, self._settings = store, options, settings or get_settings()
        for competition_id in options.competitions:
            self._require_allowed(competition := registry.get(competition_id), whole=has_whole_test_set(competition))
        self._resources = contextlib.ExitStack()
        self._datasets: dict[str, TrainingDataset] = {}
        self._running: dict[str, Running | None] = {}  # None while it is being started
        self._recent: list[TrainingDataset] = []
        self._free = threading.Semaphore(self._settings.agents)
        self._mutex = threading.Lock()
        self._writer = secrets.token_hex(4)
        self._marked = False
        self._journal = Journal(store, options.group, self._writer) if options.group else None
        try:
            for competition_id in options.competitions:
                dataset = Dataset(options.edition, competition_id)
                opened = self._resources.enter_context(TrainingDataset(store, dataset, local_cache()))
                self._require_allowed(opened.competition, whole=opened.whole)
                self._datasets[competition_id] = opened
            self._sandboxes = self._resources.enter_context(
                Sandboxes(options.isolation, self._settings.scratch, options.warm)
            )
            self._background = self._resources.enter_context(ThreadPoolExecutor(1, "graders"))
            first = next(iter(self._datasets.values()))
            self._sandboxes.start_ahead(self._spec(first), first.kind)
            self._warm(first)
        except BaseException:
            self._resources.close()
            raise

    def _require_allowed(self, competition: Competition, *, whole: bool) -> None:
        allowed = self.options
        require_allowed(
            competition, whole=whole, allow_eval=allowed.allow_eval, allow_test_scores=allowed.allow_test_scores
        )

    @property
    def names(self) -> Collection[str]:
        """The names of the datasets."""
        return self._datasets.keys()

    @property
    def slots(self) -> int:
        """The number of episodes at the same time."""
        return self._settings.agents

    def running(self) -> list[Running]:
        """The episodes in progress."""
        with self._mutex:
            return [running for running in self._running.values() if running is not None]

    def begin(self, competition: str | None = None, seed: int | None = None, id: str | None = None) -> Running:
        """Begin an episode.

        Args:
            competition: one of `names`; by default chosen by the seed.
            seed: the seed that the agent is told; by default drawn.
            id: a name that no other episode has.

        Raises:
            NoSlot: as many episodes or runs as the host has slots for are in progress.
            UserError: there is no such dataset, the id cannot be used, or no sandbox can be started.
        """
        seed = secrets.randbelow(DRAWN_SEEDS) if seed is None else seed
        if not 0 <= seed < SEEDS:
            raise UserError("a seed is a whole number from 0 to 2^63 - 1")
        names = sorted(self._datasets)
        name = competition or names[seed % len(names)]
        if name not in self._datasets:
            raise UserError(f"{name!r} is not served; there is {', '.join(names)}")
        if id is not None and _IDS.fullmatch(id) is None:
            raise UserError("an episode_id has 1 to 64 letters, digits, dots, hyphens and underscores")
        if id is not None and self._journal is not None and self._journal.has(id):
            raise UserError(f"an episode {id} is recorded under the name {self.options.group}: choose another id")
        id = id or f"{self._writer}-{secrets.token_hex(8)}"
        dataset, resources = self._datasets[name], contextlib.ExitStack()
        with self._mutex:
            if id in self._running:
                raise UserError(f"an episode {id} is in progress")
            self._running[id] = None
        resources.callback(self._running.pop, id)  # at last: who ends all episodes has to find it until then
        try:
            if not self._marked and dataset.whole:
                mark(self._store, dataset.id, self._settings.host_name, self.options.group)
                self._marked = True
            self._warm(dataset)
            resources.enter_context(self._slot(id))
            sandbox = self._sandboxes.take(self._spec(dataset), dataset.kind)
            resources.callback(sandbox.close)
            episode = Episode(id, dataset, sandbox, self.options.limits, seed)
        except BaseException:
            resources.close()
            raise
        running = Running(episode, self._record(id, dataset, seed), self._journal, resources.close)
        with self._mutex:
            self._running[id] = running
        return running

    def _slot(self, id: str) -> contextlib.ExitStack:
        """A slot of the host, which runs of agents share with episodes. Raises `NoSlot`."""

        def refuse(reason: str) -> None:
            raise NoSlot(f"all {self.slots} slots of this host (MLEBENCH_AGENTS) are taken: {reason}")

        claim = Claim(f"episode-{id}", "", self.options.isolation.backend, labels={"episode": id})
        deadline = time.monotonic() + self.options.patience
        if not self._free.acquire(timeout=self.options.patience):  # however many wait, few ask for slots of the host
            refuse("they have episodes of this server")
        slot = contextlib.ExitStack()
        slot.callback(self._free.release)
        while True:
            try:
                slot.enter_context(host_slots().take(claim, self.slots, refuse))
            except NoSlot:
                if time.monotonic() > deadline:
                    slot.close()
                    raise
                time.sleep(_PAUSE_SECONDS)
            except BaseException:
                slot.close()
                raise
            else:
                return slot

    def _warm(self, dataset: TrainingDataset) -> None:
        """Start the graders of a dataset before they are needed, and end those that were used longest ago."""
        with self._mutex:
            recent = [dataset, *(each for each in self._recent if each is not dataset)]
            most = max(_GRADED, self.slots)
            self._recent, old = recent[:most], recent[most:]
        if self.options.warm:
            self._background.submit(dataset.warm)
        for each in old:
            self._background.submit(each.rest)

    def _spec(self, dataset: TrainingDataset) -> Callable[[Path], RunSpec]:
        agent, seconds = self._sandboxes.agent, self.options.limits.seconds
        limits = agent.limits.override(time_limit_seconds=seconds)
        limits = limits.capped(caps(self._settings).override(time_limit_seconds=seconds))
        return dataset.spec(agent, limits, Allocation(slots=self.slots))

    def _record(self, id: str, dataset: TrainingDataset, seed: int) -> dict[str, Any]:
        return {
            "episode_id": id,
            "competition_id": dataset.competition.id,
            "edition": dataset.dataset.edition,
            "dataset_key": dataset.dataset.key,
            "seed": seed,
            "division": "eval" if is_evaluated(dataset.competition) else "train",
            "test_scores": dataset.whole,
            "backend": self.options.isolation.backend,
            "started_at": datetime.now(UTC).isoformat(),
        }

    def close(self) -> None:
        """End all episodes and remove their sandboxes."""
        in_parallel(Running.close, self.running())
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
