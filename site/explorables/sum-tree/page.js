// The page of the sum tree: what is drawn, and what the reader can do.

import {
  arrowKeys,
  begin,
  byId,
  change,
  drawToFit,
  rounded,
  slider,
  stillPlease,
  svg,
  tell,
} from "../common.js";
import { SumTree } from "./sum-tree.js";

const PI = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]; // its digits, as in notebook 01
const PACE = 420; // milliseconds for one level of the tree
const LINE = { top: 34, height: 30, hits: 12 };
const TREE_TOP = 140;

let tree = fresh(8);
let chosen = 0; // the leaf whose priority the slider changes
let dart = null; // {prefix, leaf}
let hits = new Array(8).fill(0);
let places = []; // of the nodes, {x, y, r}
let width = 704;
let drawn = {}; // the SVG elements that change
let walk = 0; // counts the walks: a new one ends the one before

function fresh(capacity) {
  const made = new SumTree(capacity);
  for (let leaf = 0; leaf < capacity; leaf++) made.set(leaf, PI[leaf]);
  return made;
}

// --- drawing ---------------------------------------------------------------------------------

function layOut() {
  const { leaves } = tree;
  const levels = Math.log2(leaves);
  const unit = width / leaves;
  const drop = Math.max(54, Math.min(72, 300 / levels));
  places = new Array(2 * leaves);
  for (let node = 2 * leaves - 1; node >= 1; node--) {
    const level = Math.floor(Math.log2(node));
    const between = () => (places[2 * node].x + places[2 * node + 1].x) / 2;
    const x = node >= leaves ? (node - leaves + 0.5) * unit : between();
    const r = Math.max(9.5, Math.min(21, 0.45 * unit * (node >= leaves ? 1 : 2)));
    places[node] = { x, y: TREE_TOP + level * drop, r: node >= leaves ? Math.min(r, 19) : r };
  }
  return TREE_TOP + levels * drop + 56;
}

function draw() {
  const height = layOut();
  const { leaves, capacity } = tree;
  const focused = document.activeElement?.closest?.("[data-leaf]")?.dataset.leaf;
  const canvas = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group" });
  canvas.classList.toggle("tight", width / leaves < 28);
  canvas.setAttribute("aria-label", "A line of strips, and the tree below it");
  drawn = { strips: [], hits: [], nodes: [], leaves: [] };

  // The line of strips, and below it the hits.
  const line = svg("g", { "aria-hidden": "true" });
  for (let leaf = 0; leaf < capacity; leaf++) {
    const label = svg("text", { class: "middle", y: LINE.top + 20 }, `[${leaf}]`);
    const rect = svg("rect", { y: LINE.top, height: LINE.height, rx: 3 });
    drawn.strips.push({ group: svg("g", { class: "strip" }, rect, label), rect, label });
    const hit = svg("rect", { y: LINE.top + LINE.height + 5, height: LINE.hits, rx: 2 });
    drawn.hits.push(hit);
  }
  drawn.total = svg("text", { class: "soft end", x: width, y: LINE.top + LINE.height + 34 });
  drawn.count = svg("text", { class: "soft", x: 0, y: LINE.top + LINE.height + 34 });
  drawn.dart = svg(
    "g",
    { class: "dart" },
    svg("line", { x1: 0, x2: 0, y1: LINE.top - 26, y2: LINE.top - 5 }),
    svg("path", { d: `M0 ${LINE.top + 3} l-6 -11 h12 z` }),
  );
  const target = svg("rect", { class: "target", x: 0, y: 0, width, height: LINE.top + LINE.height });
  target.addEventListener("click", (event) => {
    const box = target.getBoundingClientRect();
    throwAt(Math.min(0.9999, Math.max(0, (event.clientX - box.left) / box.width)));
  });
  line.append(
    ...drawn.strips.map(({ group }) => group),
    svg("g", { class: "hits" }, ...drawn.hits),
    drawn.total,
    drawn.count,
    drawn.dart,
    target,
  );

  // The edges, the path, and the nodes.
  const edges = svg("g", { "aria-hidden": "true" });
  for (let node = 2; node < 2 * leaves; node++) {
    edges.append(svg("path", { class: `edge ${node % 2 ? "right" : "left"}`, d: edge(node) }));
  }
  drawn.trail = svg("g", { "aria-hidden": "true" });
  drawn.walker = svg("circle", { class: "walker", r: 6, "aria-hidden": "true", visibility: "hidden" });
  const inner = svg("g", { "aria-hidden": "true" });
  const bottom = svg("g", { role: "group", "aria-label": "Leaves" });
  for (let node = 1; node < 2 * leaves; node++) {
    const isLeaf = node >= leaves;
    (isLeaf ? bottom : inner).append(isLeaf ? leafOf(node) : circleOf(node));
  }
  arrowKeys(drawn.leaves, { choose, step: (leaf, by) => setLeaf(leaf, tree.get(leaf) + by) });
  canvas.append(line, edges, drawn.trail, inner, bottom, drawn.walker);
  byId("picture").replaceChildren(canvas);
  show();
  if (focused !== undefined) drawn.leaves[Math.min(focused, capacity - 1)].focus();
}

function edge(node) {
  const from = places[node >> 1];
  const to = places[node];
  return `M${from.x} ${from.y} L${to.x} ${to.y}`;
}

function circleOf(node) {
  const { x, y, r } = places[node];
  const value = svg("text", { class: "middle", x, y: y + 4.5 });
  const group = svg("g", { class: "node" }, svg("circle", { class: "shape", cx: x, cy: y, r }), value);
  const room = node === 1 ? width : Math.abs(x - places[node ^ 1].x) - 2 * r; // to the neighbour
  if (room > 44) {
    const side = node > 1 && node % 2 ? 1 : -1; // where no edge comes from
    const number = { class: `soft ${side < 0 ? "end" : ""}`, x: x + side * (r + 4), y: y - r + 6 };
    group.append(svg("text", number, `${node}`));
  }
  drawn.nodes[node] = { group, value };
  return group;
}

function leafOf(node) {
  const { x, y, r } = places[node];
  const leaf = node - tree.leaves;
  const square = { x: x - r, y: y - r, width: 2 * r, height: 2 * r, rx: 4 };
  const value = svg("text", { class: "middle", x, y: y + 4.5 });
  const group = svg("g", { class: "node" }, svg("rect", { class: "shape", ...square }), value);
  drawn.nodes[node] = { group, value };
  if (leaf >= tree.capacity) {
    group.classList.add("padding");
    group.setAttribute("aria-hidden", "true");
    return group;
  }
  const unit = width / tree.leaves;
  const ring = { x: square.x - 4, y: square.y - 4, width: 2 * r + 8, height: 2 * r + 8, rx: 7 };
  group.append(
    svg("rect", { class: "touch", x: x - unit / 2, y: y - r, width: unit, height: 2 * r + 36 }),
    svg("rect", { class: "ring", ...ring }),
    svg("text", { class: "soft middle", x, y: y + r + 17 }, `[${leaf}]`),
    svg("text", { class: "soft middle", x, y: y + r + 32 }, `${node}`),
  );
  change(group, {
    role: "slider",
    "data-leaf": leaf,
    "aria-label": `Leaf ${leaf}, its priority`,
    "aria-orientation": "vertical",
    "aria-valuemin": 0,
    "aria-valuemax": 20,
  });
  group.addEventListener("click", () => {
    choose(leaf);
    group.focus();
  });
  drawn.leaves.push(group);
  return group;
}

/** Bring what is drawn in line with the tree, the dart and the hits. */
function show() {
  const { total, capacity, leaves } = tree;
  let [start, hitStart] = [0, 0];
  const thrown = hits.reduce((sum, count) => sum + count, 0);
  drawn.strips.forEach(({ group, rect, label }, leaf) => {
    const share = total ? (tree.get(leaf) / total) * width : 0;
    change(rect, { x: start, width: share });
    change(label, { x: start + share / 2, visibility: share > 31 ? "visible" : "hidden" });
    group.classList.toggle("on", dart?.leaf === leaf);
    start += share;
    const part = thrown ? (hits[leaf] / thrown) * width : 0;
    change(drawn.hits[leaf], { x: hitStart, width: part });
    hitStart += part;
  });
  drawn.total.textContent = `total ${rounded(total)}`;
  drawn.count.textContent = thrown ? `${thrown} ${thrown === 1 ? "hit" : "hits"} so far` : "";
  change(drawn.dart, {
    visibility: dart ? "visible" : "hidden",
    transform: `translate(${dartPlace()} 0)`,
  });
  for (let node = 1; node < 2 * leaves; node++) {
    if (node < leaves + capacity) drawn.nodes[node].value.textContent = rounded(tree.nodes[node]);
  }
  drawn.leaves.forEach((element, leaf) => {
    change(element, { "aria-valuenow": tree.get(leaf), tabindex: leaf === chosen ? 0 : -1 });
    element.classList.toggle("chosen", leaf === chosen);
  });
  showPath(dart ? tree.path(dart.leaf) : []);
  byId("throw").disabled = byId("hundred").disabled = total === 0;
  byId("clear").disabled = thrown === 0;
}

/** Where the dart stands on the line, in pixels; rounded, for CSS knows no 1e-7. */
function dartPlace() {
  return dart ? ((dart.prefix / tree.total) * width).toFixed(2) : 0;
}

/** Pick out these nodes, from the root down, with the edges between them. */
function showPath(nodes) {
  drawn.nodes.forEach(({ group }, node) => group.classList.toggle("on", nodes.includes(node)));
  const edges = nodes.slice(1).map((node) => svg("path", { class: "trail", d: edge(node) }));
  drawn.trail.replaceChildren(...edges);
}

// --- what the reader does --------------------------------------------------------------------

function choose(leaf) {
  chosen = leaf;
  byId("which").textContent = `Priority of leaf [${leaf}]`;
  priority.value = tree.get(leaf);
  show();
}

function setLeaf(leaf, value) {
  endWalk();
  value = Math.min(20, Math.max(0, value));
  tree.set(leaf, value);
  hits.fill(0);
  chosen = leaf;
  priority.value = value;
  aim(place.value);
  place.show();
  show();
  for (const node of tree.path(leaf)) {
    const { classList } = drawn.nodes[node].group;
    classList.remove("renewed");
    void drawn.nodes[node].group.getBoundingClientRect(); // or the animation would not start again
    classList.add("renewed");
  }
  const sums = tree.path(leaf).slice(0, -1).reverse();
  tell(
    `Leaf [${leaf}] is ${value} now. Only the sums above it changed: nodes ${sums.join(", ")}. ` +
      (tree.total
        ? `The total is ${rounded(tree.total)}.`
        : "All priorities are 0: there is nothing to hit."),
  );
}

/** Let the dart stand at this fraction of the line; nothing is thrown. */
function aim(fraction) {
  if (!tree.total) {
    dart = null;
    byId("steps").replaceChildren();
    return;
  }
  const prefix = fraction * tree.total;
  dart = { prefix, leaf: tree.find(prefix) };
  byId("steps").replaceChildren(...tree.walk(prefix).map(words));
}

function words({ node, prefix, left, goesRight, because }) {
  const item = document.createElement("li");
  const [p, l, rest] = [prefix, left, prefix - left].map((number) => rounded(number));
  item.textContent =
    `Node ${node}: ` +
    {
      below: `${p} is below ${l}, the sum on the left. Go left.`,
      beyond: `${p} is not below ${l}, the sum on the left. Go right, with ${p} − ${l} = ${rest}.`,
      empty: `there is nothing on the right. Go left.`,
    }[because];
  item.dataset.goes = goesRight ? "right" : "left";
  return item;
}

function found() {
  const nodes = tree.path(dart.leaf);
  return (
    `The dart at ${rounded(dart.prefix)} of ${rounded(tree.total)} hits item [${dart.leaf}], ` +
    `of priority ${rounded(tree.get(dart.leaf))}. The path: nodes ${nodes.join(", ")}.`
  );
}

function endWalk() {
  walk += 1;
  change(drawn.walker, { visibility: "hidden" });
  drawn.dart.getAnimations().forEach((animation) => animation.cancel());
}

/** Throw a dart at a fraction of the line, in [0, 1), and walk to what it hits. */
async function throwAt(fraction) {
  if (!tree.total) return;
  endWalk();
  const mine = walk;
  aim(fraction);
  hits[dart.leaf] += 1;
  place.value = fraction;
  const steps = [...byId("steps").children];
  show();
  if (!stillPlease()) {
    tell(`The dart lands at ${rounded(dart.prefix)} of ${rounded(tree.total)}.`);
    drawn.strips[dart.leaf].group.classList.remove("on");
    const nodes = tree.path(dart.leaf);
    showPath([]);
    for (const step of steps) step.style.visibility = "hidden";
    const shift = dartPlace();
    await finished(
      drawn.dart.animate(
        [
          { transform: `translate(${shift}px, -46px)`, opacity: 0 },
          { transform: `translate(${shift}px, 0)`, opacity: 1 },
        ],
        { duration: 320, easing: "cubic-bezier(.4,0,1,1)" },
      ),
    );
    for (let level = 0; level < nodes.length; level++) {
      if (mine !== walk) return;
      showPath(nodes.slice(0, level + 1));
      if (level < steps.length) {
        steps[level].style.visibility = "";
        await move(places[nodes[level]], places[nodes[level + 1]]);
      }
    }
    if (mine !== walk) return;
    change(drawn.walker, { visibility: "hidden" });
    show();
  }
  tell(found());
}

async function move(from, to) {
  const at = ({ x, y }) => ({ transform: `translate(${x}px, ${y}px)` });
  change(drawn.walker, { visibility: "visible" });
  const settings = { duration: PACE, easing: "cubic-bezier(.45,0,.25,1)", fill: "forwards" };
  await finished(drawn.walker.animate([at(from), at(to)], settings));
}

/** The end of an animation, whether it came to it or not. */
const finished = (animation) => animation.finished.catch(() => {});

const percent = (share) => `${rounded(100 * share, 0)} %`;

function throwHundred() {
  endWalk();
  for (let k = 0; k < 100; k++) hits[tree.find(Math.random() * tree.total)] += 1;
  const most = hits.indexOf(Math.max(...hits));
  const thrown = hits.reduce((sum, count) => sum + count, 0);
  show();
  tell(
    `${thrown} darts so far. Item [${most}] was hit most often, by ${percent(hits[most] / thrown)} ` +
      `of them; its share of the line is ${percent(tree.get(most) / tree.total)}.`,
  );
}

const place = slider(
  "place",
  () => (dart ? `${rounded(dart.prefix)} of ${rounded(tree.total)}` : "nowhere"),
  (fraction) => {
    endWalk();
    aim(fraction);
    show();
    if (dart) tell(found());
  },
);
const priority = slider("priority", rounded, (value) => setLeaf(chosen, value));
slider("capacity", rounded, (capacity) => {
  endWalk();
  tree = fresh(capacity);
  hits = new Array(capacity).fill(0);
  aim(place.value);
  draw();
  place.show();
  choose(Math.min(chosen, capacity - 1));
  const padding = tree.leaves - capacity;
  const filledUp = `, filled up to ${tree.leaves} with ${padding} empty ${padding === 1 ? "one" : "ones"}`;
  const steps = Math.log2(tree.leaves);
  tell(
    `${capacity} leaves${padding ? filledUp : ""}. ` +
      `A walk takes ${steps} ${steps === 1 ? "step" : "steps"}.`,
  );
});

byId("throw").addEventListener("click", () => throwAt(Math.random()));
byId("hundred").addEventListener("click", throwHundred);
byId("clear").addEventListener("click", () => {
  hits.fill(0);
  show();
  tell("The hits are forgotten.");
});

begin();
aim(place.value);
place.show();
tell(found());
drawToFit(byId("picture"), (now) => {
  width = now;
  if (drawn.walker) endWalk();
  draw();
});
