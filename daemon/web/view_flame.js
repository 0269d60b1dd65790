// Stacks derived from the call graph as an icicle: root on top, width = time. They were never observed, and the page says so.
import * as api from "./api.js";
import { el, replace, svg, say } from "./dom.js";
import * as format from "./format.js";
import { menu } from "./menu.js";
import { matcher } from "./view_report.js";
import { note, question } from "./state.js";
import { filterField, pictureTable, plain } from "./table.js";

const ROW = 20;
const WIDTH = innerWidth < 700 ? 640 : 1200; // the letters of a narrow screen are as large
const LEAST = 0.6; // pixels of the narrowest box that is drawn

/** Rows depth first become boxes with places and parents. */
function tree(rows) {
  const boxes = [];
  const open = [];
  for (const row of rows) {
    open.length = row.level;
    const parent = open[row.level - 1];
    const box = { ...row, parent, x: parent ? parent.x + parent.used : 0, used: 0, at: boxes.length, children: [] };
    if (parent) {
      parent.used += row.value;
      parent.children.push(box);
    }
    open.push(box);
    boxes.push(box);
  }
  return boxes;
}

function inside(box, zoom) {
  for (let b = box; b; b = b.parent) if (b === zoom) return true;
  return false;
}

/** The same hue for the same name, far from red-green contrasts; lightness is the theme's. */
function hue(name) {
  let h = 7;
  for (const c of name) h = (h * 31 + c.codePointAt(0)) >>> 0;
  return 190 + (h % 110);
}

class Flame {
  constructor(boxes, state, amount) {
    Object.assign(this, { boxes, state, amount, whole: boxes[0].value || 1 });
    this.view = svg("svg", { class: "flame", role: "tree", "aria-label": "Derived stacks", tabindex: "-1" });
    this.detail = el("p", { class: "hint", "aria-live": "polite" }, "");
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.zoom(boxes[Number(state.zoom)] ?? boxes[0], false);
  }

  text(box) {
    return `${box.name ?? box.label}, ${this.amount(box.value)}, ${format.percent((100 * box.value) / this.whole)}, self ${this.amount(box.self)}`;
  }

  zoom(box, focus = true) {
    this.top = box;
    const zoom = box.at ? String(box.at) : "";
    if (zoom !== this.state.zoom) note(this.state, { zoom });
    this.draw();
    if (focus) this.focus(box);
  }

  draw() {
    const scale = WIDTH / (this.top.value || 1);
    const above = [];
    for (let b = this.top.parent; b; b = b.parent) above.unshift(b);
    const shown = [
      ...above.map((b) => ({ b, x: 0, w: WIDTH })),
      ...this.boxes
        .filter((b) => b.value * scale >= LEAST && inside(b, this.top))
        .map((b) => ({ b, x: (b.x - this.top.x) * scale, w: b.value * scale })),
    ];
    const depth = shown.reduce((most, s) => Math.max(most, s.b.level), 0);
    this.view.setAttribute("viewBox", `0 0 ${WIDTH} ${(depth + 1) * ROW}`);
    this.nodes = new Map();
    this.shown = shown.map((s) => s.b);
    replace(
      this.view,
      shown.map((s) => this.box(s)),
    );
    this.mark();
  }

  box({ b, x, w }) {
    const chars = Math.floor((w - 6) / 7);
    const node = svg(
      "g",
      {
        class: b.level < this.top.level ? "box above" : "box",
        role: "treeitem",
        tabindex: b === this.top ? 0 : -1,
        "aria-level": b.level + 1,
        "aria-expanded": b.children.length ? "true" : null,
        transform: `translate(${x.toFixed(2)},${b.level * ROW})`,
        onclick: () => this.zoom(b),
        onfocus: () => this.tell(b),
        onpointerenter: () => this.tell(b),
      },
      svg("rect", { width: Math.max(w - 0.5, 0.4).toFixed(2), height: ROW - 1, style: `--hue:${hue(b.label)}` }),
      chars >= 3
        ? svg("text", { x: 4, y: ROW - 6 }, b.label.length > chars ? `${b.label.slice(0, chars - 1)}…` : b.label)
        : null,
      svg("title", {}, this.text(b)),
    );
    this.nodes.set(b, node);
    return node;
  }

  tell(box) {
    this.detail.textContent = this.text(box);
    for (const [b, node] of this.nodes) node.classList.toggle("same", b.label === box.label);
  }

  search(text) {
    this.wanted = matcher(text);
    this.mark();
    if (!this.wanted) return;
    // Time below the topmost match of each path: nothing is counted twice.
    const hit = this.boxes.filter((b) => this.wanted(b.name ?? b.label));
    const marked = new Set(hit);
    let share = 0;
    for (const b of hit) {
      let covered = false;
      for (let p = b.parent; p && !covered; p = p.parent) covered = marked.has(p);
      if (!covered) share += b.value;
    }
    say(`${hit.length} boxes, ${format.percent((100 * share) / this.whole)} of the time`);
  }

  mark() {
    for (const [b, node] of this.nodes) {
      node.classList.toggle("hit", Boolean(this.wanted?.(b.name ?? b.label)));
      node.classList.toggle("miss", Boolean(this.wanted && !this.wanted(b.name ?? b.label)));
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
    const visible = (b) => (b && this.nodes.has(b) ? b : undefined);
    const siblings = now.parent ? now.parent.children.filter((b) => this.nodes.has(b)) : [now];
    const place = siblings.indexOf(now);
    const to = {
      ArrowUp: visible(now.parent),
      ArrowDown: now.children.find((b) => this.nodes.has(b)),
      ArrowLeft: siblings[place - 1],
      ArrowRight: siblings[place + 1],
      Home: this.shown[0],
    }[event.key];
    if (to) this.focus(to);
    else if (event.key === "Enter" || event.key === " " || event.key === "+") this.zoom(now);
    else if (event.key === "-") this.zoom(this.top.parent ?? this.top);
    else if (event.key === "Escape" || event.key === "0") this.zoom(this.boxes[0]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const SYNTHETIC = [
  "These stacks were not observed. They are derived by dividing times by call counts, as in gprof; whole paths may " +
    "never have occurred.",
  "A cycle is one box that contains the self times of its members, because the stacks inside it are not known.",
  "A name in brackets, such as [outside], is no function: stacks begin or end in it.",
];

/** Why a cycle does not stand below its callers. */
function undivided(c, amount) {
  const callers =
    c.callers.join(", ") +
    (c.callers_not_named
      ? ` and ${format.count(c.callers_not_named)} ${c.callers_not_named === 1 ? "other" : "others"}`
      : "");
  return `Cycle ${c.cycle} (${amount(c.value)}) is called by ${callers}. Call counts cannot tell how its time divides among them, so it is placed ${c.below === null ? "at the root" : `below ${c.below}, which every call to it passes`}.`;
}

export async function draw(main, state, signal) {
  const answer = await api.json(
    api.path(state.build, "/report", { ...question(state), format: "flamegraph", names: "short" }),
    signal,
  );
  const boxes = tree(answer.rows);
  const amount = format.amounts(answer.dimension, answer);
  const banner = menu(
    "synthetic",
    "How these stacks were made",
    el("span", { class: "chip warning" }, "Synthetic stacks"),
    [
      SYNTHETIC.map((sentence) => el("p", {}, sentence)),
      answer.undivided.map((c) => el("p", {}, undivided(c, amount))),
      answer.not_followed > 0
        ? el("p", {}, `${amount(answer.not_followed)} are below paths that were not followed.`)
        : null,
    ],
  );
  if (!(boxes[0].value > 0)) {
    replace(
      main,
      el("div", { class: "bar" }, el("h2", {}, "Flame"), banner),
      el("p", {}, "No samples in this time range."),
    );
    return;
  }
  const flame = new Flame(boxes, state, amount);
  const filter = filterField(
    () => state,
    "Mark functions",
    "mark functions",
    (text) => flame.search(text),
  );
  const largest = [...boxes].sort((a, b) => b.value - a.value).slice(0, 200);
  replace(
    main,
    el(
      "div",
      { class: "bar" },
      el("h2", {}, "Flame"),
      filter,
      el("button", { type: "button", onclick: () => flame.zoom(boxes[0]) }, "Reset zoom"),
      banner,
    ),
    el("div", { class: "picture" }, flame.view),
    flame.detail,
    pictureTable(state, "boxes", `the ${largest.length} largest boxes`, () =>
      plain(
        "Boxes by time",
        [["Depth", 1], ["Function"], ["Time", 1], ["Self", 1], ["Share", 1]],
        largest.map((b) => [
          String(b.level),
          b.label,
          amount(b.value),
          amount(b.self),
          format.percent((100 * b.value) / flame.whole),
        ]),
      ),
    ),
  );
  if (state.q) flame.search(state.q);
}
