// The Blind Cliffwalk and its replay, as in per_tutorial/cliffwalk/environment.py and
// cliffwalk/learner.py: the tabular learner, without noise. Nothing here draws pictures.

import { normal, shuffle } from "../random.js";
import { SumTree } from "../sum-tree/sum-tree.js";

export const SAMPLERS = ["uniform", "greedy", "proportional", "oracle"];
export const CONVERGED = 1e-3; // mean squared error of Q below which learning is done

/** The action that leads on: 0 in even states, 1 in odd ones. */
export const rightAction = (state) => state % 2;

/** Q of the best policy, at place 2 · state + action. */
export function trueValues(n) {
  const values = new Float64Array(2 * n);
  for (let state = 0; state < n; state++) {
    values[2 * state + rightAction(state)] = (1 - 1 / n) ** (n - 1 - state);
  }
  return values;
}

/**
 * Every sequence of n actions, played until its episode ends, all in random order.
 *
 * A list of {state, action, reward, next}, 2^(n+1) − 2 long; `next` is −1 where the episode ended.
 */
export function makeMemory(n, random) {
  const memory = [];
  for (let state = 0; state < n; state++) {
    for (const action of [0, 1]) {
      const leadsOn = action === rightAction(state);
      const arrives = leadsOn && state === n - 1;
      const next = leadsOn && !arrives ? state + 1 : -1;
      for (let copy = 0; copy < 2 ** (n - 1 - state); copy++) {
        memory.push({ state, action, reward: arrives ? 1 : 0, next });
      }
    }
  }
  return shuffle(memory, random);
}

/** A table of Q to start from: numbers of standard deviation 0.1. */
export function randomValues(n, random) {
  return Float64Array.from({ length: 2 * n }, () => 0.1 * normal(random));
}

/** A heap of keys, the largest on top, as in per_tutorial/replay/samplers/rank_based.py. */
class Heap {
  constructor(capacity) {
    this.size = 0;
    this.keys = new Float64Array(capacity + 1);
    this.slots = new Int32Array(capacity + 1); // position → slot; the top is position 1
    this.ranks = new Int32Array(capacity); // slot → position
  }

  get top() {
    return this.slots[1];
  }

  add(slot, key) {
    this.size += 1;
    this.#settle(this.size, key, slot);
  }

  set(slot, key) {
    this.#settle(this.ranks[slot], key, slot);
  }

  /** Put (key, slot) into the hole at `rank`, and move it to where it belongs. */
  #settle(rank, key, slot) {
    const { keys, size } = this;
    while (rank > 1 && keys[rank >> 1] <= key) {
      this.#move(rank >> 1, rank);
      rank >>= 1;
    }
    while (2 * rank <= size) {
      let child = 2 * rank;
      if (child < size && keys[child + 1] > keys[child]) child += 1;
      if (keys[child] <= key) break;
      this.#move(child, rank);
      rank = child;
    }
    keys[rank] = key;
    this.slots[rank] = slot;
    this.ranks[slot] = rank;
  }

  #move(from, to) {
    this.keys[to] = this.keys[from];
    this.slots[to] = this.slots[from];
    this.ranks[this.slots[to]] = to;
  }
}

/** What a sampler needs: which transition is next, and what it does with |δ| after a replay. */
const CHOICES = {
  uniform: ({ memory, random }) => ({
    choose: () => Math.floor(random() * memory.length),
    note() {},
  }),
  greedy({ memory }) {
    const heap = new Heap(memory.length);
    memory.forEach((_, k) => heap.add(k, 1));
    return { choose: () => heap.top, note: (k, size) => heap.set(k, size) };
  },
  proportional({ memory, random, alpha, epsilon }) {
    const tree = new SumTree(memory.length);
    memory.forEach((_, k) => tree.set(k, 1));
    return {
      choose: () => tree.find(random() * tree.total),
      note: (k, size) => tree.set(k, (size + epsilon) ** alpha),
    };
  },
  /** Copies are alike, so the oracle tries one transition of each kind. */
  oracle(learner) {
    const kinds = Array.from(learner.q, (_, place) =>
      learner.memory.findIndex(({ state, action }) => 2 * state + action === place),
    );
    return { choose: () => learner.bestOf(kinds), note() {} };
  },
};

/**
 * A learner of the walk.
 *
 * Settings: n; sampler, one of SAMPLERS; memory, of makeMemory; q, the table to start from (it is
 * copied); random, a function that returns numbers in [0, 1); and alpha, epsilon (of the proportional
 * sampler) and stepSize.
 */
export class Learner {
  constructor({ n, sampler, memory, q, random, alpha = 0.7, epsilon = 1e-6, stepSize = 0.25 }) {
    if (!SAMPLERS.includes(sampler)) {
      throw new RangeError(`sampler: must be one of ${SAMPLERS.join(", ")}, got ${sampler}`);
    }
    Object.assign(this, { n, sampler, memory, random, alpha, epsilon, stepSize });
    this.q = Float64Array.from(q);
    this.truth = trueValues(n);
    this.discount = 1 - 1 / n;
    this.updates = 0;
    this.last = -1; // the transition that was replayed last
    this.choice = CHOICES[sampler](this);
  }

  /** The mean squared error of q. */
  get loss() {
    const { q, truth } = this;
    let total = 0;
    for (let place = 0; place < q.length; place++) total += (q[place] - truth[place]) ** 2;
    return total / q.length;
  }

  get converged() {
    return this.loss < CONVERGED;
  }

  /** Replay up to `updates` more transitions, fewer if learning converges; return how many. */
  run(updates) {
    for (let done = 0; done < updates; done++) {
      if (this.converged) return done;
      const k = this.choice.choose();
      this.choice.note(k, Math.abs(this.#replay(k)));
      this.last = k;
      this.updates += 1;
    }
    return updates;
  }

  /** Of these transitions, the one whose replay leaves the least error: tries each, takes it back. */
  bestOf(kinds) {
    let best = kinds[0];
    let least = Infinity;
    for (const k of kinds) {
      const { state, action } = this.memory[k];
      const before = this.q[2 * state + action];
      this.#replay(k);
      const { loss } = this;
      this.q[2 * state + action] = before;
      if (loss < least) [best, least] = [k, loss];
    }
    return best;
  }

  /** Take away a part of the TD error of transition k; return the TD error. */
  #replay(k) {
    const { q, discount, stepSize } = this;
    const { state, action, reward, next } = this.memory[k];
    const following = next < 0 ? 0 : Math.max(q[2 * next], q[2 * next + 1]);
    const delta = reward + discount * following - q[2 * state + action];
    q[2 * state + action] += stepSize * delta;
    return delta;
  }
}
