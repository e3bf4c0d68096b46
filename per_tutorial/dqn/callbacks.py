"""Watch a training from outside: functions to pass to `train(..., callbacks=[...])`."""

import os
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

from per_tutorial.dqn.history import History

Callback = Callable[[History], object]
BAR = "{desc} {percentage:3.0f}% {bar:20} {n}/{total} steps [{elapsed}<{remaining}]{postfix}"


class ProgressBar:
    """Steps done, time taken, time left, and the mean return of the last 100 episodes."""

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._history: History | None = None  # of the training that is shown
        self._bar: Any = None

    def __call__(self, history: History) -> None:
        if history is not self._history:
            self._history = history
            before = [0, *history.log_steps][-2]  # not 0 if a training was continued
            self._bar = tqdm(
                total=history.config.steps,
                initial=before,
                desc=self._label,
                unit="step",
                file=sys.stdout,
                mininterval=0.5,
                position=0,  # not a line below the bar of an interrupted training
                bar_format=BAR,
            )
        recent = [episode_return for _, _, episode_return, _ in history.episodes[-100:]]
        if recent:
            self._bar.set_postfix_str(f" return {np.mean(recent):.1f}", refresh=False)
        self._bar.update(history.step - self._bar.n)
        if history.step == history.config.steps:
            self._bar.close()
            self._history = self._bar = None


class TensorBoard:
    """Write the measurements of every run as TensorBoard scalars (needs the extra `tensorboard`).

    Episodes are in CleanRL's `charts/episodic_return` and `charts/episodic_length`, the mean return
    of the last 100 in `charts/mean_return_100`, and measurements in `losses/…`.

    Args:
        folder: one sub-folder is made per seed. What an earlier training wrote there is no longer
            shown; a continued training is written in full, from its first step.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = lambda seed: SummaryWriter(f"{folder}/seed-{seed}", purge_step=0)
        self._history: History | None = None  # of the training that is written

    def __call__(self, history: History) -> None:
        if history is not self._history:
            self._history = history
            self._writers = [self._writer(seed) for seed in history.seeds]
            self._recent: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=100))  # by run
            self._episodes = self._rows = 0  # written so far
        for run, step, episode_return, length in history.episodes[self._episodes :]:
            recent, add = self._recent[run], self._writers[run].add_scalar
            recent.append(episode_return)
            add("charts/episodic_return", episode_return, step)
            add("charts/mean_return_100", np.mean(recent), step)
            add("charts/episodic_length", length, step)
        self._episodes = len(history.episodes)
        for row in range(self._rows, len(history.log_steps)):
            for name, rows in history.measures.items():
                for writer, value in zip(self._writers, rows[row], strict=True):
                    writer.add_scalar(f"losses/{name}", value, history.log_steps[row])
        self._rows = len(history.log_steps)
        if history.step == history.config.steps:
            for writer in self._writers:
                writer.close()
            self._history = None
