// Stacks as pictures: from the root down, from the leaves up, or around one function; beside them a table of functions.
import { splitChoice, timeChoice } from "./choices.js";
import { el, replace } from "./dom.js";
import * as format from "./format.js";
import { Flame, POINT, textOf } from "./flame_draw.js";
import { around, boxAt, functions, functionsAbove, leaves, matched, pathOf } from "./stacks.js";
import { lookOf, noStacks, remarks, stacksChip, stacksOf } from "./stacks_ask.js";
import { another, focusOf, functionAt, step, to } from "./state.js";
import { filterField, Table } from "./table.js";
import { bar, fitting, NARROW } from "./report_columns.js";
import { matcher } from "./view_report.js";

const MODES = [
  ["", "Root first"],
  ["leaves", "Leaves first"],
  ["sandwich", "Sandwich"],
];

/** A function as the address names it: its address, and its build if that is another one. */
const nameOf = (frame, state) => focusOf(state, frame.address, frame.build_id);

/** The function that the address names, else the one with most time of its own. */
function chosen(rows, state) {
  const named = state.focus && rows.find((row) => row.frame.address && nameOf(row.frame, state) === state.focus);
  if (named || state.focus) return named;
  return rows.reduce((a, b) => (b.self > a.self ? b : a), rows[0]);
}

/** Other views of a function. */
function links({ frame }, state) {
  const focus = nameOf(frame, state);
  const here = state.mode === "sandwich" && state.focus === focus;
  return [
    [here ? null : to(state, { mode: "sandwich", focus, zoom: "" }), "Sandwich"],
    [to(state, { ...another("report"), ...functionAt(state, frame.address, frame.build_id) }), "Callers and callees"],
    [to(state, { ...another("graph"), focus }), "In the call graph"],
  ].flatMap(([link, text]) => (link ? [" ", el("a", link, text)] : []));
}

/** The pictures, the table and the line below them, and what they tell one another. */
class Stacks {
  constructor({ root, answer, others }, state) {
    Object.assign(this, { root, answer, others, state, look: lookOf(answer, root), rows: functions(root) });
    this.beside = el("div", { class: "listed" });
    this.detail = el("p", { class: "hint detail", "aria-live": "polite" }, POINT);
    this.sum = el("output", { class: "hint", for: "filter" });
    this.flames = this.pictures();
    this.list();
  }

  /** The table beside the picture: of the stacks that fill its width. A sandwich has one of all: there it chooses. */
  list() {
    const [flame] = this.flames;
    const box = this.state.mode !== "sandwich" && flame?.top.parent ? flame.top : null;
    if (box === this.listed) return;
    this.listed = box;
    if (!box) this.rows = functions(this.root);
    else this.rows = this.state.mode === "leaves" ? functionsAbove(box) : functions(box);
    this.table = this.functionTable(box);
    replace(this.beside, this.table.node);
  }

  /** self: what the time is called that ends in a box. half: of a sandwich. */
  flame(top, label, self, half = "") {
    const zoomed = (box) => {
      const path = pathOf(box);
      const zoom = path && half ? `${half}~${path}` : path;
      if (zoom !== this.state.zoom) step(this.state, { zoom, row: "", top: "" });
      this.away.hidden = !zoom;
      this.list();
      this.filter(matcher(this.state.q));
      const others = this.flames.filter((other) => half && other.half !== half && other.top.parent);
      for (const other of others) other.zoom(this.rootOf(other), false);
    };
    const told = (box) => this.tell(box, self);
    const text = (box) => textOf(box, this.look, self);
    const start = half ? `${half}~` : "";
    const path = this.state.zoom.startsWith(start) ? this.state.zoom.slice(start.length) : "";
    const flame = new Flame({ top: boxAt(top, path), label, text, zoomed, told, up: half === "up" });
    return Object.assign(flame, { half });
  }

  rootOf(flame) {
    let box = flame.top;
    while (box.parent) box = box.parent;
    return box;
  }

  pictures() {
    const { state, root } = this;
    if (state.mode === "leaves") return [this.flame(leaves(root), "Stacks, leaves first", "begins with it:")];
    if (state.mode !== "sandwich") return [this.flame(root, "Stacks, root first", "self")];
    this.middle = chosen(this.rows, state);
    const both = this.middle && around(root, this.middle.key);
    if (!both) return [];
    return [
      this.flame(both.callers, `Callers of ${this.middle.label}`, "begins with it:", "up"),
      this.flame(both.callees, `Callees of ${this.middle.label}`, "self", "down"),
    ];
  }

  /** What stands below the pictures of a box or a function. */
  tell(box, self) {
    const link = box.frame?.address ? links(box, this.state) : null;
    replace(this.detail, textOf(box, this.look, self).join(", "), link);
    for (const flame of this.flames) if (flame.chosen !== box.key) flame.mark(flame.wanted, box.key);
  }

  search(text) {
    const wanted = matcher(text);
    for (const flame of this.flames) flame.mark(wanted, flame.chosen);
    this.filter(wanted);
    if (!wanted) return void replace(this.sum);
    const { boxes, time } = matched(this.root, wanted);
    const share = this.look.percent(time);
    replace(this.sum, `${format.several(boxes, "box", "boxes")}: ${this.look.amount(time)}, ${share} of the time`);
  }

  filter(wanted) {
    this.table.filter(wanted ? (i) => wanted(this.rows[i].name) : undefined);
  }

  /** box: the one that fills the width; null: all. */
  functionTable(box) {
    const { rows, look, state } = this;
    const percent = (value) => (100 * value) / look.whole;
    const interval = (value) => {
      const known = look.range(value);
      return known ? `95 %: ${look.between(known)}, ${format.several(known.stacks, "stack", "stacks")}` : null;
    };
    const time = (key, title, hint) => {
      const cell = (i) => bar(look.amount(rows[i][key]), percent(rows[i][key]), interval(rows[i][key]));
      return { key, title, hint, numeric: true, bars: true, width: 8.4, slim: 5.4, value: (i) => rows[i][key], cell };
    };
    const name = (i) => {
      const { frame, label, name } = rows[i];
      if (!frame.address) return el("span", { title: name }, label);
      const link = to(state, { mode: "sandwich", focus: nameOf(frame, state), zoom: "" });
      return el("a", { ...link, tabIndex: -1, title: `${name}: callers and callees in stacks` }, fitting(label));
    };
    const hint = box ? `of the stacks through ${box.name ?? box.label}` : "of all stacks";
    const columns = [
      { key: "name", title: box ? "Function, in the zoom" : "Function", hint, value: (i) => rows[i].name, cell: name },
      time("self", "Self", "time of the stacks that end in it"),
      time("total", "Total", "time of the stacks that it is in; each counts once"),
    ];
    const open = (i) => this.tell({ ...rows[i], value: rows[i].total, cut: 0, inferred: false }, "self");
    return new Table({
      label: box ? `Functions of the stacks through ${box.name ?? box.label}` : "Functions in these stacks",
      columns,
      count: rows.length,
      state,
      sort: "self",
      tall: true,
      open,
    });
  }

  reset() {
    for (const flame of this.flames) flame.zoom(this.rootOf(flame), false);
  }
}

/** The pictures of a view, or why there are none. */
function body(all, synthetic, state) {
  if (!all.flames.length)
    return el(
      "p",
      { class: "empty" },
      synthetic
        ? "These stacks are derived from numbers of calls. This function has no box in them: it has no time, " +
            "or it is a member of a cycle, and the box of the cycle stands for it. "
        : "No stack of this time range has this function. ",
      el("a", to(state, { mode: "", focus: "", zoom: "" }), "All stacks"),
    );
  if (state.mode !== "sandwich") return all.flames[0].node;
  const [callers, callees] = all.flames;
  const title = (text) => el("h3", { title: all.middle.name }, text);
  const name = format.called(all.middle.label);
  return [
    title(`Callers of ${name}`),
    callers.node,
    title(`${name} and what it calls`),
    callees.node,
  ];
}

function modeChoice(state) {
  const link = ([mode, title]) => {
    const changes = { mode, zoom: "", split: mode === "sandwich" ? "" : state.split };
    return el("a", { ...to(state, changes), "aria-current": state.mode === mode ? "true" : null }, title);
  };
  return el("span", { class: "presets", role: "group", "aria-label": "Order of the stacks" }, MODES.map(link));
}

export async function draw(main, state, signal) {
  const found = await stacksOf(state, signal);
  const amount = format.amounts(found.answer.dimension, found.answer);
  const chip = stacksChip(found.answer, state, amount);
  const title = el("h2", { class: "unseen" }, "Flame graph");
  const times = timeChoice(found.answer, { zoom: "" });
  if (!(found.root.value > 0)) {
    replace(main, el("div", { class: "bar" }, title, times), noStacks(state));
    return;
  }
  const all = new Stacks(found, state);
  const slim = innerWidth < NARROW;
  const filter = filterField(
    () => state,
    "Mark functions",
    "Find (regex)",
    (text) => all.search(text),
  );
  all.away = el("button", { type: "button", hidden: !state.zoom, onclick: () => all.reset() }, "Reset zoom");
  const split = state.mode === "" ? splitChoice(state, { zoom: "" }) : null;
  const choices = [split, times, all.away, all.sum];
  replace(
    main,
    el("div", { class: "bar stacks" }, title, filter, slim ? null : chip, modeChoice(state), choices),
    remarks(found, state),
    el(
      "div",
      { class: "beside" },
      el(
        "div",
        { class: "pictures" },
        body(all, found.answer.synthetic, state),
        all.flames.length ? all.detail : null,
      ),
      all.beside,
    ),
    slim ? el("p", {}, chip) : null,
  );
  for (const flame of all.flames) flame.draw();
  if (slim) all.table.show(["self", "total"], true);
  all.table.restore();
  if (state.q) all.search(state.q);
}
