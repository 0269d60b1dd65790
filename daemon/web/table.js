// A table of up to some hundred thousand rows of which only those in sight are in the page. One tab stop; arrows move,
// Enter opens.
import { el, region, replace, say } from "./dom.js";
import * as format from "./format.js";
import { note, remembersOpen } from "./state.js";

export const NARROW = 700; // pixels of a window below which there is little space
export const BESIDE = 1100; // from which two things stand beside each other
const MISSING = 2; // rows, for which a list is not worth scrolling
const ROW = 30; // pixels: rows have one height, so that places can be computed
const PAPER = 2000; // rows that are printed
const NAME = 9.5; // rem that a column of names has at least
const [NAMES_MOST, LETTER, BESIDES] = [40, 0.53, 4.4]; // letters for which other columns leave, and rem that they take
const NUMBER = 6.2;
const TEXT = 7;
const [REM, EDGES] = [16, 36]; // pixels of a rem, and beside a table
const PADDING = 24; // pixels of a cell
const SHORTEST = 7; // letters of a name
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "15px system-ui, sans-serif"; // of the page
const lists = new WeakMap(); // by their nodes
let tables = 0;

function print(whole) {
  for (const node of document.querySelectorAll(".scroll")) lists.get(node)?.paper(whole);
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));

/** Rows of which only those in sight are in the page; all of them are printed. role: of the table. A subclass has
 *  columns, lineOf(at) for a row, key(event) and click(event). */
export class RowList {
  constructor(role, label, columns) {
    Object.assign(this, { columns, rows: [], active: 0, id: `table-${++tables}` });
    this.head = el("tr", { "aria-rowindex": "1" });
    this.body = el("tbody");
    this.widths = el("colgroup");
    const about = { id: this.id, role, tabIndex: 0, "aria-label": label };
    this.table = el("table", about, this.widths, el("thead", this.head), this.body);
    this.node = el("div.scroll", this.table);
    this.node.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.table.addEventListener("keydown", (event) => event.target === this.table && this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.node);
    lists.set(this.node, this);
  }

  /** all: an array of them. */
  setRows(all) {
    this.rows = all;
    this.from = -1;
    this.table.setAttribute("aria-rowcount", String(all.length + 1));
  }

  scrolled() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.rest?.();
      this.draw();
    });
  }

  paper(whole) {
    this.whole = whole;
    this.from = -1;
    this.draw();
  }

  draw() {
    if (!this.node.isConnected) return; // drawn when it is in the page
    const height = this.node.clientHeight || 600;
    const top = this.whole ? 0 : Math.floor(this.node.scrollTop / ROW) - 10;
    const first = Math.min(Math.max(0, top), Math.max(0, this.rows.length - 1));
    const last = Math.min(this.rows.length, this.whole ? PAPER : first + Math.ceil(height / ROW) + 20);
    if (first === this.from && last === this.to) return;
    Object.assign(this, { from: first, to: last });
    const tall = (n) => el("td", { colSpan: this.columns.length, style: { height: `${n * ROW}px` } });
    const spacer = (n) => (n > 0 ? el("tr.spacer", { "aria-hidden": "true" }, tall(n)) : null);
    const drawn = [];
    for (let at = first; at < last; at++) drawn.push(this.lineOf(at));
    replace(this.body, spacer(first), drawn, spacer(this.rows.length - last));
    this.mark();
  }

  /** The line of a row. cell(column, k): its content. */
  line(at, cell, about = {}) {
    const place = { id: `${this.id}-${at}`, "aria-rowindex": String(at + 2), "data-at": String(at) };
    const cells = this.columns.map((c, k) => el("td", { class: c.numeric ? "n" : "" }, cell(c, k)));
    return el("tr", { ...place, ...about }, cells);
  }

  mark() {
    let seen = false;
    for (const row of this.body.rows) {
      if (row.dataset.at === undefined) continue;
      const active = Number(row.dataset.at) === this.active;
      row.classList.toggle("active", active);
      row.setAttribute("aria-selected", String(active));
      seen ||= active;
    }
    if (seen) this.table.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.table.removeAttribute("aria-activedescendant");
  }

  /** Makes a row the active one and brings it into sight. */
  move(to) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, to));
    const top = this.active * ROW;
    const head = this.head.offsetHeight;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + ROW + head > this.node.scrollTop + this.node.clientHeight)
      this.node.scrollTop = top + ROW + head - this.node.clientHeight;
    this.draw();
    this.mark();
  }

  /** Which row a key goes to; undefined: none. */
  goal(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
    const page = Math.max(1, Math.floor(this.node.clientHeight / ROW) - 2);
    const { active } = this;
    const by = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page };
    return { ...by, Home: 0, End: this.rows.length - 1 }[event.key];
  }
}

/**
 * A table that is sorted and filtered. columns: {key, width in rem, still (no order by it), rare (left out where
 * names have no space, the largest number first), bars, slim (width without them), title, hint, numeric, value(row) to
 * sort by, cell(row, space) → text or node; space: pixels of a name}.
 * rows: an array, or how many there are: then they are known by their numbers.
 * open(row): Enter or a click on a row. moved(row): another row is the active one.
 * state: where sort order, active row and place are kept; sort: the order without
 * it.
 * sorted(key, dir): told when the user sorts.
 */
export class Table extends RowList {
  constructor({ label, columns, rows, state, sort, open, moved, sorted, tall = false }) {
    super("grid", label, columns);
    const count = rows.length ?? rows;
    Object.assign(this, { all: columns, list: rows, count, state, usual: sort, open, moved, sorted, tall });
    this.order = Uint32Array.from({ length: count }, (_, i) => i);
    const letters = (i) => String(columns[0].value?.(this.row(i)) ?? "").length;
    const longest = this.order.reduce((most, i) => (most < NAMES_MOST ? Math.max(most, letters(i)) : most), 0);
    this.named = Math.max(NAME, LETTER * Math.min(NAMES_MOST, longest) + BESIDES);
    this.none = el("p.hint.none", { hidden: true }, "No row matches the filter.");
    this.node.classList.toggle("tall", tall);
    this.node.append(this.none);
    // A link of a row is followed from that row: it is marked before the link acts.
    this.body.addEventListener("click", (event) => this.choose(event), { capture: true });
    this.setSort(state.sort || sort, state.dir || undefined);
  }

  /** The row of that number. */
  row(i) {
    return this.list.length === undefined ? i : this.list[i];
  }

  /** The places that the state says, after Back or a reload. */
  restore() {
    if ((this.state.sort || this.usual) !== this.sort || (this.state.dir || this.natural(this.sort)) !== this.dir)
      this.setSort(this.state.sort || this.usual, this.state.dir || undefined);
    this.place();
    this.draw();
    this.mark();
    this.grow();
  }

  place() {
    this.active = Math.min(Number(this.state.row) || 0, Math.max(0, this.rows.length - 1));
    this.node.scrollTop = (Number(this.state.top) || 0) * ROW;
  }

  /** Remembers the place when scrolling rests. */
  rest() {
    const top = String(Math.round(this.node.scrollTop / ROW) || "");
    if (this.node.isConnected && top !== this.state.top) note(this.state, { top });
  }

  natural(key) {
    return this.column(key).numeric ? "desc" : "asc";
  }

  column(key) {
    return this.all.find((c) => c.key === key && !c.still) ?? this.all[0];
  }

  setSort(key, dir) {
    const column = this.column(key);
    this.sort = column.key;
    this.dir = dir ?? this.natural(column.key);
    const sign = this.dir === "desc" ? -1 : 1;
    const values = Array.from({ length: this.count }, (_, i) =>
      column.numeric ? Number(column.value(this.row(i))) : String(column.value(this.row(i))),
    );
    // What is no number stands last in either direction; equals stay in the report's order. Text by its code units:
    // fast.
    const none = (v) => (Number.isNaN(v) ? 1 : 0);
    const compare = (a, b) => {
      const x = values[a];
      const y = values[b];
      if (x === y) return a - b;
      if (x < y) return -sign;
      return x > y ? sign : none(x) - none(y) || a - b;
    };
    const { order } = this; // as the daemon sorted it, mostly
    if (order.some((i, at) => at > 0 && compare(order[at - 1], i) > 0)) order.sort(compare);
    this.drawHead();
    this.filter(this.wanted);
  }

  /** Shows rows for which wanted(row); all without it. */
  filter(wanted) {
    this.wanted = wanted;
    this.setRows(wanted ? this.order.filter((i) => wanted(this.row(i))) : this.order);
    this.place();
    this.none.hidden = this.rows.length > 0;
    this.draw();
  }

  /** Takes the free height of the window, and that of the last rows if few are missing. */
  grow() {
    const footer = document.querySelector("footer");
    const hidden = () => this.node.scrollHeight - this.node.clientHeight;
    if (!this.tall || hidden() <= 0 || this.whole) return;
    const free = Math.max(0, innerHeight - footer.getBoundingClientRect().bottom - scrollY);
    const more = hidden() <= free + MISSING * ROW ? hidden() : free;
    this.node.style.maxHeight = `${this.node.offsetHeight + more}px`;
  }

  /** In rem: numbers have their width; the first column has the rest. */
  widthOf(c, i, plain = this.plain) {
    const own = plain && c.bars ? (c.slim ?? NUMBER) : c.width;
    return own ?? (i === 0 ? NAME : c.numeric ? NUMBER : TEXT);
  }

  drawHead() {
    const all = this.columns.map((c, i) => this.widthOf(c, i));
    this.table.style.minWidth = `${all.reduce((sum, w) => sum + w, 0)}rem`;
    replace(
      this.widths,
      all.map((w, i) => el("col", { style: { width: i === 0 ? "auto" : `${w}rem` } })),
    );
    replace(
      this.head,
      this.columns.map((c) => {
        if (c.still) return el("th", { scope: "col", class: c.numeric ? "n still" : "still", title: c.hint }, c.title);
        const sorted = c.key === this.sort ? (this.dir === "desc" ? "descending" : "ascending") : "none";
        const turn = () => {
          this.setSort(c.key, c.key === this.sort ? (this.dir === "desc" ? "asc" : "desc") : undefined);
          note(this.state, { sort: this.sort, dir: this.dir });
          this.head.cells[this.columns.indexOf(c)].firstChild.focus({ preventScroll: true });
          this.sorted?.(this.sort, this.dir);
        };
        const mark = sorted === "none" ? "" : sorted === "descending" ? " ↓" : " ↑";
        const button = el(
          "button",
          { type: "button", onclick: turn, title: c.hint ?? "" },
          c.title,
          el("span", { "aria-hidden": "true" }, mark),
        );
        return el("th", { scope: "col", class: c.numeric ? "n" : "", "aria-sort": sorted }, button);
      }),
    );
  }

  /** Pixels of a name: the first column has what the others leave. */
  draw() {
    const wide = this.columns.map((c, i) => REM * this.widthOf(c, i));
    const others = wide.reduce((sum, w) => sum + w, -wide[0]);
    const space = Math.max(this.node.clientWidth - others, wide[0]) - PADDING;
    if (space !== this.space) this.from = -1;
    this.space = space;
    super.draw();
  }

  lineOf(at) {
    const row = this.row(this.rows[at]);
    return this.line(at, (c, k) => (k === 0 ? el("span.named", c.cell(row, this.space)) : c.cell(row)));
  }

  /** remembered: in the address. */
  move(to, remembered = true) {
    super.move(to);
    if (remembered && this.rows.length) this.moved?.(this.row(this.rows[this.active]));
    if (remembered) note(this.state, { row: String(this.active || "") });
  }

  /** Makes the row of that number the active one and brings it into sight: into the middle where the address does not
   *  remember it. */
  select(i, remembered = true) {
    const at = this.rows.indexOf(i);
    if (at < 0) return;
    if (!remembered) this.node.scrollTop = at * ROW - this.node.clientHeight / 2;
    this.move(at, remembered);
  }

  /** Opens the active row. */
  enter() {
    if (this.rows.length) this.open?.(this.row(this.rows[this.active]));
  }

  key(event) {
    const to = this.goal(event);
    if (to !== undefined) this.move(to);
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.altKey) this.enter();
    else return;
    event.preventDefault();
  }

  choose(event) {
    const row = event.target.closest("tr[data-at]");
    if (!row || !getSelection().isCollapsed) return;
    this.active = Number(row.dataset.at);
    note(this.state, { row: String(this.active || "") });
    this.mark();
  }

  click(event) {
    const row = event.target.closest("tr[data-at]");
    if (row && !event.target.closest("a, button") && getSelection().isCollapsed) this.enter();
  }

  /** Shows those columns only; the first one always. plain: without bars, where there is little space. */
  show(keys, plain = false) {
    const columns = this.all.filter((c, i) => i === 0 || keys.includes(c.key));
    if (
      plain === this.plain &&
      columns.length === this.columns.length &&
      columns.every((c, i) => c === this.columns[i])
    )
      return;
    this.plain = plain;
    this.node.classList.toggle("plain", plain);
    this.columns = columns;
    this.drawHead();
    this.from = -1;
    this.draw();
  }

  /** The columns for which there is space beside whole names: rare ones leave, then bars. Gives what show() takes. */
  fitting(list = this.all) {
    const space = (document.documentElement.clientWidth - EDGES) / REM;
    const width = (c, i, plain) => (i === 0 ? Math.max(this.named, c.width ?? 0) : this.widthOf(c, i, plain));
    const needs = (plain) => left.reduce((sum, c, i) => sum + width(c, i, plain), 0);
    const rank = (c) => Number(c.rare ?? 0);
    let left = list;
    const slim = innerWidth < BESIDE;
    while (needs(slim) > space && left.some(rank)) {
      const worst = left.reduce((a, b) => (rank(b) >= rank(a) ? b : a));
      left = left.filter((c) => c !== worst);
    }
    return [left.map((c) => c.key), slim || needs(false) > space];
  }

  /** Shows what the window has space for. few: the columns of a narrow window. */
  fit(few) {
    if (few && innerWidth < NARROW) this.show(few, true);
    else this.show(...this.fitting());
  }
}

/** A column: cell(row) is what is shown, value(row) what it is sorted by; the field of that name where there is none.
 *  more: as of Table. */
export const column = (key, title, more = {}) => {
  const value = more.still ? undefined : (more.value ?? ((row) => row[key]));
  return { key, title, cell: value, ...more, value };
};
/** The same of numbers. */
export const numbers = (key, title, more) =>
  column(key, title, { numeric: true, cell: (row) => format.count(row[key]), ...more });

/** How long ago a time was; both clocks on hover. */
export const ago = (at, never = "") =>
  at ? el("time", { dateTime: at, title: format.both(at) }, format.ago(at)) : never;

/** A name in that many pixels: where it is longer, its end, which tells functions apart. */
export function fitted(name, space) {
  const wide = (text) => ruler.measureText(text).width;
  let text = name;
  for (let n = Math.ceil((name.length * space) / wide(name)); n > SHORTEST && wide(text) > space; n--)
    text = format.clip(name, n);
  return text;
}

/** A pattern, or a plain text where it is none. */
export function matcher(text) {
  if (!text) return undefined;
  let pattern;
  try {
    pattern = new RegExp(text, "i");
  } catch {
    pattern = new RegExp(text.replace(/\W/g, "\\$&"), "i");
  }
  return Object.assign((name) => pattern.test(name), { pattern });
}

/** A table and the field that filters it. about: what the field does; text(row): what it looks at; wanted(typed): which
 *  rows that leaves, or undefined for all; told(typed, rows): called when rows were left out, with their numbers;
 *  nouns: what a row is and what rows are, where the number of rows says it all; more: there are others that were not
 *  read; few: columns where there is little space; others: of Table. show() is called when the table is in the page. */
export function listing({ about, hint = "Filter (regex)", text, wanted, nouns, more, few, told, ...others }) {
  const count = (n) => say(`${format.count(n)} of ${format.several(table.count, ...nouns)}${more ? " and more" : ""}`);
  const table = new Table({ tall: true, ...others });
  const matching = (typed) => {
    const matches = matcher(typed);
    return matches && ((row) => matches(text(row)));
  };
  const apply = (typed) => {
    table.filter((wanted ?? matching)(typed));
    if (told) told(typed, table.rows);
    else count(table.rows.length);
  };
  const filter = filterField(table, about, hint, apply, table);
  const show = () => {
    table.fit(few);
    apply(table.state.q);
    table.restore();
  };
  return { table, filter, apply, show };
}

/** The field that "/" goes to. holder.state: the present one; apply(text) is called for what is typed, which the
 *  address bar remembers. Esc empties it, and leaves it when it is empty; with a table, Enter opens the first row. */
export function filterField(holder, label, hint, apply, table) {
  const placeholder = innerWidth < NARROW ? hint.replace(" (regex)", "") : hint;
  const about = { title: label, "aria-label": label };
  const field = el("input", { id: "filter", type: "search", value: holder.state.q, placeholder, ...about });
  const typed = () => {
    note(holder.state, { q: field.value, row: "", top: "" });
    apply(field.value);
  };
  const leave = () => (table ? table.table.focus() : field.blur());
  const keys = {
    Escape: () => (field.value ? ((field.value = ""), typed()) : leave()),
    Enter: () => table?.enter(),
    ArrowDown: () => table && leave(),
  };
  field.addEventListener("input", typed);
  field.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.isComposing) return;
    event.preventDefault();
    keys[event.key]();
  });
  return field;
}

/** A field that finds names in a picture. next(step): where it is given, Enter goes to the next match with 1, and with
 *  Shift to the one before with -1. */
export function findField(state, label, apply, next) {
  const field = filterField({ state }, label, "Find (regex)", apply);
  if (next) field.addEventListener("keydown", (event) => event.key === "Enter" && next(event.shiftKey ? -1 : 1));
  return field;
}

/** The match after the one that is shown, or before it: the first one, or the last, where none is shown. */
export function nextOf(hits, shown, step) {
  const at = hits.indexOf(shown);
  return hits[at < 0 ? (step > 0 ? 0 : hits.length - 1) : (at + step + hits.length) % hits.length];
}

/** The same where it is a list that is found. find(wanted): marks what matches, and gives it; show(hit): brings one of
 *  them into sight. Gives {field, apply}: apply(text) when the picture is drawn. */
export function finder(state, find, show) {
  let hits = [];
  let shown;
  const apply = (text) => {
    hits = find(matcher(text));
    shown = undefined;
    const more = show ? "; Enter goes to the next one" : "";
    if (text) say(format.several(hits.length, "box matches", "boxes match") + more);
  };
  const next = (step) => {
    shown = nextOf(hits, shown, step);
    if (shown) show(shown);
  };
  return { field: findField(state, "Find functions", apply, show && next), apply };
}

/** A picture's content as a table, in a closed <details>. It is made when opened: pictures may have many parts. */
export const pictureTable = (state, key, summary, make) =>
  remembersOpen(state, key, el("details.picture-table", el("summary", `The same as a table: ${summary}`)), () =>
    region("div.scroll", summary, make()),
  );

/** A small table of plain rows, for pictureTable. columns: [title, numeric, hint]; rows: arrays of texts or nodes. */
export function plain(caption, columns, rows) {
  const head = ([title, numeric, hint]) => el("th", { scope: "col", class: numeric ? "n" : "", title: hint }, title);
  const cell = (content, k) => el("td", { class: columns[k][1] ? "n" : "" }, content);
  const line = (row) => el("tr", row.map(cell));
  return el("table", el("caption", caption), el("thead", el("tr", columns.map(head))), el("tbody", rows.map(line)));
}
