// The page of α and β: what is drawn, and what the reader can do.

import { arrowKeys, begin, byId, change, drawToFit, rounded, slider, svg, tell } from "../common.js";
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
const LARGEST = 5; // |δ|
const PANEL = { height: 78, gap: 40 };
const PANELS = ["error", "probability", "drawn", "weight"];

let errors = [...MEMORIES["falling evenly"]];
let chosen = 0;
let seed = 1;
let batches = 1;
let drawn = {};

// --- drawing ---------------------------------------------------------------------------------

function draw(width) {
  const focused = document.activeElement?.closest?.(".column");
  const left = 42; // room for the numbers of the axes
  const unit = (width - left) / errors.length;
  const height = PANELS.length * (PANEL.height + PANEL.gap) + 10;
  const canvas = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group" });
  canvas.setAttribute("aria-label", "Twelve transitions: surprises, probabilities, draws and weights");
  drawn = { columns: [], titles: {}, tops: {}, bars: {}, expected: [] };

  const behind = svg("g", { role: "group", "aria-label": "Surprises" });
  errors.forEach((_, i) => behind.append(column(i, left + i * unit, unit, height)));
  arrowKeys(drawn.columns, { choose, step: (i, by) => setError(i, errors[i] + 0.1 * by) });

  const front = svg("g", { "aria-hidden": "true", "pointer-events": "none" });
  PANELS.forEach((name, row) => {
    const base = bottom(row);
    drawn.titles[name] = svg("text", { class: "title", x: 0, y: base - PANEL.height - 12 });
    drawn.tops[name] = svg("text", { class: "soft end", x: left - 7, y: base - PANEL.height + 8 });
    drawn.bars[name] = errors.map((_, i) =>
      svg("rect", { class: `bar ${name}`, x: left + (i + 0.16) * unit, width: 0.68 * unit, rx: 2.5 }),
    );
    front.append(
      drawn.titles[name],
      drawn.tops[name],
      svg("text", { class: "soft end", x: left - 7, y: base + 4 }, "0"),
      ...drawn.bars[name],
      svg("line", { class: "axis", x1: left, x2: width, y1: base, y2: base }),
    );
  });
  drawn.uniform = svg("line", { class: "uniform", x1: left, x2: width });
  drawn.expected = errors.map((_, i) =>
    svg("line", { class: "expected", x1: left + (i + 0.08) * unit, x2: left + (i + 0.92) * unit }),
  );
  drawn.uniformLabel = svg("text", { class: "uniform-label end", x: width });
  drawn.uniformLabel.textContent = "uniform";
  front.append(drawn.uniform, drawn.uniformLabel, ...drawn.expected);
  canvas.append(behind, front);
  byId("picture").replaceChildren(canvas);
  show();
  if (focused) drawn.columns[chosen].focus();
}

const bottom = (row) => (row + 1) * (PANEL.height + PANEL.gap) - 12;

function column(i, x, unit, height) {
  const group = svg(
    "g",
    { class: "column", role: "slider", "aria-label": `Transition ${i}, its surprise` },
    svg("rect", { class: "back-light", x, y: 16, width: unit, height: height - 16, rx: 6 }),
    svg("rect", { class: "ring", x: x + 1, y: 17, width: unit - 2, height: height - 20, rx: 6 }),
    svg("text", { class: "soft middle", x: x + unit / 2, y: height - 2 }, `${i}`),
  );
  change(group, { "aria-orientation": "vertical", "aria-valuemin": 0, "aria-valuemax": LARGEST });
  group.addEventListener("click", () => {
    choose(i);
    group.focus();
  });
  drawn.columns.push(group);
  return group;
}

/** Compute everything anew, and bring the picture in line with it. */
function show() {
  const tree = priorityTree(errors, alpha.value);
  const P = probabilities(tree);
  const random = stream(seed);
  const counts = new Array(errors.length).fill(0);
  let last = [];
  for (let batch = 0; batch < batches; batch++) {
    last = sample(tree, BATCH, random);
    for (const i of last) counts[i] += 1;
  }
  const weights = importanceWeights(P, last, beta.value, normalize());
  const inBatch = new Set(last);
  const all = allWeights(P, last, weights);

  const draws = BATCH * batches;
  const most = Math.max(...P, ...counts.map((count) => count / draws));
  paint("error", errors, Math.max(2.5, ...errors), "|δ|, the surprise");
  paint("probability", P, most, "P(i), how likely a draw is", wholePercent);
  paint(
    "drawn",
    counts.map((count) => count / draws),
    most,
    `What ${draws.toLocaleString("en")} draws hit (marks: P)`,
    wholePercent,
  );
  paint("weight", all, Math.max(1, ...all), "w(i), the weights in the last minibatch");
  drawn.bars.weight.forEach((bar, i) => bar.classList.toggle("not-drawn", !inBatch.has(i)));
  const uniform = heightOf(1 / errors.length, most);
  change(drawn.uniform, { y1: bottom(1) - uniform, y2: bottom(1) - uniform });
  change(drawn.uniformLabel, { y: bottom(1) - uniform - 6 });
  drawn.expected.forEach((mark, i) => {
    const y = bottom(2) - heightOf(P[i], most);
    change(mark, { y1: y, y2: y });
  });
  drawn.columns.forEach((element, i) => {
    element.classList.toggle("chosen", i === chosen);
    change(element, { tabindex: i === chosen ? 0 : -1, "aria-valuenow": rounded(errors[i]) });
    change(element, { "aria-valuetext": `${rounded(errors[i])}, drawn with ${percent(P[i])}` });
  });
  byId("hundred").disabled = batches + 100 > MOST;
  byId("another").disabled = batches === MOST;

  const top = P.indexOf(Math.max(...P));
  const mean = weights.reduce((sum, w) => sum + w, 0) / BATCH;
  const spread =
    Math.max(...P) / Math.min(...P) < 1.0001
      ? `All transitions are drawn with the same probability, ${percent(P[0])}.`
      : `Transition ${top} is drawn most often, with ${percent(P[top])}: ` +
        `${rounded(P[top] * P.length, 1)} times as often as under uniform replay.`;
  tell(
    `${spread} The last minibatch of ${BATCH} draws is worth ${rounded(effectiveSize(weights), 1)} ` +
      `equally weighted ones, and its mean weight is ${mean < 0.01 ? mean.toPrecision(1) : rounded(mean)}.`,
  );
}

/** The weights of all transitions; 0 for those not drawn, where they depend on what is drawn. */
function allWeights(P, last, weights) {
  if (normalize() !== "batch") return importanceWeights(P, [...P.keys()], beta.value, normalize());
  const all = new Array(P.length).fill(0);
  last.forEach((i, k) => {
    all[i] = weights[k];
  });
  return all;
}

function paint(name, values, top, title, words = (value) => rounded(value, 1)) {
  const base = bottom(PANELS.indexOf(name));
  drawn.titles[name].textContent = title;
  drawn.tops[name].textContent = words(top);
  values.forEach((value, i) => {
    const height = heightOf(value, top);
    change(drawn.bars[name][i], { y: base - height, height });
  });
}

const wholePercent = (share) => `${rounded(100 * share, 0)} %`;
const heightOf = (value, top) => (value / top) * PANEL.height;
const percent = (share) => (share && share < 0.001 ? "below 0.1 %" : `${rounded(100 * share, 1)} %`);
const normalize = () => document.querySelector("[name=normalize]:checked").value;

// --- what the reader does --------------------------------------------------------------------

function choose(i) {
  chosen = i;
  byId("which").textContent = `|δ| of transition ${i}`;
  surprise.value = errors[i];
  show();
}

function setError(i, value) {
  errors[i] = Math.min(LARGEST, Math.max(0, Number(value.toFixed(2))));
  choose(i);
}

const alpha = slider("alpha", (value) => value.toFixed(2), () => show());
const beta = slider("beta", (value) => value.toFixed(2), () => show());
const surprise = slider("surprise", (value) => value.toFixed(2), (value) => setError(chosen, value));
for (const input of document.querySelectorAll("[name=normalize]")) input.addEventListener("change", show);

for (const [name, values] of Object.entries(MEMORIES)) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.addEventListener("click", () => {
    errors = [...values];
    choose(chosen);
  });
  byId("memories").append(button);
}

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
    show();
  });
}

begin();
drawToFit(byId("picture"), draw);
