"""Where an agent works."""

from __future__ import annotations

import copy
import json
import os
import signal
import time
from argparse import Namespace
from typing import Any, Self

from .high_level_actions import HIGH_LEVEL_ACTIONS
from .LLM import complete_text_claude  # noqa: F401  # the original does so, too
from .low_level_actions import LOW_LEVEL_ACTIONS
from .prepare_task import get_task_info
from .schema import Action, EnhancedJSONEncoder, EnvException, Step, Trace


class TimeoutException(Exception):
    """The time is over."""


class Environment:
    """The folders, actions and trace of an agent. `args.max_time` is a whole number of seconds."""

    def __init__(self, args: Namespace) -> None:
        self.args = args
        self.log_dir = os.path.join(args.log_dir, "env_log")  # noqa: PTH118
        os.makedirs(os.path.join(self.log_dir, "tool_logs"))  # noqa: PTH103, PTH118
        self.benchmark_folder_name, self.research_problem = get_task_info(args.task)
        self.work_dir = os.path.join(args.work_dir, self.benchmark_folder_name)  # noqa: PTH118
        self.read_only_files: list[str] = []
        self._initialize_task_env()
        self.action_infos = {each.name: each for each in (*LOW_LEVEL_ACTIONS, *HIGH_LEVEL_ACTIONS)}
        del self.action_infos["Request Help"]
        self._trace = Trace([])
        self.start_time = time.time()

    def _initialize_task_env(self) -> None:
        raise NotImplementedError("copies the folder of a task of the original benchmark")

    @property
    def trace(self) -> Trace:
        """A copy of the trace."""
        return copy.deepcopy(self._trace)

    def __enter__(self) -> Self:
        def end(_number: int, _frame: Any) -> None:
            raise TimeoutException("Timed out!")

        signal.signal(signal.SIGALRM, end)
        signal.alarm(self.args.max_time)
        return self

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)

    def is_final(self) -> bool:
        """Whether the agent has given its answer, or used up its steps or its time."""
        answered = any(each.action.name == "Final Answer" for each in self._trace.steps)
        over = time.time() - self.start_time > self.args.max_time
        return answered or over or len(self._trace.steps) >= self.args.max_steps

    def execute(self, action: Action) -> str:
        """Execute an action and return the observation."""
        number = len(self._trace.steps)
        options = {"device": self.args.device, "python": self.args.python, "work_dir": self.work_dir}
        log_file = os.path.join(self.log_dir, "tool_logs", f"step_{number}_tool_log.log")  # noqa: PTH118
        if action.name == "Final Answer":
            observation = "end"
        elif not isinstance(action.args, dict):
            observation = "The action input needs to be a valid json with proper entries."
        else:
            try:
                function = self.action_infos[action.name].function
                observation = function(**action.args, log_file=log_file, trace=self._trace, args=self.args, **options)
            except EnvException as error:
                observation = f"EnvError: {error}"
        self._trace.steps.append(Step(action, observation, time.time()))
        self.save(number)
        return observation

    def save(self, curr_step: int | str) -> None:
        """Write the trace."""
        with open(os.path.join(self.log_dir, f"trace-{curr_step}.json"), "w") as file:  # noqa: PTH118, PTH123
            json.dump(self.trace, file, cls=EnhancedJSONEncoder)
