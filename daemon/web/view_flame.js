// Stacks as an icicle: root on top, width = time. They were found by ticks, or derived from the call graph: a chip says.
import * as api from "./api.js";
import { el, replace, svg, say } from "./dom.js";
import * as format from "./format.js";
import { menu } from "./menu.js";
import { matcher } from "./view_report.js";
import { another, note, question, to } from "./state.js";
import { filterField, pictureTable, plain } from "./table.js";

const ROW = 20;
const WIDTH = innerWidth < 700 ? 640 : 1200; // the letters of a narrow screen are as large
const LEAST = 0.6; // pixels of the narrowest box that is drawn

/** What names a frame in the address, also in another window of time. */
const keyOf = (frame) =>
  frame.address ? `${frame.address.slice(2)}@${(frame.build_id ?? "").slice(0, 4)}` : encodeURIComponent(frame.name);

/** The daemon's tree becomes boxes with places, parents and children; the first one is everything. */
function tree(answer) {
  const root = {
    label: answer.synthetic ? "total (synthetic stacks)" : "total",
    level: 0,
    self: 0,
    cut: 0,
    children: [],
  };
  const boxes = [root];
  answer.frame.forEach((f, i) => {
    const frame = answer.frames[f];
    const parent = boxes[answer.parent[i] + 1];
    const box = { label: frame.name, name: frame.full_name, frame, key: keyOf(frame), parent, level: parent.level + 1 };
    const more = { self: answer.self[i], cut: answer.cut[i], inferred: answer.inferred[i] === 1, children: [] };
    parent.children.push(Object.assign(box, more));
    boxes.push(box);
  });
  for (const box of boxes) Object.assign(box, { value: box.self, used: 0, x: 0 });
  for (const box of [...boxes].reverse()) if (box.parent) box.parent.value += box.value;
  for (const box of boxes.slice(1)) {
    box.x = box.parent.x + box.parent.used;
    box.parent.used += box.value;
  }
  return boxes;
}

/** The path from the root to a box, as the address has it, and back. What is not there ends the way. */
function pathOf(box) {
  const keys = [];
  for (let b = box; b.parent; b = b.parent) keys.unshift(b.key);
  return keys.join("~");
}
function boxAt(root, path) {
  let box = root;
  for (const key of path.split("~").filter(Boolean)) {
    const next = box.children.find((b) => b.key === key);
    if (!next) break;
    box = next;
  }
  return box;
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
    this.view = svg("svg", { class: "flame", role: "tree", "aria-label": "Stacks", tabindex: "-1" });
    this.detail = el("p", { class: "hint detail", "aria-live": "polite" }, "");
    this.view.addEventListener("keydown", (event) => this.key(event));
    this.zoom(boxAt(boxes[0], state.zoom), false);
  }

  text(box) {
    const share = format.percent((100 * box.value) / this.whole);
    const cut = box.cut > 0 ? `, of which ${this.amount(box.cut)} in boxes that were left out` : "";
    const inferred = box.inferred ? "; not seen, but named by the call before the next frame" : "";
    return `${box.name ?? box.label}, ${this.amount(box.value)}, ${share}, self ${this.amount(box.self)}${cut}${inferred}`;
  }

  zoom(box, focus = true) {
    this.top = box;
    const zoom = pathOf(box);
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
        class: `box${b.level < this.top.level ? " above" : ""}${b.inferred ? " inferred" : ""}`,
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

  /** Where the function of a box is shown otherwise. */
  links({ frame }) {
    const of = frame.build_id === this.state.build ? "" : frame.build_id;
    const focus = of ? `${frame.address}@${of}` : frame.address;
    return [
      " ",
      el("a", to(this.state, { ...another("report"), fn: frame.address, of }), "Callers and callees"),
      " ",
      el("a", to(this.state, { ...another("graph"), focus }), "In the call graph"),
    ];
  }

  tell(box) {
    replace(this.detail, this.text(box), box.frame?.address ? this.links(box) : null);
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

/** How the stacks came about: seen by ticks, or derived. */
function banner(answer, state, amount) {
  if (!answer.synthetic) {
    const left = answer.left_out.nodes;
    const others = `${format.several(left, "box", "boxes")} with ${amount(answer.left_out.seconds)} are left out.`;
    const text = [el("p", {}, MEASURED), left > 0 ? el("p", {}, others) : null];
    return menu("synthetic", "How these stacks were made", el("span", { class: "chip" }, "Measured stacks"), text);
  }
  const more = el("div");
  const opened = () =>
    api.json(api.path(state.build, "/report", { ...question(state), format: "flamegraph", names: "short" })).then(
      ({ undivided: cycles, not_followed: lost }) => {
        const rest = lost > 0 ? el("p", {}, `${amount(lost)} are below paths that were not followed.`) : null;
        replace(
          more,
          cycles.map((c) => el("p", {}, undivided(c, amount))),
          rest,
        );
      },
      () => {},
    );
  const content = [SYNTHETIC.map((sentence) => el("p", {}, sentence)), more];
  const label = el("span", { class: "chip warning" }, "Synthetic stacks");
  return menu("synthetic", "How these stacks were made", label, content, opened);
}

const MEASURED = "Each stack was found by a tick. The width of a box is the time of all ticks that found it.";

export async function draw(main, state, signal) {
  const url = api.path(state.build, "/report", { ...question(state), format: "tree", names: "short" });
  const answer = await api.json(url, signal);
  const boxes = tree(answer);
  const amount = format.amounts(answer.dimension, answer);
  const chip = banner(answer, state, amount);
  if (!(boxes[0].value > 0)) {
    replace(
      main,
      el("div", { class: "bar" }, el("h2", {}, "Flame"), chip),
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
      chip,
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
