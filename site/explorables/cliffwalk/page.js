// The page of the race: what is drawn, and what the reader can do.

import { begin, byId, change, drawToFit, slider, stillPlease, svg, tell } from "../common.js";
import { stream } from "../random.js";
import { CONVERGED, Learner, makeMemory, randomValues, rightAction, SAMPLERS } from "./cliffwalk.js";

const NAMES = { uniform: "Uniform", greedy: "Greedy", proportional: "PER", oracle: "Oracle" };
const DECADE = 1400; // milliseconds in which the updates grow tenfold
const POINT = 1.03; // a curve has a point whenever the updates have grown by this factor
const CHART = { height: 250, left: 52, right: 14, top: 8, bottom: 34 };
const [HIGHEST, LOWEST] = [1, 6e-4]; // errors on the chart's axis

let seed = 0;
let runners = []; // of {sampler, learner, curve: [[updates, loss], …]}
let finished = []; // of the races that are over: {sampler: updates}
let running = null; // of a race that goes on: the time at which it was at one update
let width = 704;
let lanes = {};
let chart = {};

const count = (number) => Math.round(number).toLocaleString("en");

// --- the race --------------------------------------------------------------------------------

/** Four learners with the same memory and the same start. */
function lineUp() {
  const n = states.value;
  const random = stream(seed);
  const memory = makeMemory(n, random);
  const q = randomValues(n, random);
  return SAMPLERS.map((sampler, k) => {
    const draws = stream(BigInt(seed) * 1000n + BigInt(k + 1));
    const learner = new Learner({ n, sampler, memory, q, random: draws, alpha: alpha.value });
    return { sampler, learner, curve: [[0, learner.loss]] };
  });
}

/** Let a runner go on to this number of updates, noting its error on the way. */
function advance({ learner, curve }, updates) {
  while (learner.updates < updates && !learner.converged) {
    const next = Math.min(updates, Math.ceil((learner.updates + 1) * POINT));
    learner.run(next - learner.updates);
    if (learner.updates >= curve.at(-1)[0] * POINT || learner.converged) {
      curve.push([learner.updates, learner.loss]);
    }
  }
}

const isOver = (all) => all.every(({ learner }) => learner.converged);
const result = (all) =>
  Object.fromEntries(all.map(({ sampler, learner }) => [sampler, learner.updates]));

/** The next frame of the race. */
function frame(now) {
  if (running === null) return;
  const updates = 10 ** ((now - running) / DECADE);
  for (const runner of runners) advance(runner, updates);
  if (isOver(runners)) finish();
  else requestAnimationFrame(frame);
  show();
}

function start() {
  if (running !== null) {
    // Pause: remember how far the race is.
    running = null;
    show();
    tell(`Paused after ${count(Math.max(...runners.map(({ learner }) => learner.updates)))} updates.`);
    return;
  }
  if (isOver(runners)) newRace();
  if (stillPlease()) return toTheEnd();
  const sofar = Math.max(1, ...runners.map(({ learner }) => learner.updates));
  running = performance.now() - DECADE * Math.log10(sofar);
  tell("The race is on. From one vertical line of the chart to the next, the updates grow tenfold.");
  requestAnimationFrame(frame);
}

function toTheEnd() {
  skip();
  finish();
  show();
}

function skip() {
  if (isOver(runners)) newRace();
  for (const runner of runners) advance(runner, Infinity);
}

function finish() {
  running = null;
  finished.push(result(runners));
  tell(verdict());
}

function verdict() {
  const order = [...runners].sort((a, b) => a.learner.updates - b.learner.updates);
  const words = order.map(({ sampler, learner }) => `${NAMES[sampler]} ${count(learner.updates)}`);
  const [first, last] = [order[0].learner.updates, order.at(-1).learner.updates];
  return (
    `Updates needed: ${words.join(", ")}. ${NAMES[order.at(-1).sampler]} needed ` +
    `${(last / first).toFixed(1)} times as many as ${NAMES[order[0].sampler]}.`
  );
}

function newRace() {
  running = null;
  seed += 1;
  runners = lineUp();
}

/** Ten races; one that goes on is the first. Between them the browser gets time to draw. */
async function ten() {
  const mine = finished; // a change of the settings begins another list
  running = null;
  byId("ten").disabled = true;
  for (let k = 0; k < 10 && mine === finished; k++) {
    skip();
    finished.push(result(runners));
    show();
    await new Promise((resolve) => setTimeout(resolve, stillPlease() ? 0 : 60));
  }
  byId("ten").disabled = false;
  if (mine !== finished) return;
  const words = SAMPLERS.map((sampler) => `${NAMES[sampler]} ${count(median(sampler))}`);
  tell(`Medians of ${finished.length} races: ${words.join(", ")}.`);
}

function median(sampler) {
  const sorted = finished.map((race) => race[sampler]).sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function reset() {
  finished = [];
  seed = 0;
  newRace();
  drawLanes();
  drawChart();
  show();
  const memory = runners[0].learner.memory.length;
  tell(
    `A walk of ${states.value} states. The memory holds ${count(memory)} transitions; ` +
      "one of them is rewarded.",
  );
}

// --- drawing ---------------------------------------------------------------------------------

const LANE = { height: 80, low: -0.2, high: 1.1 };
const laneY = (value) => {
  const inside = Math.min(LANE.high, Math.max(LANE.low, value));
  return ((LANE.high - inside) / (LANE.high - LANE.low)) * LANE.height;
};

function drawLanes() {
  const n = states.value;
  byId("lanes").replaceChildren();
  lanes = {};
  for (const { sampler, learner } of runners) {
    const lane = document.createElement("section");
    lane.className = `lane ${sampler}`;
    const title = document.createElement("h2");
    title.className = "swatch";
    title.textContent = NAMES[sampler];
    const updates = document.createElement("p");
    const box = { viewBox: `0 0 ${10 * n} ${LANE.height}`, height: LANE.height };
    const picture = svg("svg", { ...box, preserveAspectRatio: "none", "aria-hidden": "true" });
    const bars = [];
    for (let state = 0; state < n; state++) {
      const bar = svg("rect", { x: 10 * state + 1.2, width: 7.6 });
      const y = laneY(learner.truth[2 * state + rightAction(state)]);
      const truth = { class: "truth", x1: 10 * state + 0.4, x2: 10 * state + 9.6, y1: y, y2: y };
      picture.append(bar, svg("line", { ...truth, "vector-effect": "non-scaling-stroke" }));
      bars.push(bar);
    }
    const zero = { class: "axis", x1: 0, x2: 10 * n, y1: laneY(0), y2: laneY(0) };
    picture.append(svg("line", { ...zero, "vector-effect": "non-scaling-stroke" }));
    lane.append(title, updates, picture);
    byId("lanes").append(lane);
    lanes[sampler] = { lane, updates, bars };
  }
}

/** The place of a number of updates, and of an error, on the chart. */
let chartX = () => 0;
const chartY = (loss) => {
  const share = Math.log(HIGHEST / Math.max(loss, LOWEST)) / Math.log(HIGHEST / LOWEST);
  return CHART.top + share * (CHART.height - CHART.top - CHART.bottom);
};

function drawChart() {
  const memory = runners[0].learner.memory.length;
  const most = 40 * memory; // uniform replay needs up to 30 updates for each transition
  const inner = width - CHART.left - CHART.right;
  chartX = (updates) => CHART.left + (Math.log(Math.max(1, updates)) / Math.log(most)) * inner;
  const [bottom, right] = [CHART.height - CHART.bottom, width - CHART.right];
  const box = { viewBox: `0 0 ${width} ${CHART.height}`, height: CHART.height, role: "img" };
  const canvas = svg("svg", { ...box, "aria-label": "The errors of the four learners over the updates" });
  for (let updates = 1; updates <= most; updates *= 10) {
    const x = chartX(updates);
    canvas.append(
      svg("line", { class: "grid", x1: x, x2: x, y1: CHART.top, y2: bottom }),
      svg("text", { class: "soft middle", x, y: bottom + 17 }, count(updates)),
    );
  }
  for (const loss of [1, 0.1, 0.01, 0.001]) {
    const y = chartY(loss);
    const across = { x1: CHART.left, x2: right, y1: y, y2: y };
    canvas.append(
      svg("line", { class: loss === CONVERGED ? "threshold" : "grid", ...across }),
      svg("text", { class: "soft end", x: CHART.left - 8, y: y + 4 }, `${loss}`),
    );
  }
  const x = chartX(memory);
  canvas.append(
    svg("line", { class: "memory", x1: x, x2: x, y1: CHART.top, y2: bottom }),
    svg("text", { class: "soft end", x: x - 6, y: CHART.top + 12 }, `${count(memory)} transitions`),
  );
  chart = {};
  for (const sampler of SAMPLERS) {
    const curve = svg("path", { class: "curve" });
    const goal = svg("circle", { class: "goal", r: 6.5, visibility: "hidden" });
    canvas.append(svg("g", { class: sampler }, curve, goal));
    chart[sampler] = { curve, goal };
  }
  byId("curves").replaceChildren(canvas);
}

function show() {
  for (const { sampler, learner, curve } of runners) {
    const { lane, updates, bars } = lanes[sampler];
    const { converged } = learner;
    lane.classList.toggle("there", converged);
    updates.textContent = converged
      ? `there after ${count(learner.updates)}`
      : `${count(learner.updates)} updates`;
    const now = learner.last < 0 ? -1 : learner.memory[learner.last].state;
    bars.forEach((bar, state) => {
      const y = laneY(learner.q[2 * state + rightAction(state)]);
      const zero = laneY(0);
      change(bar, { y: Math.min(y, zero), height: Math.abs(zero - y) });
      bar.classList.toggle("now", state === now);
    });
    const line = curve.map(
      ([updates, loss]) => `${chartX(updates).toFixed(1)} ${chartY(loss).toFixed(1)}`,
    );
    change(chart[sampler].curve, { d: line.length ? `M${line.join("L")}` : "" });
    change(chart[sampler].goal, {
      cx: chartX(learner.updates),
      cy: chartY(CONVERGED),
      visibility: converged ? "visible" : "hidden",
    });
  }
  const under = runners.some(({ learner }) => learner.updates > 0);
  byId("start").textContent =
    running !== null ? "Pause" : isOver(runners) ? "Another race" : under ? "Go on" : "Start the race";
  showResults();
}

function showResults() {
  const last = finished.at(-1);
  byId("races").textContent = finished.length ? `of ${finished.length}` : "";
  byId("results").replaceChildren(
    ...SAMPLERS.map((sampler) => {
      const row = document.createElement("tr");
      const name = document.createElement("th");
      name.scope = "row";
      name.className = `swatch ${sampler}`;
      name.textContent = NAMES[sampler];
      const cells = [last ? count(last[sampler]) : "–", last ? count(median(sampler)) : "–"];
      row.append(
        name,
        ...cells.map((text) => {
          const cell = document.createElement("td");
          cell.textContent = text;
          return cell;
        }),
      );
      return row;
    }),
  );
}

// --- what the reader does --------------------------------------------------------------------

const states = slider("states", String, reset);
const alpha = slider("alpha", (value) => value.toFixed(1), reset);
byId("start").addEventListener("click", start);
byId("skip").addEventListener("click", toTheEnd);
byId("ten").addEventListener("click", ten);

begin();
reset();
drawToFit(byId("curves"), (now) => {
  width = now;
  drawChart();
  show();
});
