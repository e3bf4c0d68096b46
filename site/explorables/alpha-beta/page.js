// The page of α and β: what is drawn, and what the reader can do.

import { begin, byId, percent, rounded, show, slider, svg } from "../common.js";
import { stream } from "../random.js";
import { effectiveSize, importanceWeights, priorityTree, probabilities, sample } from "./alpha-beta.js";

const MEMORIES = {
  "falling evenly": [2.4, 1.8, 1.35, 1, 0.75, 0.55, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05],
  "all alike": new Array(12).fill(1),
  "one outlier": [0.6, 0.5, 0.4, 5, 0.3, 0.6, 0.5, 0.4, 0.3, 0.6, 0.5, 0.4],
  "one without error": [2, 1.5, 1.2, 1, 1.6, 0.8, 1.1, 0, 1.4, 0.9, 1.3, 0.7],
};
const BATCH = 32;
const MOST = 2000; // minibatches
const PANEL = { height: 78, gap: 40, left: 42 }; // on the left are the numbers of the axes

let errors = [...MEMORIES["falling evenly"]];
let width = 0;
let seed = 1;
let batches = 1;

/** Draw the minibatches: how often each transition is hit in all of them, and the last one. */
function drawMinibatches(tree) {
  const random = stream(seed);
  const counts = errors.map(() => 0);
  let last = [];
  for (let batch = 0; batch < batches; batch++) {
    last = sample(tree, BATCH, random);
    for (const i of last) counts[i] += 1;
  }
  return { counts, last };
}

/** Weights of all transitions. Those that divide by the minibatch's largest exist only in it. */
function allWeights(P, last, weights) {
  const normalize = byId("normalize").value;
  if (normalize !== "batch") return importanceWeights(P, [...P.keys()], beta.value, normalize);
  const all = P.map(() => 0);
  last.forEach((i, k) => (all[i] = weights[k]));
  return all;
}

function draw() {
  const tree = priorityTree(errors, alpha.value);
  const P = probabilities(tree);
  const { counts, last } = drawMinibatches(tree);
  const weights = importanceWeights(P, last, beta.value, byId("normalize").value);
  const all = allWeights(P, last, weights);
  const draws = BATCH * batches;
  const shares = counts.map((count) => count / draws);
  const most = Math.max(...P, ...shares);

  const whole = (share) => percent(share, 0);
  const hit = `What ${draws.toLocaleString("en")} draws hit (marks: P)`;
  const panels = [
    ...panel(0, "error", "|δ|, the surprise", errors, Math.max(2.5, ...errors)),
    ...panel(1, "probability", "P(i), how likely a draw is", P, most, whole),
    ...panel(2, "drawn", hit, shares, most, whole),
    ...panel(3, "weight", "w(i), the weights in the last minibatch", all, Math.max(1, ...all)),
    ...P.map((p, i) => mark(2, p / most, left(i - 0.42), left(i + 0.42), "expected")),
    mark(1, 1 / P.length / most, PANEL.left, width, "uniform"),
    ...errors.map((_, i) => svg("text", { class: "soft middle", x: left(i), y: bottom(3) + 18 }, `${i}`)),
  ];
  show(width, bottom(3) + 26, panels, found(P, weights));
  alpha.tell(alpha.value.toFixed(2));
  beta.tell(beta.value.toFixed(2));
  transition.tell(`${transition.value}`);
  surprise.tell(surprise.value.toFixed(2));
  byId("another").disabled = batches === MOST;
  byId("hundred").disabled = batches + 100 > MOST;
}

const bottom = (row) => (row + 1) * (PANEL.height + PANEL.gap) - 12;
const left = (i) => PANEL.left + ((i + 0.5) * (width - PANEL.left)) / errors.length;

/** A row of bars, with a title and the ends of its axis. */
function panel(row, name, title, values, top, words = (value) => rounded(value, 1)) {
  const base = bottom(row);
  const axis = { class: "soft end", x: PANEL.left - 7 };
  const bars = values.map((value, i) => {
    const height = (value / top) * PANEL.height;
    const chosen = i === transition.value ? " chosen" : "";
    const box = { x: left(i - 0.34), width: left(0.68) - left(0), y: base - height, height };
    return svg("rect", { class: `bar ${name}${chosen}`, ...box });
  });
  return [
    svg("text", { x: 0, y: base - PANEL.height - 12 }, title),
    svg("text", { ...axis, y: base - PANEL.height + 8 }, words(top)),
    svg("text", { ...axis, y: base + 4 }, "0"),
    svg("line", { class: "axis", x1: PANEL.left, x2: width, y1: base, y2: base }),
    ...bars,
  ];
}

/** A line across a panel, at a share of its height. */
function mark(row, share, x1, x2, name) {
  const y = bottom(row) - share * PANEL.height;
  return svg("line", { class: name, x1, x2, y1: y, y2: y });
}

function found(P, weights) {
  const top = P.indexOf(Math.max(...P));
  const mean = weights.reduce((sum, w) => sum + w, 0) / BATCH;
  const spread =
    Math.max(...P) / Math.min(...P) < 1.0001
      ? `All transitions are drawn with the same probability, ${percent(P[0])}.`
      : `Transition ${top} is drawn most often, with ${percent(P[top])}: ` +
        `${rounded(P[top] * P.length, 1)} times as often as under uniform replay (dashed).`;
  return (
    `${spread} The last minibatch of ${BATCH} draws is worth ${rounded(effectiveSize(weights), 1)} ` +
    `equally weighted ones, and its mean weight is ${mean < 0.01 ? mean.toPrecision(1) : rounded(mean)}.`
  );
}

// --- what the reader does --------------------------------------------------------------------

function choose() {
  surprise.value = errors[transition.value];
  draw();
}

const alpha = slider("alpha", draw);
const beta = slider("beta", draw);
const transition = slider("transition", choose);
const surprise = slider("surprise", () => {
  errors[transition.value] = surprise.value;
  draw();
});
byId("normalize").addEventListener("change", draw);
byId("memory").append(...Object.keys(MEMORIES).map((name) => new Option(name)));
byId("memory").addEventListener("change", () => {
  errors = [...MEMORIES[byId("memory").value]];
  choose();
});
const buttons = {
  another: () => (batches += 1),
  hundred: () => (batches += 100),
  over: () => {
    batches = 1;
    seed += 1;
  },
};
for (const [id, press] of Object.entries(buttons)) {
  byId(id).addEventListener("click", () => {
    press();
    draw();
  });
}
begin((now) => {
  width = now;
  draw();
});
