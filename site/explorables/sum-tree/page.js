// The page of the sum tree: what is drawn, and what the reader can do.

import { begin, byId, percent, rounded, show, slider, svg } from "../common.js";
import { SumTree } from "./sum-tree.js";

const PRIORITIES = [3, 1, 4, 1, 5, 9, 2, 6];
const PACE = 450; // milliseconds for one level of the tree
const LINE = { top: 34, height: 30, hits: 12 };
const TREE = { top: 150, level: 72 };

const tree = new SumTree(PRIORITIES.length);
PRIORITIES.forEach((priority, leaf) => tree.set(leaf, priority));
const levels = Math.log2(tree.leaves);
const hits = PRIORITIES.map(() => 0);
let width = 0;
let seen = levels; // how many steps of the path are shown
let walks = 0; // a new walk ends the one before

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** Where the dart is: {prefix, leaf, steps}; nothing where all priorities are 0. */
function aim() {
  if (!tree.total) return null;
  const prefix = place.value * tree.total;
  return { prefix, leaf: tree.find(prefix), steps: tree.walk(prefix) };
}

// --- drawing ---------------------------------------------------------------------------------

function draw(message) {
  const dart = aim();
  const path = dart ? tree.path(dart.leaf).slice(0, seen + 1) : [];
  const height = TREE.top + levels * TREE.level + 50;
  const parts = [...line(dart, path.length > levels), ...edges(path), ...nodes(path)];
  show(width, height, parts, message ?? found(dart));
  const steps = dart ? dart.steps.slice(0, seen).map((step) => item(words(step))) : [];
  byId("steps").replaceChildren(...steps);
  place.tell(dart ? `${rounded(dart.prefix)} of ${rounded(tree.total)}` : "nowhere");
  leaf.tell(`[${leaf.value}]`);
  priority.tell(rounded(priority.value));
  byId("throw").disabled = byId("hundred").disabled = !dart;
}

/** The strips, what was hit below them, and the dart. */
function line(dart, isFound) {
  const thrown = sum(hits);
  let [start, hitStart] = [0, 0];
  const parts = hits.flatMap((count, k) => {
    const length = tree.total ? (tree.get(k) / tree.total) * width : 0;
    const hitLength = thrown ? (count / thrown) * width : 0;
    const on = isFound && dart.leaf === k ? " on" : "";
    const box = { x: start, y: LINE.top, width: length, height: LINE.height, rx: 3 };
    const hit = { x: hitStart, y: LINE.top + LINE.height + 5, width: hitLength, height: LINE.hits };
    const middle = { class: "middle", x: start + length / 2, y: LINE.top + 20 };
    start += length;
    hitStart += hitLength;
    return [
      svg("rect", { class: `strip${on}`, ...box }),
      svg("rect", { class: "hit", ...hit }),
      svg("text", middle, length > 31 ? `[${k}]` : ""),
    ];
  });
  const below = { class: "soft", y: LINE.top + LINE.height + 34 };
  parts.push(svg("text", { ...below, x: 0 }, thrown ? `hits: ${thrown}` : ""));
  parts.push(svg("text", { ...below, class: "soft end", x: width }, `total ${rounded(tree.total)}`));
  if (dart) {
    const at = (dart.prefix / tree.total) * width;
    parts.push(svg("path", { class: "dart", d: `M${at} ${LINE.top + 3} l-6 -11 h5 v-20 h2 v20 h5 z` }));
  }
  return parts;
}

/** The middle of a node. */
function middle(node) {
  const level = Math.floor(Math.log2(node));
  const x = ((node - 2 ** level + 0.5) / 2 ** level) * width;
  return { x, y: TREE.top + level * TREE.level };
}

function edges(path) {
  return Array.from({ length: 2 * tree.leaves - 2 }, (_, k) => {
    const [from, to] = [middle((k + 2) >> 1), middle(k + 2)];
    const side = path.includes(k + 2) ? "path" : k % 2 ? "right" : "left";
    return svg("line", { class: `edge ${side}`, x1: from.x, y1: from.y, x2: to.x, y2: to.y });
  });
}

function nodes(path) {
  const r = Math.min(19, 0.42 * (width / tree.leaves));
  return Array.from({ length: 2 * tree.leaves - 1 }, (_, k) => {
    const node = k + 1;
    const { x, y } = middle(node);
    const isLeaf = node >= tree.leaves;
    const number = node - tree.leaves;
    const on = path.includes(node) ? " on" : "";
    const chosen = isLeaf && number === leaf.value ? " chosen" : "";
    const box = { x: x - r, y: y - r, width: 2 * r, height: 2 * r, rx: isLeaf ? 4 : r };
    const group = svg(
      "g",
      { class: `node${on}${chosen}` },
      svg("rect", box),
      svg("text", { class: "middle", x, y: y + 4.5 }, rounded(tree.nodes[node])),
      svg("text", { class: "soft middle", x, y: isLeaf ? y + r + 30 : y - r - 5 }, `${node}`),
    );
    if (isLeaf) {
      group.append(svg("text", { class: "soft middle", x, y: y + r + 15 }, `[${number}]`));
      group.addEventListener("click", () => choose(number));
    }
    return group;
  });
}

function item(text) {
  const element = document.createElement("li");
  element.textContent = text;
  return element;
}

function words({ node, prefix, left, because }) {
  const [p, l, rest] = [prefix, left, prefix - left].map((number) => rounded(number));
  const says = {
    below: `${p} is below ${l}, the sum on the left. Go left.`,
    beyond: `${p} is not below ${l}, the sum on the left. Go right, with ${p} − ${l} = ${rest}.`,
    empty: "there is nothing on the right. Go left.",
  };
  return `Node ${node}: ${says[because]}`;
}

function found(dart) {
  if (!dart) return "All priorities are 0: there is nothing to hit.";
  return (
    `The dart at ${rounded(dart.prefix)} of ${rounded(tree.total)} hits item [${dart.leaf}], ` +
    `of priority ${rounded(tree.get(dart.leaf))}. The path: nodes ${tree.path(dart.leaf).join(", ")}.`
  );
}

// --- what the reader does --------------------------------------------------------------------

/** Show the whole path of a dart that isn't thrown; a walk that goes on ends. */
function settle(message) {
  walks += 1;
  seen = levels;
  draw(message);
}

function choose(number) {
  leaf.value = number;
  priority.value = tree.get(number);
  settle();
}

function setPriority() {
  tree.set(leaf.value, priority.value);
  hits.fill(0);
  const sums = tree.path(leaf.value).slice(0, -1).reverse().join(", ");
  settle(
    `Leaf [${leaf.value}] is ${priority.value} now. Only the sums above it changed: nodes ${sums}. ` +
      (tree.total ? `The total is ${rounded(tree.total)}.` : found(null)),
  );
}

/** Throw a dart, and walk down the tree to what it hits. */
async function throwDart() {
  place.value = Math.random();
  const dart = aim();
  hits[dart.leaf] += 1;
  const mine = (walks += 1);
  const inOneStep = matchMedia("(prefers-reduced-motion: reduce)").matches;
  for (seen = inOneStep ? levels : 0; seen < levels; seen++) {
    draw(`The dart lands at ${rounded(dart.prefix)} of ${rounded(tree.total)}.`);
    await new Promise((resume) => setTimeout(resume, PACE));
    if (mine !== walks) return;
  }
  settle();
}

function throwHundred() {
  for (let k = 0; k < 100; k++) hits[tree.find(Math.random() * tree.total)] += 1;
  const most = hits.indexOf(Math.max(...hits));
  settle(
    `${sum(hits)} darts so far. Item [${most}] was hit most often, by ` +
      `${percent(hits[most] / sum(hits), 0)} of them; ` +
      `its share of the line is ${percent(tree.get(most) / tree.total, 0)}.`,
  );
}

const place = slider("place", () => settle());
const leaf = slider("leaf", () => choose(leaf.value));
const priority = slider("priority", setPriority);
byId("throw").addEventListener("click", throwDart);
byId("hundred").addEventListener("click", throwHundred);
begin((now) => {
  width = now;
  draw();
});
