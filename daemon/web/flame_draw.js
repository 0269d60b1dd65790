// Draws boxes of stacks, width = time, from a root down, or with `up` the callers above a function. Zoom, keys, touch,
// tooltip.
import { el, replace, svg } from "./dom.js";
import * as format from "./format.js";

const ROW = 24; // pixels: also the least height of what a finger finds
const LEAST = 2; // pixels of the narrowest box that is drawn; narrower ones are drawn together
const LETTER = 7.25; // pixels of a letter
const GAP = 12; // between the pointer and the tooltip

/** The same hue for the same name, far from red-green contrasts; lightness is the theme's. */
function hue(name) {
  let h = 7;
  for (const c of name) h = (h * 31 + c.codePointAt(0)) >>> 0;
  return 190 + (h % 110);
}

function inside(box, zoom) {
  for (let b = box; b; b = b.parent) if (b === zoom) return true;
  return false;
}

/** What is drawn from the box that fills the width: {box, x, w, level}; siblings that are too narrow are one place. */
function placesOf(top, width) {
  const scale = width / (top.value || 1);
  const places = [];
  const todo = [{ box: top, x: 0, w: top.value > 0 ? width : 0, level: top.level }];
  while (todo.length) {
    const place = todo.pop();
    places.push(place);
    let x = place.x;
    const narrow = { narrow: 0, value: 0, x: 0, w: 0, level: place.level + 1, parent: place.box };
    const next = [];
    for (const box of place.box.children) {
      const w = box.value * scale;
      if (w >= LEAST) next.push({ box, x, w, level: place.level + 1 });
      else {
        if (!narrow.narrow) narrow.x = x;
        narrow.narrow += 1;
        narrow.value += box.value;
        narrow.w += w;
      }
      x += w;
    }
    for (const one of next.reverse()) todo.push(one);
    if (narrow.w >= 0.5) places.push(narrow);
  }
  return places;
}

/** What stands below a picture of stacks before a box is chosen. */
export const POINT = matchMedia("(hover: none)").matches ? "Tap a box." : "Point at a box, or move with the arrows.";

export class Flame {
  /** top: the box that fills the width. text(box): its numbers. zoomed(box): told when another box fills the width.
   *  told(box): the box that the pointer, a finger or the focus is at. up: callers stand above. */
  constructor({ top, label, text, zoomed, told, up = false }) {
    Object.assign(this, { top, text, zoomed, told, up, width: 0 });
    this.view = svg("svg", { class: "flame", role: "tree", "aria-label": label, tabindex: "-1" });
    this.tip = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.node = el("div", { class: "picture flames" }, this.view, this.tip);
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.view.addEventListener("click", (event) => this.click(event));
    this.view.addEventListener("pointermove", (event) => this.hover(event));
    this.view.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.view.addEventListener("focusin", (event) => this.tell(this.boxOf(event)));
    new ResizeObserver(() => this.node.clientWidth !== this.width && this.draw()).observe(this.node);
  }

  boxOf(event) {
    return this.nodes.get(event.target.closest?.(".box"));
  }

  zoom(box, focus = true) {
    this.top = box;
    this.draw();
    this.tip.hidden = true;
    this.zoomed(box);
    if (focus) this.focus(box);
  }

  draw() {
    this.width = this.node.clientWidth;
    const width = Math.max(this.width, 200);
    const over = [];
    for (let b = this.top.parent; b; b = b.parent) over.unshift({ box: b, x: 0, w: width, level: b.level });
    const places = [...over, ...placesOf(this.top, width)];
    const deepest = places.reduce((most, p) => Math.max(most, p.level), 0);
    const y = (level) => (this.up ? deepest - level : level) * ROW;
    this.view.setAttribute("viewBox", `0 0 ${width} ${(deepest + 1) * ROW}`);
    this.view.setAttribute("height", (deepest + 1) * ROW);
    this.nodes = new Map();
    this.drawn = new Map();
    replace(
      this.view,
      places.map((p) => (p.narrow ? this.narrow(p, y(p.level)) : this.box(p, y(p.level)))),
    );
    if (this.up) this.node.scrollTop = this.node.scrollHeight; // the function itself is below
    this.mark(this.wanted, this.chosen);
  }

  /** Siblings that are too narrow to be drawn each; the title says how many. */
  narrow(p, y) {
    const size = { x: p.x.toFixed(2), y, width: Math.max(p.w - 0.5, 0.5), height: ROW - 1 };
    const title = `${format.several(p.narrow, "box is", "boxes are")} too narrow to be shown`;
    return svg("rect", { class: "narrow", ...size }, svg("title", {}, title));
  }

  box({ box, x, w, level }, y) {
    const chars = Math.floor((w - 6) / LETTER);
    const { label } = box;
    const text = label.length > chars ? `${label.slice(0, chars - 1)}…` : label;
    const kind = [
      "box",
      level < this.top.level ? "above" : "",
      box.inferred ? "inferred" : "",
      box.frame?.kernel ? "kernel" : "",
    ];
    const node = svg(
      "g",
      {
        class: kind.filter(Boolean).join(" "),
        role: "treeitem",
        tabindex: box === this.top ? 0 : -1,
        "aria-level": level + 1,
        "aria-label": this.text(box).join(", "),
        transform: `translate(${x.toFixed(2)},${y})`,
      },
      svg("rect", { width: Math.max(w - 0.5, 0.4).toFixed(2), height: ROW - 1, style: `--hue:${hue(label)}` }),
      chars >= 3 ? svg("text", { x: 4, y: ROW - 8 }, text) : null,
    );
    this.nodes.set(node, box);
    this.drawn.set(box, node);
    return node;
  }

  /** Marks what matches wanted(name), and all boxes of the function with the key chosen. */
  mark(wanted, chosen) {
    Object.assign(this, { wanted, chosen });
    for (const [node, box] of this.nodes) {
      const hit = Boolean(wanted && box.frame && wanted(box.name ?? box.label));
      node.classList.toggle("hit", hit);
      node.classList.toggle("miss", Boolean(wanted) && !hit);
      node.classList.toggle("same", box.key === chosen);
    }
  }

  tell(box) {
    if (!box || box === this.at) return;
    this.at = box;
    this.mark(this.wanted, box.key);
    this.told(box);
  }

  hover(event) {
    const box = this.boxOf(event);
    this.tip.hidden = !box || event.pointerType === "touch";
    if (!box) return;
    if (box !== this.at || !this.tip.hasChildNodes()) {
      const [name, ...numbers] = this.text(box);
      replace(
        this.tip,
        el("strong", {}, name),
        numbers.map((text) => el("div", {}, text)),
      );
    }
    this.tell(box);
    const frame = this.node.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top + this.node.scrollTop];
    const left = Math.min(x + GAP, frame.width - this.tip.offsetWidth - 4);
    const below = event.clientY + GAP + this.tip.offsetHeight < innerHeight;
    this.tip.style.left = `${Math.max(4, left)}px`;
    this.tip.style.top = `${below ? y + GAP : y - GAP - this.tip.offsetHeight}px`;
  }

  /** A finger says first which box it is at; the next tap on the same box zooms. */
  click(event) {
    const box = this.boxOf(event);
    if (!box) return;
    const first = event.pointerType === "touch" && this.touched !== box;
    this.touched = box;
    if (first) {
      this.tell(box);
      this.focus(box);
    } else this.zoom(box);
  }

  focus(box) {
    for (const [node, b] of this.nodes) node.setAttribute("tabindex", b === box ? "0" : "-1");
    this.drawn.get(box)?.focus({ preventScroll: false });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = this.nodes.get(document.activeElement);
    if (!now) return;
    const seen = (b) => (b && this.drawn.has(b) ? b : undefined);
    const siblings = now.parent && inside(now, this.top) && now !== this.top ? now.parent.children.filter(seen) : [now];
    const place = siblings.indexOf(now);
    const child = () => now.children.find(seen);
    const [out, into] = this.up ? ["ArrowDown", "ArrowUp"] : ["ArrowUp", "ArrowDown"];
    const to = {
      [out]: () => seen(now.parent),
      [into]: child,
      ArrowLeft: () => siblings[place - 1],
      ArrowRight: () => siblings[place + 1],
      Home: () => this.drawn.keys().next().value,
    }[event.key]?.();
    if (to) this.focus(to);
    else if (event.key === "Enter" || event.key === " " || event.key === "+") this.zoom(now);
    else if (event.key === "-") this.zoom(this.top.parent ?? this.top);
    else if (event.key === "Escape" || event.key === "0") this.reset();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  reset() {
    let root = this.top;
    while (root.parent) root = root.parent;
    this.zoom(root);
  }
}

/** What a box says: name, time with its interval, share, self time, and what is special of it. look: of stacks_ask.js.
 *  self: what the time is called that ends in the box. */
export function textOf(box, look, self) {
  const known = look.range(box.value);
  const stacks = known ? `, ${format.several(known.stacks, "stack", "stacks")}` : "";
  return [
    box.name ?? box.label,
    `${look.amount(box.value)} (${look.percent(box.value)})${stacks}`,
    known && known.low < known.high ? `95 %: ${look.between(known)}` : "",
    box.self > 0 ? `${self} ${look.amount(box.self)}` : "",
    box.cut > 0 ? `of it ${look.amount(box.cut)} in boxes that were left out` : "",
    box.inferred ? "not seen, but named by the call before the next frame" : "",
    box.frame?.kernel ? "code of the kernel" : "",
  ].filter(Boolean);
}
