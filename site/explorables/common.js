// What both pages share: drawing in SVG, and sliders with a word about their value.

/** The element of this id. */
export const byId = (id) => document.getElementById(id);

/** Make an SVG element with these attributes and children (elements, or text). */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** At most `digits` after the point, and none that are zero. */
export const rounded = (number, digits = 2) => String(Number(number.toFixed(digits)));

/** A share as percent, such as "12.5 %". */
export const percent = (share, digits = 1) => `${rounded(100 * share, digits)} %`;

/**
 * The slider of this id. `changed()` is called when the reader moves it, and `tell(text)` shows and
 * reads out what its value means.
 */
export function slider(id, changed) {
  const input = byId(id);
  input.addEventListener("input", changed);
  return {
    get value() {
      return Number(input.value);
    },
    set value(value) {
      input.value = value;
    },
    tell(text) {
      byId(`${id}-value`).textContent = text;
      input.setAttribute("aria-valuetext", text);
    },
  };
}

/** Show a picture of these pixels in place of the one before; `status` says what there is to see. */
export function show(width, height, children, status) {
  const viewBox = `0 0 ${width} ${height}`;
  const picture = svg("svg", { viewBox, height, "aria-hidden": "true" }, ...children);
  byId("picture").replaceChildren(picture);
  byId("status").textContent = status;
}

/** Show the controls, and call draw(width) now and whenever there is more or less room. */
export function begin(draw) {
  byId("app").hidden = false;
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now && now !== width) draw((width = now));
  }).observe(byId("picture"));
}
