"""`train`: runs side by side, and what their greedy policies reach."""

import dataclasses
import shlex
import warnings
from typing import Annotated

import tyro

from per_tutorial.cli.files import check_folders, check_targets, save_results
from per_tutorial.common.arguments import whole_number
from per_tutorial.dqn.config import SAMPLER_SETTINGS, DQNConfig


def train(
    config: Annotated[DQNConfig, tyro.conf.arg(name="")],  # without a name, its errors are ours
    runs: int = 10,
    first_seed: int = 0,
    out: str | None = None,
    save: str | None = None,
    checkpoint: str | None = None,
    checkpoint_every: int = 10_000,
    tensorboard: str | None = None,
    episodes: int = 20,
    quiet: bool = False,
) -> None:
    """Train runs of DQN side by side, then let their greedy policies play.

    Without options that is uniform replay on CartPole; for PER, say --sampler proportional.

    Args:
        config: the settings of the training
        runs: runs side by side
        first_seed: seed of the first
        out: file for the history, a tidy CSV
        save: file for the trained networks (safetensors); the command evaluate plays them
        checkpoint: folder; write the whole training there at intervals, and continue the one there
        checkpoint_every: environment steps between checkpoints
        tensorboard: folder for TensorBoard scalars
        episodes: episodes to evaluate each agent on
        quiet: no progress bar
    """
    _warn_of_no_effect(config)
    whole_number("--runs", runs)
    whole_number("--episodes", episodes)
    whole_number("--checkpoint-every", checkpoint_every)
    check_folders(checkpoint=checkpoint, tensorboard=tensorboard)
    check_targets(out=out, save=save)

    import numpy as np

    from per_tutorial.dqn import training
    from per_tutorial.dqn.callbacks import Callback, ProgressBar, TensorBoard
    from per_tutorial.dqn.checkpoints import Checkpoints

    checkpoints = Checkpoints(checkpoint, every=checkpoint_every) if checkpoint else None
    callbacks: list[Callback] = [] if quiet else [ProgressBar(config.sampler)]
    if tensorboard:
        callbacks.append(TensorBoard(tensorboard))
    seeds = range(first_seed, first_seed + runs)
    history = training.train(config, seeds, callbacks=callbacks, checkpoints=checkpoints)
    if history.step < config.steps:  # stopped, in an interactive session
        raise KeyboardInterrupt
    save_results(history, out, save)
    greedy = training.evaluate(history.agent, episodes).mean(axis=1)
    for seed, value in zip(history.seeds, greedy, strict=True):
        print(f"seed {seed}: greedy return {value:.1f}")
    tenth, median = np.percentile(greedy, (10, 50))
    print(
        f"greedy return over {runs} runs, the mean of {episodes} episodes each: "
        f"median {median:.1f}, 10th percentile {tenth:.1f}, lowest {greedy.min():.1f}"
    )
    if save is None:
        print("the agents were not kept: with --save FILE they can be evaluated and filmed")
        return
    # For "module:Name-v0", Gymnasium imports the module.
    trusted = " --trusted" if ":" in config.env else ""
    play = f"python -m per_tutorial evaluate {shlex.quote(save)}{trusted}"
    print(f"play them again: {play}\nfilm the first:  {play} --video episode.mp4")


def _warn_of_no_effect(config: DQNConfig) -> None:
    """Warn of settings of samplers that are not at work."""
    of_samplers = {name for settings in SAMPLER_SETTINGS.values() for name in settings}
    at_work = {*SAMPLER_SETTINGS[config.sampler], *(["kappa"] * (config.loss == "huber"))}
    for field in dataclasses.fields(config):
        given = getattr(config, field.name) != field.default
        if given and field.name in of_samplers - at_work:
            option = f"--{field.name.replace('_', '-')}"
            warnings.warn(f"{option}: no effect with --sampler {config.sampler}", stacklevel=2)
