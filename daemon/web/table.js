// A table of up to some hundred thousand rows of which only those in sight are in the page. One tab stop; arrows move,
// Enter opens.
import { el, replace } from "./dom.js";
import { NARROW } from "./report_columns.js";
import { note, remembersOpen } from "./state.js";

const MISSING = 2; // rows, for which a list is not worth scrolling
const ROW = 30; // pixels: rows have one height, so that places can be computed
export const PAPER = 2000; // rows that are printed
const NAME = 9.5; // rem that a column of names has at least
const NUMBER = 6.2;
const TEXT = 7;
const shown = new Set();
let tables = 0;

/** A list of which only the rows in sight are in the page; paper(true) puts them all there, to be printed. */
export const prints = (list) => shown.add(list);

function print(whole) {
  for (const list of shown) {
    if (list.node.isConnected) list.paper(whole);
    else shown.delete(list);
  }
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));

/**
 * columns: {key, width in rem, still (no order by it), bars, slim (width without them), title, hint, numeric,
 * value(i) to sort by, cell(i) → text or node}. count: rows 0 … count−1.
 * open(i): Enter or a click on a row. state: where sort order, active row and place are kept; sort: the order without
 * it.
 * sorted(key, dir): told when the user sorts.
 */
export class Table {
  constructor({ label, columns, count, state, sort, open, sorted, tall = false }) {
    Object.assign(this, {
      all: columns,
      columns,
      count,
      state,
      usual: sort,
      open,
      sorted,
      tall,
      active: 0,
      id: `table-${++tables}`,
    });
    this.order = Uint32Array.from({ length: count }, (_, i) => i);
    this.head = el("tr", { "aria-rowindex": "1" });
    this.body = el("tbody");
    this.widths = el("colgroup");
    this.table = el(
      "table",
      { id: this.id, role: "grid", tabIndex: 0, "aria-label": label, "aria-rowcount": String(count + 1) },
      this.widths,
      el("thead", {}, this.head),
      this.body,
    );
    this.none = el("p", { class: "hint none", hidden: true }, "No row matches the filter.");
    this.node = el("div", { class: tall ? "scroll tall" : "scroll" }, this.table, this.none);
    this.node.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.table.addEventListener("keydown", (event) => this.key(event));
    // A link of a row is followed from that row: it is marked before the link acts.
    this.body.addEventListener("click", (event) => this.choose(event), { capture: true });
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.node);
    prints(this);
    this.setSort(state.sort || sort, state.dir || undefined);
  }

  /** The places that the state says, after Back or a reload. */
  restore() {
    if ((this.state.sort || this.usual) !== this.sort || (this.state.dir || this.natural(this.sort)) !== this.dir)
      this.setSort(this.state.sort || this.usual, this.state.dir || undefined);
    this.active = Math.min(Number(this.state.row) || 0, Math.max(0, this.rows.length - 1));
    this.node.scrollTop = (Number(this.state.top) || 0) * ROW;
    this.draw();
    this.mark();
    this.grow();
  }

  scrolled() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      const top = String(Math.round(this.node.scrollTop / ROW) || "");
      if (this.node.isConnected && top !== this.state.top) note(this.state, { top });
      this.draw();
    });
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
      column.numeric ? Number(column.value(i)) : String(column.value(i)),
    );
    // What is no number stands last in either direction; equals stay in the report's order. Text by its code units:
    // fast.
    const none = (v) => (Number.isNaN(v) ? 1 : 0);
    this.order.sort((a, b) => {
      const x = values[a];
      const y = values[b];
      if (x === y) return a - b;
      if (x < y) return -sign;
      return x > y ? sign : none(x) - none(y) || a - b;
    });
    this.drawHead();
    this.filter(this.wanted);
  }

  /** Shows rows for which wanted(i); all without it. */
  filter(wanted) {
    this.wanted = wanted;
    this.rows = wanted ? this.order.filter((i) => wanted(i)) : this.order;
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.active = Math.min(Number(this.state.row) || 0, Math.max(0, this.rows.length - 1));
    this.node.scrollTop = (Number(this.state.top) || 0) * ROW;
    this.none.hidden = this.rows.length > 0;
    this.from = -1;
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

  paper(whole) {
    this.whole = whole;
    this.from = -1;
    this.draw();
  }

  drawHead() {
    // Numbers have their width; the first column has the rest.
    const own = (c) => (this.plain && c.bars ? (c.slim ?? NUMBER) : c.width);
    const width = (c, i) => own(c) ?? (i === 0 ? NAME : c.numeric ? NUMBER : TEXT);
    const all = this.columns.map(width);
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

  draw() {
    if (!this.node.isConnected) return; // drawn when it is in the page
    const height = this.node.clientHeight || 600;
    const first = this.whole
      ? 0
      : Math.min(Math.max(0, Math.floor(this.node.scrollTop / ROW) - 10), Math.max(0, this.rows.length - 1));
    const last = Math.min(this.rows.length, this.whole ? PAPER : first + Math.ceil(height / ROW) + 20);
    if (first === this.from && last === this.to) return;
    this.from = first;
    this.to = last;
    const spacer = (n) =>
      n > 0
        ? el(
            "tr",
            { class: "spacer", "aria-hidden": "true" },
            el("td", { colSpan: this.columns.length, style: { height: `${n * ROW}px` } }),
          )
        : null;
    const drawn = [];
    for (let at = first; at < last; at++) drawn.push(this.row(at));
    replace(this.body, spacer(first), drawn, spacer(this.rows.length - last));
    this.mark();
  }

  row(at) {
    const i = this.rows[at];
    return el(
      "tr",
      { id: `${this.id}-${at}`, "aria-rowindex": String(at + 2), "data-at": String(at) },
      this.columns.map((c, k) =>
        el("td", { class: c.numeric ? "n" : "" }, k === 0 ? el("span", { class: "named" }, c.cell(i)) : c.cell(i)),
      ),
    );
  }

  mark() {
    let seen = false;
    for (const row of this.body.rows) {
      const active = row.dataset.at !== undefined && Number(row.dataset.at) === this.active;
      row.classList.toggle("active", active);
      if (row.dataset.at !== undefined) row.setAttribute("aria-selected", String(active));
      seen ||= active;
    }
    if (seen) this.table.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.table.removeAttribute("aria-activedescendant");
  }

  /** remembered: in the address. */
  move(to, remembered = true) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, to));
    if (remembered) note(this.state, { row: String(this.active || "") });
    const top = this.active * ROW;
    const head = this.head.offsetHeight;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + ROW + head > this.node.scrollTop + this.node.clientHeight)
      this.node.scrollTop = top + ROW + head - this.node.clientHeight;
    this.draw();
    this.mark();
  }

  /** Makes a row the active one and brings it into sight: into the middle where the address does not remember it. */
  select(i, remembered = true) {
    const at = this.rows.indexOf(i);
    if (at < 0) return;
    if (!remembered) this.node.scrollTop = at * ROW - this.node.clientHeight / 2;
    this.move(at, remembered);
  }

  key(event) {
    if (event.target !== this.table || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / ROW) - 2);
    const to = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: this.rows.length - 1,
    }[event.key];
    if (to !== undefined) this.move(to);
    else if (event.key === "Enter" && this.rows.length) this.open?.(this.rows[this.active]);
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
    if (!row || event.target.closest("a, button") || !getSelection().isCollapsed) return;
    this.open?.(this.rows[this.active]);
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
}

/** The field that "/" goes to. now() is the present state; apply(text) is called for what is typed, which the address
 *  bar remembers. Esc empties it, and leaves it when it is empty; with a table, Enter opens the first row. */
export function filterField(now, label, hint, apply, table) {
  const placeholder = innerWidth < NARROW ? hint.replace(" (regex)", "") : hint;
  const about = { title: label, "aria-label": label };
  const field = el("input", { id: "filter", type: "search", value: now().q, placeholder, ...about });
  const typed = () => {
    note(now(), { q: field.value, row: "", top: "" });
    apply(field.value);
  };
  const leave = () => (table ? table().table.focus() : field.blur());
  const keys = {
    Escape: () => (field.value ? ((field.value = ""), typed()) : leave()),
    Enter: () => table && table().rows.length && table().open?.(table().rows[table().active]),
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

/** A picture's content as a table, in a closed <details>. It is made when opened: pictures may have many parts. */
export const pictureTable = (state, key, summary, make) =>
  remembersOpen(
    state,
    key,
    el("details", { class: "picture-table" }, el("summary", {}, `The same as a table: ${summary}`)),
    () => el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": summary }, make()),
  );

/** A small table of plain rows, for pictureTable. columns: [title, numeric]; rows: arrays of texts or nodes. */
export function plain(caption, columns, rows) {
  return el(
    "table",
    {},
    el("caption", {}, caption),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        columns.map(([title, numeric]) => el("th", { scope: "col", class: numeric ? "n" : "" }, title)),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map((row) =>
        el(
          "tr",
          {},
          row.map((cell, k) => el("td", { class: columns[k][1] ? "n" : "" }, cell)),
        ),
      ),
    ),
  );
}
