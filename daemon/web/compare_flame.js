// Two flame graphs as one. The width of a box is the mean of its shares on both sides; its sign, colour and edge say
// which has more.
import * as api from "./api.js";
import { answerOf, judge } from "./compare_judge.js";
import { sideQuestion } from "./compare_sides.js";
import { el, replace, say, svg } from "./dom.js";
import { POINT } from "./flame_draw.js";
import * as format from "./format.js";
import { go, step } from "./state.js";
import { filterField, pictureTable, plain } from "./table.js";
import { matcher, NARROW } from "./view_report.js";

const ROW = 20;
const NARROWEST = 300; // pixels of the picture
const LEAST = 0.6; // pixels of the narrowest box that is drawn
const SAME = 0.0005; // a difference of shares that is shown as none
const STRONG = 0.1; // a difference of shares that has the full colour

/** Difference of two shares in percentage points, with its sign. */
export function points(d) {
  if (Math.abs(d) < SAME) return "±0";
  const n = Math.abs(100 * d);
  return `${d > 0 ? "+" : "−"}${n >= 9.95 ? n.toFixed(0) : n.toFixed(1)}`;
}
export const kindOf = (d) => (Math.abs(d) < SAME ? "same" : d > 0 ? "more" : "less");
export const signOf = (d) => (Math.abs(d) < SAME ? "=" : d > 0 ? "▲" : "▼");
/** How strong the colour of a difference is, in percent. */
export const strength = (d) => (Math.abs(d) < SAME ? 0 : Math.round(20 + 80 * Math.min(1, Math.abs(d) / STRONG)));

/** Adds the boxes of a side to those of both. Boxes of one path and name are one. */
function gather(answer, root, side) {
  const at = [root];
  answer.frame.forEach((f, i) => {
    const { name, full_name: full } = answer.frames[f];
    const parent = at[answer.parent[i] + 1];
    const key = full ?? name;
    let box = parent.byName.get(key);
    if (!box) {
      box = { label: name, name: key, parent, level: parent.level + 1, byName: new Map(), a: 0, b: 0 };
      parent.byName.set(key, box);
    }
    at.push(box);
    const total = answer.self_seconds[i] / (answer.whole || 1);
    for (let b = box; b; b = b.parent) b[side] += total;
  });
}

function boxesOf(a, b) {
  for (const answer of [a, b]) answer.whole = answer.self_seconds.reduce((sum, s) => sum + s, 0);
  const root = { label: "total", name: "total", level: 0, byName: new Map(), a: 0, b: 0 };
  gather(a, root, "a");
  gather(b, root, "b");
  const boxes = [];
  const walk = [root];
  while (walk.length) {
    const box = walk.pop();
    boxes.push(box);
    box.value = (box.a + box.b) / 2;
    box.children = [...box.byName.values()].sort((x, y) => y.a + y.b - x.a - x.b);
    for (const child of box.children) walk.push(child);
  }
  root.x = 0;
  for (const box of boxes) {
    let x = box.x;
    for (const child of box.children) {
      child.x = x;
      x += child.value;
    }
  }
  return boxes;
}

const pathOf = (box) => {
  const names = [];
  for (let b = box; b.parent; b = b.parent) names.unshift(encodeURIComponent(b.name));
  return names.join("~");
};
function boxAt(root, path) {
  let box = root;
  for (const name of path.split("~").filter(Boolean)) {
    const next = box.byName.get(decodeURIComponent(name));
    if (!next) break;
    box = next;
  }
  return box;
}

const text = (b) =>
  `${b.name}: ${format.percent(100 * b.a, 200)} of A, ${format.percent(100 * b.b, 200)} of B, ` +
  `${points(b.b - b.a)} points`;

class Difference {
  constructor(boxes, state) {
    Object.assign(this, { boxes, state });
    this.view = svg("svg", {
      class: "flame differences",
      role: "tree",
      "aria-label": "Differences of stacks",
      tabindex: "-1",
    });
    this.detail = el("p", { class: "hint detail", "aria-live": "polite" }, POINT);
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.width = NARROWEST;
    this.top = boxAt(boxes[0], state.zoom);
  }

  /** Draws it as wide as its place in the page is, so that texts keep their size. */
  fit() {
    this.width = Math.max(NARROWEST, this.view.parentElement.clientWidth);
    this.draw();
  }

  zoom(box, focus = true) {
    this.top = box;
    const zoom = pathOf(box);
    if (zoom !== this.state.zoom) step(this.state, { zoom });
    this.draw();
    if (focus) this.focus(box);
  }

  draw() {
    const scale = this.width / (this.top.value || 1);
    const above = [];
    for (let b = this.top.parent; b; b = b.parent) above.unshift(b);
    const shown = above.map((b) => ({ b, x: 0, w: this.width }));
    const walk = [this.top];
    while (walk.length) {
      const b = walk.pop();
      if (b.value * scale < LEAST) continue;
      shown.push({ b, x: (b.x - this.top.x) * scale, w: b.value * scale });
      for (let i = b.children.length - 1; i >= 0; i--) walk.push(b.children[i]);
    }
    const depth = shown.reduce((most, s) => Math.max(most, s.b.level), 0);
    this.view.setAttribute("viewBox", `0 0 ${this.width} ${(depth + 1) * ROW}`);
    this.nodes = new Map();
    replace(
      this.view,
      shown.map((s) => this.box(s)),
    );
    this.mark();
  }

  box({ b, x, w }) {
    const d = b.b - b.a;
    const chars = Math.floor((w - 6) / 7.3);
    const label = `${Math.abs(d) < SAME ? "=" : `${b.certain ? signOf(d) : "≈"} ${points(d)}`} ${b.label}`;
    const edge = { x: 0, width: Math.max(w - 0.5, 0.4).toFixed(2), height: 3, class: "edge" };
    const node = svg(
      "g",
      {
        class: `box ${b.certain ? kindOf(d) : "same"}${b.level < this.top.level ? " above" : ""}`,
        role: "treeitem",
        tabindex: b === this.top ? 0 : -1,
        "aria-level": b.level + 1,
        "aria-expanded": b.children.length ? "true" : null,
        "aria-label": text(b),
        transform: `translate(${x.toFixed(2)},${b.level * ROW})`,
        onclick: () => this.zoom(b),
        onfocus: () => this.tell(b),
        onpointerenter: () => this.tell(b),
      },
      svg("rect", { width: edge.width, height: ROW - 1, style: `--strong:${strength(d)}%` }),
      // More: an edge on top. Less: one at the bottom. So that boxes without a text do not depend on colour.
      b.certain && Math.abs(d) > SAME ? svg("rect", { ...edge, y: d > 0 ? 0 : ROW - 4 }) : null,
      chars >= 3
        ? svg("text", { x: 4, y: ROW - 6 }, label.length > chars ? `${label.slice(0, chars - 1)}…` : label)
        : null,
      svg("title", {}, text(b)),
    );
    this.nodes.set(b, node);
    return node;
  }

  tell(box) {
    replace(this.detail, text(box));
  }

  search(typed) {
    this.wanted = matcher(typed);
    this.mark();
    if (this.wanted) say(`${format.several(this.boxes.filter((b) => this.wanted(b.name)).length, "box", "boxes")}`);
  }

  mark() {
    for (const [b, node] of this.nodes) {
      node.classList.toggle("hit", Boolean(this.wanted?.(b.name)));
      node.classList.toggle("miss", Boolean(this.wanted && !this.wanted(b.name)));
    }
  }

  focus(box) {
    for (const [b, node] of this.nodes) node.setAttribute("tabindex", b === box ? "0" : "-1");
    this.nodes.get(box)?.focus();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = [...this.nodes].find(([, node]) => node === document.activeElement)?.[0];
    if (!now) return;
    const siblings = (now.parent?.children ?? [now]).filter((b) => this.nodes.has(b));
    const place = siblings.indexOf(now);
    const next = {
      ArrowUp: now.parent,
      ArrowDown: now.children.find((b) => this.nodes.has(b)),
      ArrowLeft: siblings[place - 1],
      ArrowRight: siblings[place + 1],
      Home: this.boxes[0],
    }[event.key];
    if (next && this.nodes.has(next)) this.focus(next);
    else if (event.key === "Enter" || event.key === " " || event.key === "+") this.zoom(now);
    else if (event.key === "-") this.zoom(this.top.parent ?? this.top);
    else if (event.key === "Escape" || event.key === "0") this.zoom(this.boxes[0]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const ask = (state, side, signal) => {
  const build = side === "a" ? state.build : state.against;
  return api.json(api.path(build, "/report", { ...sideQuestion(state, side), format: "tree", names: "short" }), signal);
};

const COLOURED = "It is coloured where the share of its function has changed: single boxes have no test.";
export const CHANCE = "≈ may be chance.";

/** What the picture means. */
export const legend = (what = "") =>
  el(
    "p",
    { class: "hint legend" },
    el("span", { class: "delta more" }, "▲ more in B"),
    " ",
    el("span", { class: "delta less" }, "▼ less in B"),
    ` in points of CPU share. ${what}`,
  );

export async function show(main, bars, diff, state, signal) {
  const [a, b] = await Promise.all([ask(state, "a", signal), ask(state, "b", signal)]);
  const boxes = boxesOf(a, b);
  if (!(a.whole > 0 && b.whole > 0)) {
    const none = `${a.whole > 0 ? "B" : "A"} has no samples, so stacks cannot be compared.`;
    replace(main, el("div", { class: "compare bar" }, bars), el("p", { class: "empty" }, none));
    return;
  }
  const verdicts = judge(diff);
  for (const box of boxes) box.certain = ["more", "less"].includes(verdicts.of(box.name)?.kind);
  const flame = new Difference(boxes, state);
  const filter = filterField(
    () => state,
    "Find functions",
    "Find (regex)",
    (typed) => flame.search(typed),
  );
  const reset = el("button", { type: "button", onclick: () => flame.zoom(boxes[0]) }, "Reset zoom");
  const which = a.synthetic ? (b.synthetic ? "" : " of A") : " of B";
  const made = a.synthetic || b.synthetic ? ` The stacks${which} are derived from call counts.` : "";
  const largest = [...boxes].sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a)).slice(0, 200);
  const line = (x) => [
    String(x.level),
    x.label,
    format.percent(100 * x.a, 200),
    format.percent(100 * x.b, 200),
    `${x.certain ? signOf(x.b - x.a) : "≈"} ${points(x.b - x.a)}`,
  ];
  const picture = el("div", { class: "picture" }, flame.view);
  const hint = `A box is as wide as the mean of both sides.${made} ${COLOURED}`;
  const columns = [["Depth", 1], ["Function"], ["A", 1], ["B", 1], ["Points", 1]];
  replace(
    main,
    el("div", { class: "compare bar" }, bars, filter, innerWidth < NARROW ? null : reset),
    answerOf(diff, verdicts),
    innerWidth < NARROW ? [picture, legend(CHANCE)] : [legend(CHANCE), picture],
    flame.detail,
    pictureTable(state, "boxes", `the ${largest.length} largest differences`, () =>
      plain("Boxes by difference", columns, largest.map(line)),
    ),
    el("p", { class: "hint" }, hint),
  );
  flame.fit();
  if (state.q) flame.search(state.q);
}
