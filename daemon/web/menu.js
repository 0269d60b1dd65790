// A button with a panel below it; opening one closes the others. A menu at a point. Esc and a click elsewhere close
// both.
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
  const panel = el("div.panel", content);
  const summary = el("summary", { id, title: about }, label);
  const node = el("details.menu", summary, panel);
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

/** Opens a menu where an event points, or below its node if it comes from the keyboard. items: [text, what it does or
 *  the properties of a link]. Arrows move; Esc, a choice and a click elsewhere close it. */
export function popup(about, event, items, below = event.target) {
  const frame = below.getBoundingClientRect();
  const { x, y } = event.clientX ? { x: event.clientX, y: event.clientY } : { x: frame.left, y: frame.bottom };
  const before = document.activeElement;
  const role = { role: "menuitem", tabIndex: -1 };
  const entry = ([text, does]) =>
    typeof does === "function"
      ? el("button", { type: "button", ...role, onclick: does }, text)
      : el("a", { ...does, ...role }, text);
  const entries = items.map(entry);
  const node = el("div.popup", { role: "menu", "aria-label": about }, entries);
  const close = () => {
    if (!node.isConnected) return;
    node.remove();
    before.focus?.({ preventScroll: true });
    removeEventListener("pointerdown", outside, true);
  };
  const outside = (event) => node.contains(event.target) || close();
  addEventListener("pointerdown", outside, true);
  node.addEventListener("click", close);
  node.addEventListener("keydown", (event) => {
    const at = entries.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1 + entries.length, Home: 0, End: entries.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (next !== undefined) entries[next % entries.length].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  document.body.append(node);
  node.style.left = `${Math.max(EDGE, Math.min(x, document.documentElement.clientWidth - node.offsetWidth - EDGE))}px`;
  node.style.top = `${Math.max(EDGE, Math.min(y, innerHeight - node.offsetHeight - EDGE))}px`;
  entries[0].focus();
}
