// Stacks as pictures: from the root down, from the leaves up, or around one function; beside them a table of functions.
import * as api from "./api.js";
import { leaving, leftOut, otherViews, removals } from "./choices.js";
import { breath, button, copy, el, later, replace } from "./dom.js";
import * as format from "./format.js";
import { Flame, POINT, textOf } from "./flame_draw.js";
import { popup } from "./menu.js";
import { sampled } from "./origin.js";
import { saving } from "./picture.js";
import { around, boxAt, functions, functionsAbove, leaves, pathOf, refined } from "./stacks.js";
import { begin, matchedText, ORDERS, remarks } from "./stacks_ask.js";
import { focusOf, links, question, step, to } from "./state.js";
import { BESIDE, column, findField, matcher, NARROW, numbers, Table } from "./table.js";
import { bar, fitting, tile } from "./report_columns.js";

const LAYOUTS = [
  ["table", "Table"],
  ["", "Both"],
  ["flame", "Flame"],
];
const HUES = [212, 165, 268, 190, 320, 95]; // of modules, by their time; further ones share the last
const KERNEL = 28;
const SHADES = 5; // of one hue, so that neighbours differ
const LEAST_HIGH = 200; // pixels of a picture
const LEGEND = 44; // pixels below it
// What the reader leaves out: the name in the address, what a menu calls it, how it reads.
const REFINED = [
  ["only", "Only stacks with it", "Only stacks with"],
  ["ignore", "Without stacks with it", "Without stacks with"],
  ["hide", "Hide it", "Hidden:"],
];
const keysOf = (state) => Object.fromEntries(REFINED.map(([name]) => [name, leftOut(state, name)]));

/** The colours of functions, by module, those with the most time first: {hueOf(frame), paint(box) for Flame}. */
function modulesOf(rows) {
  const times = new Map();
  for (const { frame, self } of rows)
    if (frame.module && !frame.kernel && !frame.name.startsWith("["))
      times.set(frame.module, (times.get(frame.module) ?? 0) + self);
  const order = [...times.keys()].sort((a, b) => times.get(b) - times.get(a));
  const hues = new Map(order.map((name, i) => [name, HUES[Math.min(i, HUES.length - 1)]]));
  const hueOf = (frame) => (frame.kernel ? KERNEL : frame.name.startsWith("[") ? undefined : hues.get(frame.module));
  const paint = ({ label, frame }) => {
    const hue = frame && hueOf(frame);
    if (hue === undefined) return { kind: "plain" };
    if (hue === KERNEL) return { kind: "kernel", style: `--hue:${hue}` };
    let shade = 0;
    for (const c of label) shade = (shade * 31 + c.codePointAt(0)) % 1009;
    return { kind: "", style: `--hue:${hue};--shade:${(shade % SHADES) - 2}` };
  };
  return { hueOf, paint };
}

/** What code without a function of its own is called: "[plt]" is known, only "[gap]" has no symbol. */
const unnamed = ({ name }) => (name.startsWith("[gap]") ? "no symbol" : name.replace(/ .*/, ""));

/** Which colour is which program or library, with the time of its own functions. */
function legend({ hueOf }, rows, look) {
  const all = new Map();
  for (const { frame, self } of rows) {
    const hue = hueOf(frame);
    if (hue === undefined && !(self > 0 && frame.name.startsWith("["))) continue; // of a cycle, members have the time
    const entry = all.get(hue) ?? all.set(hue, { names: new Set(), time: 0 }).get(hue);
    entry.names.add(hue === undefined ? unnamed(frame) : frame.module || "kernel");
    entry.time += self;
  }
  const entry = ([hue, { names, time }]) => {
    const name = hue !== undefined && names.size > 2 ? `${names.size} others` : [...names].join(", ");
    const colour = { style: hue === undefined ? {} : { "--hue": hue } };
    return el("span", { title: [...names].join(", ") }, el("i.swatch", colour), `${name} ${look.percent(time)}`);
  };
  const shown = [...all].sort(([, a], [, b]) => b.time - a.time);
  const about = { title: "The time of the functions of each colour themselves" };
  return shown.length > 1 ? el("p.hint.legend", about, shown.map(entry)) : null;
}

/** Which function has the most time of its own, as a sentence. */
function answer(rows, look, state) {
  const most = chosen(rows, { ...state, focus: "" });
  if (!most?.self) return null;
  const [, link] = viewsOf(most, state)[0] ?? [];
  const name = format.called(fitting(most.label));
  const text = `, ${look.amount(most.self)}, ${look.percent(most.self)}`;
  const title = innerWidth < NARROW ? "Hottest: " : "Most time of its own: ";
  return el("p.answer", title, link ? el("a", { ...link, title: most.name }, name) : name, text);
}

/** A function as the address names it: its address, and its build if that is another one. */
const nameOf = (frame, state) => focusOf(state, frame.address, frame.build_id);

/** The function that the address names, else the one with most time of its own. */
function chosen(rows, state) {
  const named = state.focus && rows.find((row) => row.frame.address && nameOf(row.frame, state) === state.focus);
  if (named || state.focus) return named;
  return rows.reduce((a, b) => (b.self > a.self ? b : a), rows[0]);
}

/** A function in its sandwich and in other views: [text, link]. */
function viewsOf({ frame }, state) {
  if (!frame?.address) return [];
  const focus = nameOf(frame, state);
  const here = state.mode === "sandwich" && state.focus === focus;
  const sandwich = ["Sandwich", to(state, { mode: "sandwich", focus, zoom: "", at: "" })];
  return [...(here ? [] : [sandwich]), ...otherViews(state, frame.address, frame.build_id)];
}

/** The pictures, the table and the line below them, and what they tell one another. */
class Stacks {
  constructor({ root: whole, look }, state) {
    const root = refined(whole, keysOf(state));
    Object.assign(this, { root, state, look, all: functions(root) });
    this.unrefined = root === whole ? this.all : functions(whole);
    this.modules = modulesOf(this.unrefined); // colours stay when stacks are left out
    this.beside = el("div.listed");
    this.detail = el("p.hint.detail", { "aria-live": "polite" }, POINT);
    this.sum = el("output.hint", { for: "filter" });
    this.flames = this.pictures();
    this.list();
  }

  /** The table beside the picture: of the stacks that fill its width. A sandwich has one of all: there it chooses. */
  list() {
    const [flame] = this.flames;
    const box = this.state.mode !== "sandwich" && flame?.top.parent ? flame.top : null;
    if (box === this.listed) return;
    this.listed = box;
    if (!box) this.rows = this.all;
    else this.rows = this.state.mode === "leaves" ? functionsAbove(box) : functions(box);
    this.table = this.functionTable(box);
    replace(this.beside, this.table.node);
  }

  /** self: what the time is called that ends in a box. half: of a sandwich. */
  flame(top, label, self, half = "") {
    const start = half ? `${half}~` : "";
    const mine = (text) => (text.startsWith(start) ? text.slice(start.length) : "");
    const zoomed = async (box, part) => {
      const [zoom, at] = [pathOf(box), part].map((text) => text && start + text);
      this.away.hidden = !zoom && !at;
      for (const other of this.flames) if (half && other.half !== half && other.part) other.reset(false);
      await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn))); // the table beside it comes after
      if (!flame.view.isConnected) return;
      if (zoom !== this.state.zoom || at !== this.state.at) step(this.state, { zoom, at, row: "", top: "" });
      this.list();
      this.filter(matcher(this.state.q));
    };
    const told = (box) => this.tell(box, self);
    const part = ({ value }) => `${this.look.share(value, top.value)} of the time of ${this.middle.label}`;
    const text = (box) => {
      const [name, time, ...rest] = textOf(box, this.look, self);
      return [name, time, ...(half && box.parent ? [part(box)] : []), ...rest];
    };
    const menu = (box, event) => this.menu(box, flame, event);
    const { paint } = this.modules;
    const place = { top: boxAt(top, mine(this.state.zoom)), at: mine(this.state.at) };
    const share = ({ value }) => this.look.brief(value);
    const flame = new Flame({ ...place, label, text, share, paint, zoomed, told, menu, up: half === "up" });
    return Object.assign(flame, { half });
  }

  /** The menu of a box; by the keyboard it opens at the box. */
  menu(box, flame, event) {
    const items = [
      ["Copy name", () => copy(box.name ?? box.label, "Name")],
      ...(flame ? [["Zoom to it", () => flame.zoom(box)]] : []),
      ...leaving(this.state, REFINED, box.key, { zoom: "" }),
      ...viewsOf(box, this.state),
    ];
    popup(format.called(box.label), event, items, flame?.drawn.get(box));
  }

  pictures() {
    const { state, root } = this;
    if (state.mode === "leaves") return [this.flame(leaves(root), "Stacks, leaves first", "begins with it:")];
    if (state.mode !== "sandwich") return [this.flame(root, "Stacks, root first", "self")];
    this.middle = chosen(this.all, state);
    const both = this.middle && around(root, this.middle.key);
    if (!both) return [];
    return [
      this.flame(both.callers, `Callers of ${this.middle.label}`, "begins with it:", "up"),
      this.flame(both.callees, `Callees of ${this.middle.label}`, "self", "down"),
    ];
  }

  /** The function of a sandwich, and its own numbers. */
  head(signal) {
    const { middle, look, state } = this;
    const range = look.range(middle.total);
    const calls = el("div");
    const all = [
      ["Self", look.amount(middle.self), look.percent(middle.self)],
      ["Total", look.amount(middle.total), look.percent(middle.total)],
      range && ["Total, 95 % interval", look.between(range), format.several(range.stacks, "stack", "stacks")],
    ];
    const { address, build_id } = middle.frame;
    if (address && this.unrefined === this.all) {
      const path = `/functions/${encodeURIComponent(address)}`;
      const asked = { ...question(state), build_id, limit: 1, names: "short" };
      later(api.json(api.path(state.build, path, asked), signal), ({ functions: [f], provenance }) => {
        const mark = sampled({ provenance }) ? "~" : "";
        const more = f.self_calls ? `and ${mark}${format.exact(f, "self_calls")} recursive` : "";
        const known = f.calls > 0 || f.self_calls || !look.measured;
        replace(calls, tile(["Calls", known ? mark + format.exact(f, "calls") : "none counted", more]));
      });
    }
    const title = el("h3.function.one", { title: middle.name }, format.called(middle.label));
    return el("section.head", title, el("dl.tiles", all.filter(Boolean).map((one) => el("div", tile(one))), calls));
  }

  /** What stands below the pictures of a box or a function. */
  tell(box, self) {
    const ways = viewsOf(box, this.state).flatMap(([text, link]) => [" ", el("a", link, text)]);
    const flame = this.flames.find((one) => one.drawn.has(box));
    const menu = (event) => this.menu(box, flame, event);
    const rest = box.frame ? [" ", button("More…", menu, { "aria-haspopup": "menu" })] : null;
    const text = flame?.text(box) ?? textOf(box, this.look, self);
    replace(this.detail, text.join(", "), ways, rest);
    for (const flame of this.flames) if (flame.chosen !== box.key) flame.mark(flame.wanted, box.key);
  }

  search(text) {
    const wanted = matcher(text);
    for (const flame of this.flames) flame.mark(wanted, flame.chosen);
    this.filter(wanted);
    if (!wanted) return void replace(this.sum);
    this.matches = matchedText(this.root, wanted, this.look);
    replace(this.sum, this.matches);
  }

  /** Goes to the next box that matches, or with -1 to the one before. */
  next(step) {
    const [flame] = this.flames;
    const at = this.matches && flame?.next(step);
    if (at) replace(this.sum, `${this.matches}; ${at.place} of ${at.of}`);
  }

  filter(wanted) {
    this.table.filter(wanted ? (row) => wanted(row.name) : undefined);
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
      const cell = (row) => bar(look.amount(row[key]), percent(row[key]), interval(row[key]));
      return numbers(key, title, { cell, hint, bars: true, width: 8.4, slim: 5.4 });
    };
    const name = ({ frame, label, name: full }) => {
      if (!frame.address) return el("span", { title: full }, label);
      const link = to(state, { mode: "sandwich", focus: nameOf(frame, state), zoom: "", at: "" });
      return el(
        "a",
        { ...link, tabIndex: -1, title: `${full}: callers and callees in stacks` },
        fitting(label, 0, !state.layout),
      );
    };
    const hint = box ? `of the stacks through ${box.name ?? box.label}` : "of all stacks";
    const columns = [
      column("name", box ? "Function, in the zoom" : "Function", { cell: name, hint }),
      time("self", "Self", "time of the stacks that end in it"),
      time("total", "Total", "time of the stacks that it is in; each counts once"),
    ];
    const open = (row) => this.tell({ ...row, value: row.total, cut: 0, inferred: false }, "self");
    return new Table({
      label: box ? `Functions of the stacks through ${box.name ?? box.label}` : "Functions in these stacks",
      columns,
      rows,
      state,
      sort: "self",
      tall: true,
      open,
    });
  }

  reset() {
    for (const flame of this.flames) flame.reset(false);
  }

  /** What was left out, and how much is left. */
  left() {
    const names = new Map(this.unrefined.map((row) => [row.key, row.label]));
    const { value } = this.root;
    const share = `${this.look.amount(value)}, ${this.look.percent(value)} of the time, is shown.`;
    return removals(this.state, REFINED, names, share);
  }

  /** The picture takes the free height of the window. */
  fill() {
    const rest = (this.flames.length > 1 ? 0.5 : 1) * (innerHeight - this.detail.offsetHeight - LEGEND);
    for (const { picture } of this.flames) {
      const top = this.flames.length > 1 ? 0 : picture.getBoundingClientRect().top + scrollY;
      picture.style.maxHeight = `${Math.max(LEAST_HIGH, rest - top)}px`;
    }
  }
}

/** The pictures of a view, or why there are none. */
function body(all, synthetic, state) {
  if (!(all.root.value > 0)) return el("p.empty", "No stack is left. Remove one of the choices above.");
  if (!all.flames.length)
    return el(
      "p.empty",
      synthetic
        ? "These stacks are derived from numbers of calls. This function has no box in them: it has no time, " +
            "or it is a member of a cycle, and the box of the cycle stands for it. "
        : "No stack of this time range has this function. ",
      el("a", to(state, { mode: "", focus: "", zoom: "" }), "All stacks"),
    );
  if (state.mode !== "sandwich") return all.flames[0].node;
  const [callers, callees] = all.flames;
  const title = (text) => el("h4", text);
  return [title("Its callers"), callers.node, title("What it calls"), callees.node];
}

export async function draw(main, state, signal) {
  const found = await begin(main, state, signal, "Flame graph", [...ORDERS, ["sandwich", "Sandwich"]]);
  if (!found) return;
  const { title, chip, choices } = found;
  await breath(); // a large tree is read in one task, summed up in another, and drawn in a third
  const all = new Stacks(found, state);
  await breath();
  signal.throwIfAborted();
  const slim = innerWidth < NARROW;
  const search = (text) => all.search(text);
  const filter = findField(state, "Mark functions", search, (step) => all.next(step));
  all.away = button("Reset zoom", () => all.reset(), { hidden: !state.zoom && !state.at });
  const layout = slim ? null : links("Layout", LAYOUTS, state.layout, state, (value) => ({ layout: value }));
  const parts = all.flames.length ? saving("profd-flame", () => [all.flames[0].view]) : null;
  const tools = [layout, state.layout === "table" ? null : parts, all.away, all.sum];
  const most = all.middle ? null : answer(all.all, all.look, state);
  const pictures = el(
    "div.pictures",
    all.middle ? all.head(signal) : innerWidth < BESIDE ? null : most,
    body(all, found.answer.synthetic, state),
    legend(all.modules, all.all, all.look),
    all.flames.length ? all.detail : null,
  );
  const both = { class: state.layout ? "beside alone" : "beside" };
  replace(
    main,
    el("div.bar.stacks", title, filter, slim ? null : chip, choices, tools, innerWidth < BESIDE ? most : null),
    remarks(found, state),
    all.left(),
    el("div", both, state.layout === "table" ? all.detail : pictures, state.layout === "flame" ? null : all.beside),
    slim ? el("p", chip) : null,
  );
  all.fill();
  const above = new ResizeObserver(() => all.fill()); // what stands above comes later, and pushes the pictures down
  above.observe(document.getElementById("question"));
  signal.addEventListener("abort", () => above.disconnect());
  if (state.layout !== "table") for (const flame of all.flames) flame.draw();
  if (slim) all.table.show(["self", "total"], true);
  all.table.restore();
  if (state.q) all.search(state.q);
}
