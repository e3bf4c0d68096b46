// What scrolls in its own box can be scrolled by keyboard.
for (const box of document.querySelectorAll("table, div.math, p")) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}

// An explorable is as tall as what it holds, and as dark as the page around it.
for (const frame of document.querySelectorAll("iframe.explorable")) {
  const fit = () => {
    const inner = frame.contentDocument.documentElement;
    const dress = () => (inner.dataset.theme = document.documentElement.dataset.theme);
    const grow = () => (frame.style.height = `${inner.getBoundingClientRect().height + 2}px`);
    dress();
    grow();
    new ResizeObserver(grow).observe(inner);
    new MutationObserver(dress).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  };
  frame.addEventListener("load", fit);
  if (frame.contentDocument?.querySelector("main")) fit(); // it was faster than this script
}
