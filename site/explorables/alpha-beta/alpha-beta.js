// Proportional replay, as in per_tutorial/replay/samplers/proportional.py. Nothing here draws pictures.

import { SumTree } from "../sum-tree/sum-tree.js";

const EPSILON = 1e-6;

/** A sum tree whose leaves are (|δ| + ε)^α. */
export function priorityTree(tdErrors, alpha) {
  const tree = new SumTree(tdErrors.length);
  tdErrors.forEach((error, leaf) => tree.set(leaf, (Math.abs(error) + EPSILON) ** alpha));
  return tree;
}

/** P(i) of every transition. */
export function probabilities(tree) {
  return Array.from({ length: tree.capacity }, (_, leaf) => tree.get(leaf) / tree.total);
}

/** Draw a minibatch: cut [0, total) into `batchSize` equal ranges, and draw once in each. */
export function sample(tree, batchSize, random) {
  return Array.from({ length: batchSize }, (_, k) =>
    tree.find(((k + random()) / batchSize) * tree.total),
  );
}

/**
 * The weights (N · P(i))^−β of the transitions `drawn`, divided by the largest one of the "batch" or
 * of the whole "buffer", or by nothing ("none").
 */
export function importanceWeights(P, drawn, beta, normalize = "batch") {
  const weight = (i) => (P.length * P[i]) ** -beta;
  const divisors = {
    batch: () => Math.max(...drawn.map(weight)),
    buffer: () => (P.length * Math.min(...P)) ** -beta,
    none: () => 1,
  };
  const divisor = divisors[normalize]();
  return drawn.map((i) => weight(i) / divisor);
}

/** How many equally weighted draws these are worth: (Σw)² / Σw². */
export function effectiveSize(weights) {
  const sum = weights.reduce((total, w) => total + w, 0);
  return sum ** 2 / weights.reduce((total, w) => total + w * w, 0);
}
