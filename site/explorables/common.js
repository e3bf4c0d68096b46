// What the pages share: drawing in SVG, sliders and arrow keys.

const SVG = "http://www.w3.org/2000/svg";

/** The element of this id. */
export const byId = (id) => document.getElementById(id);

/** Make an SVG element with these attributes and children (elements, or text). */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Set attributes of an element that is drawn already; CSS makes the change smooth. */
export function change(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
}

/** At most `digits` after the point, and none that are zero. */
export const rounded = (number, digits = 2) => String(Number(number.toFixed(digits)));

/** Whether the reader asks for less motion. */
export const stillPlease = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Tell what happened: seen by everyone, and read out by screen readers. */
export const tell = (text) => {
  byId("status").textContent = text;
};

/** Call `changed(value)` whenever the slider moves, and show `words(value)` beside it. */
export function slider(id, words, changed) {
  const input = byId(id);
  const show = () => {
    const text = words(Number(input.value));
    byId(`${id}-value`).textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  input.addEventListener("input", () => {
    changed(Number(input.value));
    show();
  });
  show();
  return {
    show,
    get value() {
      return Number(input.value);
    },
    set value(value) {
      input.value = value;
      show();
    },
    set max(max) {
      input.max = max;
      show();
    },
  };
}

/**
 * A row of upright sliders drawn in SVG: left and right go from one to the next, up and down change
 * the value, Home and End go to the ends. Only the chosen one is reached by the tab key.
 *
 * choose(index) and step(index, by) are called with what the reader did.
 */
export function arrowKeys(elements, { choose, step }) {
  const last = elements.length - 1;
  elements.forEach((element, index) => {
    const keys = {
      ArrowLeft: () => go(Math.max(0, index - 1)),
      ArrowRight: () => go(Math.min(last, index + 1)),
      Home: () => go(0),
      End: () => go(last),
      ArrowUp: () => step(index, 1),
      ArrowDown: () => step(index, -1),
      PageUp: () => step(index, 5),
      PageDown: () => step(index, -5),
    };
    element.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
  });

  function go(index) {
    choose(index);
    elements[index].focus();
  }
}

/** Call draw(width) now, and whenever the element's width changes. */
export function drawToFit(element, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.round(element.clientWidth);
    if (now && now !== width) draw((width = now));
  }).observe(element);
}

/** Show the page. A page around it says some things already: style.css leaves those out. */
export function begin() {
  byId("app").hidden = false;
  document.documentElement.classList.toggle("embedded", window.parent !== window);
}
