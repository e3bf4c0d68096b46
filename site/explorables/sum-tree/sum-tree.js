// The sum tree, as in per_tutorial/replay/trees.py. Nothing here draws.

/**
 * Leaves with values >= 0; finds the leaf at a given prefix sum.
 *
 * `nodes` is one array: node i has the children 2i and 2i + 1, the root is node 1, and leaf k is node
 * `leaves` + k, where `leaves` is the capacity rounded up to a power of two.
 */
export class SumTree {
  constructor(capacity) {
    this.capacity = capacity;
    this.leaves = 1;
    while (this.leaves < capacity) this.leaves *= 2;
    this.nodes = new Float64Array(2 * this.leaves);
  }

  get total() {
    return this.nodes[1];
  }

  get(leaf) {
    return this.nodes[this.leaves + leaf];
  }

  /** Set a leaf, and compute the sums above it. */
  set(leaf, value) {
    let node = this.leaves + leaf;
    const { nodes } = this;
    nodes[node] = value;
    while (node > 1) {
      node >>= 1;
      nodes[node] = nodes[2 * node] + nodes[2 * node + 1];
    }
  }

  /** The smallest leaf i with prefix < leaf 0 + … + leaf i. Never a leaf of value 0. */
  find(prefix) {
    return this.#leafAt(prefix, () => {});
  }

  /**
   * The same walk, step by step: a list of {node, prefix, left, because}.
   *
   * `prefix` is what is left of it at `node`, and `left` the sum below the left child. `because` is
   * "below" (prefix < left), "beyond" (it is not), or "empty" (it is not, but there is nothing on the
   * right: rounding can leave such a prefix).
   */
  walk(prefix) {
    const steps = [];
    this.#leafAt(prefix, (step) => steps.push(step));
    return steps;
  }

  /** The nodes from the root down to a leaf. */
  path(leaf) {
    const nodes = [];
    for (let node = this.leaves + leaf; node >= 1; node >>= 1) nodes.unshift(node);
    return nodes;
  }

  #leafAt(prefix, visit) {
    const { nodes, leaves } = this;
    let node = 1;
    while (node < leaves) {
      const left = nodes[2 * node];
      const nothingRight = nodes[2 * node + 1] === 0;
      const goesRight = !(prefix < left || nothingRight);
      const because = prefix < left ? "below" : nothingRight ? "empty" : "beyond";
      visit({ node, prefix, left, because });
      node = 2 * node + (goesRight ? 1 : 0);
      if (goesRight) prefix -= left;
    }
    return node - leaves;
  }
}
