"""A short training, and buffers that note what goes in and out."""

from per_tutorial.dqn.config import DQNConfig
from per_tutorial.replay import PrioritizedReplayBuffer, ReplayBuffer

SHORT = DQNConfig(
    steps=240,
    hidden=(16, 16),
    double=False,
    dueling=False,
    loss="huber",
    learning_rate=0.01,
    learning_rate_end=0.0,
    max_grad_norm=None,
    batch_size=8,
    learning_starts=40,
    update_every=1,
    target_update_every=20,
    tau=1.0,
    alpha=0.6,
    beta_start=0.4,
    beta_end=1.0,
    normalize="batch",
    epsilon_schedule="linear",
    epsilon_start=1.0,
    epsilon_end=0.05,
    epsilon_steps=200,
)


class Recorded:
    """A replay buffer that notes what goes in and out; for one run in a stack."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.actions, self.replayed, self.td_errors = [], [], []

    def add(self, observation, action, *others):
        self.actions.append(int(action[0]))
        super().add(observation, action, *others)

    def sample(self, batch_size, beta, **options):
        batch = super().sample(batch_size, beta, **options)
        self.replayed.append(batch.indices[0].tolist())
        return batch

    def update_priorities(self, indices, td_errors):
        self.td_errors.append(td_errors[0])
        super().update_priorities(indices, td_errors)


class RecordedUniform(Recorded, ReplayBuffer):
    pass


class RecordedPrioritized(Recorded, PrioritizedReplayBuffer):
    pass


RECORDED = {"uniform": RecordedUniform, "proportional": RecordedPrioritized}
