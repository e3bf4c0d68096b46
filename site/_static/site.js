// What is wider than the page scrolls in its own box: the keyboard must reach that box.
function reachable() {
  for (const box of document.querySelectorAll("pre, table, .formula, .output")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}

// The sidebar's arrows have no text that says what they open.
for (const toggle of document.querySelectorAll("nav details > summary")) {
  const link = toggle.closest("li")?.querySelector("a");
  if (link && !toggle.innerText.trim()) toggle.setAttribute("aria-label", `Pages of ${link.innerText}`);
}

// An explorable is as tall as what it holds, and as dark as the page around it.
function fit(frame) {
  const inner = frame.contentDocument.documentElement;
  const dress = () => (inner.dataset.theme = document.documentElement.dataset.theme);
  const grow = () => (frame.style.height = `${inner.querySelector("body").scrollHeight + 2}px`);
  dress();
  grow();
  new ResizeObserver(grow).observe(inner.querySelector("body"));
  new MutationObserver(dress).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
}

for (const frame of document.querySelectorAll("iframe.explorable")) {
  if (frame.contentDocument?.readyState === "complete" && frame.contentDocument.body?.children.length) fit(frame);
  frame.addEventListener("load", () => fit(frame));
}
reachable();
window.addEventListener("resize", reachable);
