"""torchrl's DQN with prioritised replay on CartPole.

    pip install "per_tutorial[torchrl]"  # before a release: from the address in the README
    python torchrl_dqn.py --steps 20000 --seed 1

Four places differ from uniform replay: the sampler, its β, the weights in the loss, and the line
that writes the TD errors back. `DQNLoss` puts δ² into "td_error", so `squared=True` tells the
sampler to take the root. The loss is weighted here because `DQNLoss` would divide by the sum of
the weights.
"""

import argparse

import torch
from tensordict.nn import TensorDictSequential
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymEnv, StepCounter, TransformedEnv
from torchrl.modules import MLP, EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, SoftUpdate

from per_tutorial.integrations.torchrl import PrioritizedSampler

BATCH = 64

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--steps", type=int, default=20_000, help="environment steps (20000)")
parser.add_argument("--seed", type=int, default=1, help="of networks, environment and replay (1)")
arguments = parser.parse_args()
steps = max(arguments.steps, 2 * BATCH)

torch.manual_seed(arguments.seed)
environment = TransformedEnv(GymEnv("CartPole-v1", categorical_action_encoding=True), StepCounter())
environment.set_seed(arguments.seed)
network = MLP(in_features=4, out_features=2, num_cells=[128, 128])
actor = QValueActor(network, in_keys=["observation"], spec=environment.action_spec)
explore = EGreedyModule(
    environment.action_spec, eps_init=1.0, eps_end=0.05, annealing_num_steps=steps // 2
)
policy = TensorDictSequential(actor, explore)

sampler = PrioritizedSampler(100_000, alpha=0.6, beta=0.4, squared=True, seed=arguments.seed)
buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(100_000), sampler=sampler, batch_size=BATCH
)
loss_of = DQNLoss(
    actor,
    action_space=environment.action_spec,
    delay_value=True,
    loss_function="l2",
    reduction="none",
    use_prioritized_weights=False,
)
loss_of.make_value_estimator(gamma=0.99)
target = SoftUpdate(loss_of, eps=0.99)
optimizer = torch.optim.Adam(loss_of.parameters(), lr=1e-3)

lengths = []
state = environment.reset()
for step in range(1, steps + 1):
    with torch.no_grad():
        transition, state = environment.step_and_maybe_reset(policy(state))
    explore.step()
    if transition["next", "done"].item():
        lengths.append(transition["next", "step_count"].item())
    buffer.add(transition)  # with the largest priority so far
    sampler.beta = min(1.0, 0.4 + 0.6 * step / steps)  # as in the paper
    if step % 4 == 0 and step >= BATCH:
        batch = buffer.sample()
        loss = (batch["priority_weight"] * loss_of(batch)["loss"]).mean()  # both are (batch,)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        target.step()
        buffer.update_tensordict_priority(batch)  # the loss has set its "td_error"
recent = lengths[-20:]
mean = sum(recent) / max(1, len(recent))
print(f"The last {len(recent)} of {len(lengths)} episodes: {mean:.0f} steps.")

# What is replayed most: a few transitions hold much of the probability.
shares = sampler.probabilities()
shares = shares[shares > 0].sort(descending=True).values
tenth = shares[: max(1, len(shares) // 10)].sum().item()
print(f"Of {len(shares)} transitions, the top tenth holds {tenth:.0%} of the probability.")
