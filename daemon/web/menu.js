// A button with a panel below it. Opening one closes the others; Esc and a click elsewhere close it.
import { el } from "./dom.js";

const EDGE = 8; // pixels between a panel and the edge of the window

/** The panel begins at its button, and moves to the left as far as the window needs. */
function place(node, panel) {
  panel.style.left = "0";
  const right = panel.getBoundingClientRect().right;
  const most = document.documentElement.clientWidth - EDGE;
  const left = node.getBoundingClientRect().left - EDGE;
  if (right > most) panel.style.left = `${-Math.min(left, right - most)}px`;
}

/** id: of the button. about: what the button is for. opened: called when the panel opens for the first time. */
export function menu(id, about, label, content, opened) {
  const panel = el("div", { class: "panel" }, content);
  const summary = el("summary", { id, title: about }, label);
  const node = el("details", { class: "menu" }, summary, panel);
  let fresh = true;
  node.addEventListener("toggle", () => {
    if (!node.open) return;
    for (const other of document.querySelectorAll("details.menu[open]")) if (other !== node) other.open = false;
    place(node, panel);
    if (fresh) opened?.(panel);
    fresh = false;
  });
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !node.open) return;
    node.open = false;
    summary.focus();
    event.stopPropagation();
  });
  return node;
}

document.addEventListener("click", (event) => {
  for (const node of document.querySelectorAll("details.menu[open]")) {
    if (event.target.isConnected && !node.contains(event.target)) node.open = false;
  }
});
