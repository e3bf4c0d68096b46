// The page of the map: what is drawn, and what the reader can do.

import { arrowKeys, begin, byId, change, drawToFit, slider, svg, tell } from "../common.js";
import { methods, noises, points, rarities, scale, shown, worlds } from "./data.js";

const NAMES = { uniform: "uniform replay", per: "PER", rank: "PER by rank", relo: "ReLo" };
const STRONGEST = 0.8; // a gain, or a loss, that has the full colour
const CHART = { height: 252, left: 40, right: 8, top: 8, bottom: 38 };
const HIGHEST = 0.6; // error on the linear axis

let buttons = []; // of the map: buttons[rarity][noise]
let width = 0; // of the chart

const checked = (name) => document.querySelector(`[name=${name}]:checked`).value;
const world = (row, column) => worlds[row * noises.length + column];
const signed = (number) => (number < 0 ? "−" : "+") + Math.abs(number).toFixed(2);
const inWords = (rate) => (rate <= 0.5 ? `1/${1 / rate}` : `${rate}`);

/** What a method, not uniform replay, gains in a world. */
function found(row, column) {
  const which = methods.indexOf(checked("method")) - 1; // uniform replay gains nothing on itself
  const [gain, low, high] = world(row, column).gains[which];
  const verdict = world(row, column).verdicts[which];
  const told = verdict === "helps" || verdict === "hurts";
  return { gain, low, high, told, verdict };
}

/** A method's errors, part by part of the training. */
function curve(method) {
  let units = 0;
  return world(rarity.value, noise.value).curves[methods.indexOf(method)].map(
    (difference) => (units += difference) / scale,
  );
}

// --- drawing ---------------------------------------------------------------------------------

/** An HTML element of this text. */
function html(name, text, attributes = {}) {
  const element = document.createElement(name);
  element.textContent = text;
  change(element, attributes);
  return element;
}

function makeMap() {
  byId("noises").append(...noises.map((sigma) => html("th", `${sigma}`, { scope: "col" })));
  buttons = rarities.map((steps, row) => {
    const cells = noises.map(() => html("button", "", { type: "button" }));
    cells.forEach((cell, column) => cell.addEventListener("click", () => choose(row, column)));
    arrowKeys(cells, {
      choose: (column) => choose(row, column),
      step: (column, by) => {
        const next = Math.min(rarities.length - 1, Math.max(0, row + by));
        choose(next, column);
        buttons[next][column].focus();
      },
    });
    const line = html("tr", "");
    line.append(html("th", `1 in ${steps}`, { scope: "row" }));
    for (const cell of cells) line.insertCell().append(cell);
    byId("map").prepend(line); // the rarest on top
    return cells;
  });
}

function show() {
  const method = checked("method");
  byId("caption").textContent = `Gain of ${NAMES[method]} over uniform replay`;
  buttons.forEach((cells, row) => {
    cells.forEach((cell, column) => {
      const { gain, told, verdict } = found(row, column);
      const now = row === rarity.value && column === noise.value;
      cell.textContent = signed(gain);
      const frame = told ? "told" : verdict === "borderline" ? "borderline" : "";
      cell.className = `${gain < 0 ? "hurts" : "helps"} ${frame}`;
      cell.style.setProperty("--strength", Math.min(1, Math.abs(gain) / STRONGEST));
      const name = `${place(row, column)}: gain ${signed(gain)}, ${verdict}`;
      change(cell, { "aria-label": name, "aria-pressed": now, tabindex: now ? 0 : -1 });
    });
  });
  byId("title").textContent = `Errors: 1 in ${rarities[rarity.value]} pays, noise ${noises[noise.value]}`;
  showLegend(method);
  drawCurves();
  tell(sentence(method));
}

const place = (row, column) => `one step in ${rarities[row]} pays, noise ${noises[column]}`;

function sentence(method) {
  const { gain, low, high, told, verdict } = found(rarity.value, noise.value);
  const where = `Where one step in ${rarities[rarity.value]} pays and the noise is ${noises[noise.value]}`;
  const what = `a gain of ${signed(gain)} [${signed(low)}, ${signed(high)}]`;
  if (verdict === "borderline")
    return `${where}, the difference between ${NAMES[method]} and uniform replay is borderline: ${what}.`;
  if (!told) return `${where}, ${NAMES[method]} and uniform replay are ${verdict}: ${what}.`;
  const share = Math.round(100 * Math.abs(1 - 2 ** -gain));
  const change = `${share} % ${gain > 0 ? "less" : "more"} error`;
  return `${where}, ${NAMES[method]} ${verdict}: ${what}, or ${change} than uniform replay.`;
}

function showLegend(chosen) {
  const { rates } = world(rarity.value, noise.value);
  byId("legend").replaceChildren(
    ...methods.map((method, k) => {
      const item = html("li", "", { class: `${method} ${method === chosen ? "now" : ""}` });
      const sample = svg("svg", { viewBox: "0 0 28 6", "aria-hidden": "true" });
      sample.append(svg("path", { class: "curve", d: "M0 3H28" }));
      item.append(sample, `${NAMES[method]}, rate ${inWords(rates[k])}`);
      return item;
    }),
  );
}

function drawCurves() {
  if (!width) return;
  const log = checked("scale") === "log";
  const lowest = noises[noise.value] ? 0.01 : 0.001; // error on the logarithmic axis
  const end = shown[noise.value];
  const [bottom, right] = [CHART.height - CHART.bottom, width - CHART.right];
  const x = (share) => CHART.left + (share / end) * (right - CHART.left);
  const y = (error) => {
    const height = log ? 1 - Math.log(Math.max(error, lowest)) / Math.log(lowest) : error / HIGHEST;
    return bottom - height * (bottom - CHART.top);
  };
  const canvas = svg("svg", { viewBox: `0 0 ${width} ${CHART.height}`, height: CHART.height, role: "img" });
  for (const error of log ? [1, 0.1, 0.01, 0.001].filter((one) => one >= lowest) : [0, 0.2, 0.4, 0.6]) {
    canvas.append(
      svg("line", { class: "axis", x1: CHART.left, x2: right, y1: y(error), y2: y(error) }),
      svg("text", { class: "soft end", x: CHART.left - 7, y: y(error) + 4 }, `${error}`),
    );
  }
  for (const quarter of [0, 1, 2, 3, 4]) {
    const share = (quarter / 4) * end;
    const text = { class: "soft middle", x: x(share), y: bottom + 16 };
    canvas.append(svg("text", text, `${Number(share.toFixed(3))}`));
  }
  const part = end < 1 ? `, its first ${end * 100} %` : "";
  const middle = { class: "soft middle", x: x(end / 2), y: bottom + 33 };
  canvas.append(svg("text", middle, `share of the training${part}`));
  const words = methods.map((method) => {
    const errors = curve(method);
    const below = log ? errors.findIndex((error) => error < lowest) : -1; // where it leaves the chart
    const line = errors
      .slice(0, below < 0 ? errors.length : below + 1)
      .map((error, k) => `${x((k + 0.5) / points).toFixed(1)} ${y(error).toFixed(1)}`);
    const group = svg("g", { class: `${method} ${method === checked("method") ? "now" : ""}` });
    group.append(svg("path", { class: "curve", d: `M${line.join("L")}` }));
    canvas.append(group);
    return `${NAMES[method]} from ${errors[0].toFixed(2)} to ${errors.at(-1).toFixed(2)}`;
  });
  canvas.setAttribute("aria-label", `Errors over the training${part}: ${words.join(", ")}`);
  byId("curves").replaceChildren(canvas);
}

// --- what the reader does --------------------------------------------------------------------

function choose(row, column) {
  rarity.value = row;
  noise.value = column;
  show();
}

const rarity = slider("rarity", (row) => `1 in ${rarities[row]}`, () => show());
const noise = slider("noise", (column) => `${noises[column]}`, () => show());
for (const input of document.querySelectorAll("[type=radio]")) input.addEventListener("change", show);

begin();
makeMap();
show();
drawToFit(byId("curves"), (now) => {
  width = now;
  drawCurves();
});
