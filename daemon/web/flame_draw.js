// Draws boxes of stacks, width = time, from a root down, or with `up` the callers above a function. Zoom by click,
// keys, wheel and drag; touch; tooltip; menu; a small picture of the whole where only a part is in sight.
import { el, replace, svg } from "./dom.js";
import * as format from "./format.js";
import { rootOf, startOf, walk } from "./stacks.js";
import { NARROW, nextOf } from "./table.js";

const ROW = 24; // pixels: also the least height of what a finger finds
const LEAST = 2; // pixels of the narrowest box that is drawn; narrower ones are drawn together
const SLIVER = 0.5; // pixels that are not drawn
const LETTER = 7.25; // pixels of a letter
const INSET = 3; // pixels before a name
const READABLE = 5; // letters that are left of a name at least
const GAP = 12; // between the pointer and the tooltip
const MAP = 40; // pixels: height of the small picture of the whole
const ALL = { from: 0, to: 1 };
const CLOSEST = 1e-6; // of the whole: the least part that fills the width
const REST = 400; // ms after the last turn of the wheel: a zoom is one step of the history
const NEAR = 3; // widths of a box that are shown around one that is found
const FOUND = 1e-4; // of the whole: the narrowest box that a search goes to

/** Which part of the root a box is. */
function partOf(box) {
  const { value } = rootOf(box);
  const start = startOf(box) / value;
  return box.parent ? { from: start, to: start + box.value / value } : ALL;
}

/** What is drawn if a part of the root fills the width: {box, x, w, level}, upper levels first; siblings that are too
 *  narrow are one place. */
function placesOf(root, width, { from, to }) {
  const scale = root.value > 0 ? width / ((to - from) * root.value) : 0;
  const places = [{ box: root, x: -from * root.value * scale, w: root.value * scale, level: root.level }];
  for (const { box: parent, x: left, level } of places) {
    let x = left;
    const narrow = { count: 0, x: 0, w: 0, level: level + 1 };
    for (const box of parent?.children ?? []) {
      const w = box.value * scale;
      if (x + w > SLIVER && x < width - SLIVER) {
        if (w >= LEAST) places.push({ box, x, w, level: level + 1 });
        else {
          if (!narrow.count) narrow.x = x;
          narrow.count += 1;
          narrow.w += w;
        }
      }
      x += w;
    }
    if (narrow.w >= SLIVER) places.push(narrow);
  }
  return places;
}

/** A name in that many letters: what stands before it goes first, then its end; "" where it could not be read. */
function fitted(name, letters) {
  const text = format.shorten(name, letters);
  if (text.length <= letters) return text;
  return letters > READABLE ? `${text.slice(0, letters - 1)}…` : "";
}

/** What a box says: a sign, such as "▲ +6.4", before its name, as far as there is space. */
function labelOf(name, sign, letters) {
  if (!sign) return fitted(name, letters);
  const [arrow] = sign;
  for (const before of [`${sign} `, `${arrow} `, ""]) {
    const text = fitted(name, letters - before.length);
    if (text) return before + text;
  }
  return [sign, arrow].find((text) => text.length <= letters) ?? "";
}

/** What stands below a picture of stacks before a box is chosen. */
export const POINT = matchMedia("(hover: none)").matches
  ? "Tap a box."
  : "A click zooms, dragging moves, Ctrl and the wheel zoom, a right click opens a menu; or use the arrows.";

export class Flame {
  /** top: the box that fills the width; at: if it is not empty, the part of the root that does, as "from,to".
   *  text(box): what is said of it. share(box): what stands behind its name. paint(box): {kind, style, sign, edge}:
   *  classes and style; what stands before its name; 0 or 1: a line at its upper or lower end. zoomed(box, at): told
   *  when another part is in sight. told(box): the box that the pointer, a finger or the focus is at. menu(box, event):
   *  opens its menu. up: callers stand above.
   */
  constructor({ top, at = "", label, text, share, paint, zoomed, told, menu, up = false }) {
    Object.assign(this, { top, text, share, paint, zoomed, told, menu, up, width: 0, sight: partOf(top) });
    Object.assign(this, { drawn: new Map(), names: new Map(), spaces: new Map(), nodes: new WeakMap() });
    const [from, to] = at.split(",").map(Number);
    if (to > from) Object.assign(this, { top: rootOf(top), sight: { from, to } });
    this.view = svg("svg.flame", { role: "tree", "aria-label": label, tabindex: "-1" });
    this.tip = el("div.tip", { hidden: true, "aria-hidden": "true" });
    this.picture = el("div.picture.flames", this.view, this.tip);
    this.map = svg("svg.flame.map", { "aria-hidden": "true", height: MAP, preserveAspectRatio: "none" });
    this.node = [this.picture, this.map];
    const on = (name, act) => this.view.addEventListener(name, act, { passive: false });
    on("keydown", (event) => this.key(event));
    on("click", (event) => this.click(event));
    on("contextmenu", (event) => this.ask(event));
    on("wheel", (event) => this.wheel(event));
    on("pointerdown", (event) => (this.held = event.pointerType === "mouse" && event.button === 0 ? event : null));
    on("pointermove", (event) => (event.buttons === 1 && this.held ? this.drag(event) : this.hover(event)));
    on("pointerleave", () => (this.tip.hidden = true));
    on("focusin", (event) => this.tell(this.boxOf(event)));
    for (const name of ["pointerdown", "pointermove"])
      this.map.addEventListener(name, (event) => event.buttons === 1 && this.choose(event));
    new ResizeObserver(() => this.picture.clientWidth !== this.width && this.draw()).observe(this.picture);
  }

  boxOf(event) {
    return event.target.closest?.(".box")?.box;
  }

  zoom(box, focus = true) {
    Object.assign(this, { top: box, sight: partOf(box) });
    clearTimeout(this.rest);
    this.draw();
    if (focus) this.focus(box);
    this.zoomed(box, "");
  }

  /** Shows that part of the root. */
  look(from, to) {
    const part = Math.min(1, Math.max(CLOSEST, to - from));
    const start = Math.min(1 - part, Math.max(0, from + (to - from - part) / 2));
    Object.assign(this, { top: rootOf(this.top), sight: { from: start, to: start + part } });
    this.waits ||= requestAnimationFrame(() => this.draw());
    clearTimeout(this.rest);
    const at = part < 1 ? [start, start + part].map((x) => x.toFixed(7)).join() : "";
    this.rest = setTimeout(() => this.view.isConnected && this.zoomed(this.top, at), REST);
  }

  /** Zooms around a place, 0 to 1 from left to right. */
  scale(factor, at) {
    const { from, to } = this.sight;
    const middle = from + at * (to - from);
    this.look(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  move(pixels) {
    const { from, to } = this.sight;
    const by = Math.min(1 - to, Math.max(-from, (pixels / this.width) * (to - from)));
    if (by) this.look(from + by, to + by);
  }

  wheel(event) {
    const aside = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey || (!aside && this.view.contains(document.activeElement))) {
      const frame = this.view.getBoundingClientRect();
      this.scale(event.deltaY > 0 ? 1.2 : 1 / 1.2, (event.clientX - frame.left) / frame.width);
    } else if (Math.abs(aside) > Math.abs(event.deltaY) || event.shiftKey) this.move(aside);
    else return;
    this.tip.hidden = true;
    event.preventDefault();
  }

  drag(event) {
    const [dx, dy] = [this.held.clientX - event.clientX, this.held.clientY - event.clientY];
    if (!this.dragging && Math.hypot(dx, dy) < 5) return;
    if (!this.dragging) this.view.setPointerCapture(event.pointerId);
    Object.assign(this, { dragging: true, held: event });
    this.tip.hidden = true;
    this.move(dx);
    this.picture.scrollTop += dy;
  }

  /** On the small picture: moves what is in sight to the pointer, or from outside of it takes what is dragged over. */
  choose(event) {
    const frame = this.map.getBoundingClientRect();
    const at = (event.clientX - frame.left) / frame.width;
    const { from, to } = this.sight;
    if (event.type === "pointerdown") {
      this.begun = at < from || at > to ? at : undefined;
      this.map.setPointerCapture(event.pointerId);
    }
    const half = (to - from) / 2;
    if (this.begun === undefined || event.type === "pointerdown") this.look(at - half, at + half);
    else this.look(Math.min(at, this.begun), Math.max(at, this.begun));
    event.preventDefault();
  }

  /** Whether only a part is in sight. */
  get part() {
    return this.sight.to - this.sight.from < 1;
  }

  draw() {
    cancelAnimationFrame(this.waits);
    this.waits = 0;
    this.width = this.picture.clientWidth;
    const width = Math.max(this.width, 200);
    const places = placesOf(rootOf(this.top), width, this.sight);
    const deepest = places.at(-1).level;
    const y = (level) => (this.up ? deepest - level : level) * ROW;
    const focused = this.focused;
    Object.assign(this, { drawn: new Map(), names: new Map(), spaces: new Map() });
    this.view.setAttribute("viewBox", `0 0 ${width} ${(deepest + 1) * ROW}`);
    this.view.setAttribute("height", (deepest + 1) * ROW);
    this.tip.hidden = true;
    const parts = places.map((p) => {
      const node = p.box && (this.nodes.get(p.box) ?? this.box(p.box));
      if (node) this.put(node, p, y(p.level), width);
      return node;
    });
    replace(this.view, this.narrow(places.filter((p) => p.count), y), parts);
    if (this.up) this.picture.scrollTop = this.picture.scrollHeight; // the function itself is below
    this.drawMap(width);
    this.mark(this.wanted, this.chosen);
    this.letters();
    this.stop(this.top);
    if (focused) this.focus(this.drawn.has(focused) ? focused : this.top);
  }

  /** The whole, and which part of it is in sight. */
  drawMap(width) {
    const shown = this.part && width >= NARROW / 2;
    this.map.toggleAttribute("hidden", !shown);
    if (!shown) return;
    if (this.mapped !== width) {
      this.mapped = width;
      const places = placesOf(rootOf(this.top), width, ALL).filter((p) => p.box);
      const levels = 1 + places.at(-1).level;
      const row = MAP / levels;
      const areas = new Map(); // by colour: one element of each
      for (const { box, x, w, level } of places) {
        const { kind, style = "" } = this.paint(box);
        const y = (this.up ? levels - 1 - level : level) * row;
        const key = JSON.stringify({ class: kind, style });
        const area = `M${x.toFixed(1)},${y.toFixed(1)}h${w.toFixed(1)}v${row}h-${w.toFixed(1)}z`;
        areas.set(key, (areas.get(key) ?? "") + area);
      }
      this.frame = svg("path.sight");
      this.map.setAttribute("viewBox", `0 0 ${width} ${MAP}`);
      const parts = [...areas].map(([key, d]) => svg("path", { ...JSON.parse(key), d }));
      replace(this.map, parts, this.frame);
    }
    const { from, to } = this.sight;
    const [a, b] = [from * width, Math.max(to * width, from * width + 1)];
    this.frame.setAttribute("d", `M0,0H${a}V${MAP}H0zM${b},0H${width}V${MAP}H${b}zM${a},0V${MAP}M${b},0V${MAP}`);
  }

  /** What is too narrow to be drawn by itself, as one element. */
  narrow(places, y) {
    const wide = (w) => Math.max(w - 0.5, 0.5).toFixed(1);
    const area = ({ x, w, level }) => `M${x.toFixed(1)},${y(level)}h${wide(w)}v${ROW - 1}h-${wide(w)}z`;
    const count = places.reduce((sum, p) => sum + p.count, 0);
    const title = `${format.several(count, "box is", "boxes are")} too narrow to be shown by themselves`;
    return count ? svg("path.narrow", { d: places.map(area).join("") }, svg("title", title)) : null;
  }

  box(box) {
    const { kind, style, edge } = this.paint(box);
    const said = { "aria-level": box.level + 1, "aria-label": this.text(box).join(", ") };
    const about = { role: "treeitem", tabindex: -1, ...said };
    const node = svg(
      "g",
      { class: `box ${kind}${box.inferred ? " inferred" : ""}`, ...about },
      svg("rect", { height: ROW - 1, style }),
      edge === undefined ? null : svg("rect.edge", { y: edge * (ROW - 4), height: 3 }),
    );
    this.nodes.set(box, node);
    return Object.assign(node, { box });
  }

  /** The box that has the focus. */
  get focused() {
    const { box } = document.activeElement;
    return this.drawn.get(box) === document.activeElement ? box : undefined;
  }

  /** Puts the node of a box to its place; its name stands in the part that is in sight. */
  put(node, { box, x, w, level }, y, width) {
    const left = Math.max(0, x);
    const size = Math.min(width, x + w) - left;
    node.setAttribute("transform", `translate(${left.toFixed(2)},${y})`);
    node.classList.toggle("above", level < this.top.level);
    const wide = Math.max(size - 0.5, 0.4).toFixed(2);
    for (const part of node.children) if (part.tagName === "rect") part.setAttribute("width", wide);
    this.names.set(box, labelOf(box.label, this.paint(box).sign, Math.floor((size - INSET - 1) / LETTER)));
    this.spaces.set(box, size);
    this.drawn.set(box, node);
  }

  hit(box) {
    return Boolean(this.wanted && box.frame && this.wanted(box.name ?? box.label));
  }

  /** The names in the boxes, and their shares where there is space; letters that match stand out. */
  letters() {
    for (const [box, name] of this.names) {
      const node = this.drawn.get(box);
      const found = this.hit(box) && this.wanted.pattern.exec(name);
      const end = found ? found.index + found[0].length : 0;
      const marked = found && svg("tspan.letters", found[0]);
      const share = name === box.label && this.share ? this.share(box) : "";
      const fits = (name.length + share.length + 2) * LETTER < this.spaces.get(box) - INSET;
      const text = [found ? [name.slice(0, found.index), marked, name.slice(end)] : name];
      if (share && fits) text.push(svg("tspan.part", { dx: LETTER }, share));
      if (node.lastChild.tagName === "text") node.lastChild.remove();
      if (name) node.append(svg("text", { x: INSET, y: ROW - 8 }, text));
    }
  }

  /** Marks what matches wanted(name), and all boxes of the function with the key chosen. */
  mark(wanted, chosen) {
    const other = wanted !== this.wanted;
    Object.assign(this, { wanted, chosen });
    for (const [box, node] of this.drawn) {
      const hit = this.hit(box);
      node.classList.toggle("hit", hit);
      node.classList.toggle("miss", Boolean(wanted) && !hit);
      node.classList.toggle("same", box.key === chosen);
      node.classList.toggle("at", box === this.found);
    }
    if (other) this.letters();
  }

  /** Brings the next box that matches into sight, or with -1 the one before. Gives {place, of}, from 1 on. */
  next(step = 1) {
    const root = rootOf(this.top);
    const hits = [];
    const gather = (box) => {
      if (box.value < FOUND * root.value) return false;
      if (this.hit(box)) hits.push(box);
      return true;
    };
    walk(root, gather);
    if (!hits.length) return null;
    this.found = nextOf(hits, this.found, step);
    const { from, to } = partOf(this.found);
    if (from < this.sight.from || to > this.sight.to + 1e-9 || !this.names.get(this.found))
      this.look(from - NEAR * (to - from), to + NEAR * (to - from));
    if (this.waits) this.draw();
    this.mark(this.wanted, this.chosen);
    this.drawn.get(this.found)?.scrollIntoView({ block: "nearest" });
    return { place: hits.indexOf(this.found) + 1, of: hits.length };
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
        el("strong", name),
        numbers.map((text) => el("div", text)),
      );
    }
    this.tell(box);
    const frame = this.picture.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top + this.picture.scrollTop];
    const left = Math.min(x + GAP, frame.width - this.tip.offsetWidth - 4);
    const below = event.clientY + GAP + this.tip.offsetHeight < innerHeight;
    this.tip.style.left = `${Math.max(4, left)}px`;
    this.tip.style.top = `${below ? y + GAP : y - GAP - this.tip.offsetHeight}px`;
  }

  /** A finger says first which box it is at; the next tap on the same box zooms. */
  click(event) {
    const box = this.boxOf(event);
    const dragged = this.dragging;
    this.dragging = false;
    if (!box || dragged) return;
    const first = event.pointerType === "touch" && this.touched !== box;
    this.touched = box;
    if (first) {
      this.tell(box);
      this.focus(box);
    } else this.zoom(box);
  }

  ask(event) {
    const box = this.boxOf(event);
    if (!box?.frame || !this.menu) return;
    event.preventDefault();
    this.tip.hidden = true;
    this.tell(box);
    this.menu(box, event);
  }

  /** The box at which Tab stops. */
  stop(box) {
    this.stopped?.setAttribute("tabindex", "-1");
    this.stopped = this.drawn.get(box);
    this.stopped?.setAttribute("tabindex", "0");
  }

  focus(box) {
    this.stop(box);
    this.stopped?.focus({ preventScroll: false });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = this.focused;
    if (!now) return;
    const seen = (b) => (b && this.drawn.has(b) ? b : undefined);
    const siblings = now.parent?.children.filter(seen) ?? [now];
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

  reset(focus = true) {
    this.zoom(rootOf(this.top), focus);
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
    box.cut > 0 ? `including ${look.amount(box.cut)} in boxes that were left out` : "",
    box.inferred ? "not seen on the stack, but named by the call instruction before the next frame" : "",
    box.frame?.kernel ? "code of the kernel" : "",
    box.name?.startsWith("[gap]") ? "code without a symbol" : "",
    box.frame?.module ? `in ${box.frame.module}` : "",
  ].filter(Boolean);
}
