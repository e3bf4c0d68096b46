"""Naive twins of whole replay buffers: all is a Python list, computed anew for each question.

Of proportional and of rank-based replay the twins hold the priorities, the stored transitions and
the random stream of one run. TD errors are multiples of 1/8 and ε of 2⁻¹⁰, with α = 1, so that all
sums are exact and every draw has to be the very same.
"""

import math
from bisect import bisect_right
from itertools import accumulate

from naive import NaiveStream, naive_window

EPSILON = 2.0**-10
DISCOUNT = 0.5  # powers of it are exact


class NaiveBuffer:
    """One run: the transitions as a log, of which the last ``capacity`` count; uniform replay.

    A transition and its successor in the same environment are ``environments`` places apart.
    """

    def __init__(self, capacity: int, n_step: int, stream: int, environments: int = 1) -> None:
        self.capacity, self.n_step, self.environments = capacity, n_step, environments
        self.stream = NaiveStream(stream)
        self.log: list[tuple] = []  # (observation, action, reward, next, terminated, truncated)
        self.forgotten = 0  # transitions of the log that were let go, to save memory

    @property
    def added(self) -> int:
        return self.forgotten + len(self.log)

    @property
    def size(self) -> int:
        return min(self.added, self.capacity)

    def add(self, transition: tuple) -> None:
        self.log.append(transition)
        if len(self.log) > 4 * self.capacity + 64:
            gone = len(self.log) - self.capacity
            del self.log[:gone]
            self.forgotten += gone

    def cut(self) -> None:
        for place in range(max(0, len(self.log) - self.environments), len(self.log)):
            if not self.log[place][4]:
                self.log[place] = (*self.log[place][:5], True)

    def number_in(self, slot: int) -> int:
        """The number of the transition that lies in a slot."""
        newest = self.added - 1
        return newest - (newest - slot) % self.capacity

    def draw(self, batch_size: int) -> tuple[list[int], list[float]]:
        """Numbers and N · P of transitions."""
        slots = [int(self.stream.uniform() * self.size) for _ in range(batch_size)]
        return [self.number_in(slot) for slot in slots], [1.0] * batch_size

    def sample(self, batch_size: int, beta: float) -> tuple[list[int], list[float], list[tuple]]:
        """Numbers, raw weights, and windows."""
        numbers, relative = self.draw(batch_size)
        return numbers, [each**-beta for each in relative], [*map(self.window, numbers)]

    def window(self, number: int) -> tuple:
        """Observation, action, rewards, next observation, terminated, steps."""
        first, each = number - self.forgotten, self.environments
        steps = self.log[first : first + each * self.n_step : each]
        return naive_window(steps, 0, self.n_step, DISCOUNT)

    def update(self, numbers: list[int], td_errors: list[float]) -> None:
        pass

    def priorities(self) -> dict[int, float]:
        """By the number of the transition, relative to each other."""
        return {number: 1.0 for number in range(self.added - self.size, self.added)}


class NaiveProportional(NaiveBuffer):
    def __init__(self, *arguments: int) -> None:
        super().__init__(*arguments)
        self.leaves = [0.0] * self.capacity
        self.largest = 1.0

    def add(self, transition: tuple) -> None:
        self.leaves[self.added % self.capacity] = self.largest
        super().add(transition)

    def draw(self, batch_size: int) -> tuple[list[int], list[float]]:
        ends = list(accumulate(self.leaves))
        total, numbers, relative = ends[-1], [], []
        for k in range(batch_size):
            slot = bisect_right(ends, (k + self.stream.uniform()) / batch_size * total)
            numbers.append(self.number_in(slot))
            relative.append(self.size * self.leaves[slot] / total)
        return numbers, relative

    def update(self, numbers: list[int], td_errors: list[float]) -> None:
        for number, td_error in zip(numbers, td_errors, strict=True):
            if number >= self.added - self.capacity:
                priority = abs(td_error) + EPSILON
                self.leaves[number % self.capacity] = priority
                self.largest = max(self.largest, priority)

    def priorities(self) -> dict[int, float]:
        return {
            number: self.leaves[number % self.capacity]
            for number in range(self.added - self.size, self.added)
        }


class NaiveRank(NaiveBuffer):
    """A sorted list after every `sort_every` writes and a textbook's heap in between."""

    alpha = 0.7

    def __init__(self, *arguments: int, sort_every: int) -> None:
        super().__init__(*arguments)
        self.sort_every = sort_every
        self.heap: list[list] = []  # [key, slot]
        self.writes = 0
        self.largest = 1.0

    def _place_of(self, slot: int) -> int:
        return next(place for place, (_, own) in enumerate(self.heap) if own == slot)

    def _write(self, slot: int, key: float) -> None:
        if any(own == slot for _, own in self.heap):
            place = self._place_of(slot)
            self.heap[place][0] = key
        else:
            self.heap.append([key, slot])
            place = len(self.heap) - 1
        heap = self.heap
        while place and heap[(place - 1) // 2][0] <= heap[place][0]:
            parent = (place - 1) // 2
            heap[place], heap[parent] = heap[parent], heap[place]
            place = parent
        while True:
            children = [c for c in (2 * place + 1, 2 * place + 2) if c < len(heap)]
            larger = max(children, key=lambda c: heap[c][0], default=None)
            if larger is None or heap[larger][0] <= heap[place][0]:
                break
            heap[place], heap[larger] = heap[larger], heap[place]
            place = larger
        self.writes += 1
        self.largest = max(self.largest, key)

    def _sort_if_due(self) -> None:
        if self.writes >= self.sort_every:
            self.heap.sort(key=lambda entry: -entry[0])
            self.writes = 0

    def add(self, transition: tuple) -> None:
        self._write(self.added % self.capacity, self.largest)
        self._sort_if_due()
        super().add(transition)

    def draw(self, batch_size: int) -> tuple[list[int], list[float]]:
        sums = list(accumulate(rank**-self.alpha for rank in range(1, self.size + 1)))
        numbers, relative = [], []
        for k in range(batch_size):
            prefix = (k + self.stream.uniform()) / batch_size * sums[-1]
            place = min(bisect_right(sums, prefix), self.size - 1)
            numbers.append(self.number_in(self.heap[place][1]))
            relative.append(self.size * (place + 1) ** -self.alpha / sums[-1])
        return numbers, relative

    def update(self, numbers: list[int], td_errors: list[float]) -> None:
        for number, td_error in zip(numbers, td_errors, strict=True):
            if number >= self.added - self.capacity:
                self._write(number % self.capacity, abs(td_error))
        self._sort_if_due()

    def priorities(self) -> dict[int, float]:
        return {
            self.number_in(slot): (place + 1) ** -self.alpha
            for place, (_, slot) in enumerate(self.heap)
        }


def normalized(
    weights: list[float], priorities: dict[int, float], kind: str, beta: float
) -> list[float]:
    """What importance-sampling weights are after they were divided by the largest one."""
    if kind == "none":
        return weights
    if kind == "batch":
        largest = max(weights)
    else:
        total = math.fsum(priorities.values())
        largest = (len(priorities) * min(priorities.values()) / total) ** -beta
    return [weight / largest for weight in weights]
