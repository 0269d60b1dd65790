// A table of up to some hundred thousand rows of which only those in sight are in the page. One tab stop; arrows move, Enter opens.
import { el, replace } from "./dom.js";
import { note } from "./state.js";

const ROW = 30; // pixels: rows have one height, so that places can be computed
let tables = 0;

/**
 * columns: {key, title, hint, numeric, value(i) to sort by, cell(i) → text or node}. count: rows 0 … count−1.
 * open(i): Enter or a click on a row. sorted(key, dir): told when the user sorts.
 */
export class Table {
  constructor({ label, columns, count, sort, dir, open, sorted, tall = false }) {
    Object.assign(this, { columns, count, open, sorted, active: 0, id: `table-${++tables}` });
    this.order = Uint32Array.from({ length: count }, (_, i) => i);
    this.head = el("tr");
    this.body = el("tbody");
    this.table = el("table", { id: this.id, role: "grid", tabIndex: 0, "aria-label": label, "aria-rowcount": String(count + 1) }, el("thead", {}, this.head), this.body);
    this.node = el("div", { class: tall ? "scroll tall" : "scroll" }, this.table);
    this.node.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    this.table.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.node);
    this.setSort(sort ?? columns[0].key, dir || undefined);
  }

  column(key) {
    return this.columns.find((c) => c.key === key) ?? this.columns[0];
  }

  setSort(key, dir) {
    const column = this.column(key);
    this.sort = column.key;
    this.dir = dir ?? (column.numeric ? "desc" : "asc");
    const sign = this.dir === "desc" ? -1 : 1;
    const values = Array.from({ length: this.count }, (_, i) => column.value(i));
    this.order.sort((a, b) => {
      const x = values[a];
      const y = values[b];
      const order = typeof x === "string" && typeof y === "string" && !column.numeric ? x.localeCompare(y) : Number(x) - Number(y);
      return order !== 0 && !Number.isNaN(order) ? sign * order : a - b;
    });
    this.drawHead();
    this.filter(this.wanted);
  }

  /** Shows rows for which wanted(i); all without it. */
  filter(wanted) {
    this.wanted = wanted;
    this.rows = wanted ? this.order.filter((i) => wanted(i)) : this.order;
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.active = Math.min(this.active, Math.max(0, this.rows.length - 1));
    this.from = -1;
    this.draw();
  }

  drawHead() {
    replace(
      this.head,
      this.columns.map((c) => {
        const sorted = c.key === this.sort ? (this.dir === "desc" ? "descending" : "ascending") : "none";
        const turn = () => {
          this.setSort(c.key, c.key === this.sort ? (this.dir === "desc" ? "asc" : "desc") : undefined);
          this.sorted?.(this.sort, this.dir);
        };
        const mark = sorted === "none" ? "" : sorted === "descending" ? " ↓" : " ↑";
        const button = el("button", { type: "button", onclick: turn, title: c.hint ?? "" }, c.title, el("span", { "aria-hidden": "true" }, mark));
        return el("th", { scope: "col", class: c.numeric ? "n" : "", "aria-sort": sorted }, button);
      }),
    );
  }

  draw() {
    const height = this.node.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.node.scrollTop / ROW) - 10);
    const last = Math.min(this.rows.length, first + Math.ceil(height / ROW) + 20);
    if (first === this.from && last === this.to) return;
    this.from = first;
    this.to = last;
    const spacer = (n) => (n > 0 ? el("tr", { class: "spacer", "aria-hidden": "true" }, el("td", { colSpan: this.columns.length, style: { height: `${n * ROW}px` } })) : null);
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
      this.columns.map((c) => el("td", { class: c.numeric ? "n" : "" }, c.cell(i))),
    );
  }

  mark() {
    for (const row of this.body.rows) row.classList.toggle("active", Number(row.dataset.at) === this.active);
    if (this.rows.length) this.table.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.table.removeAttribute("aria-activedescendant");
  }

  move(to) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, to));
    const top = this.active * ROW;
    const head = this.head.offsetHeight;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + ROW + head > this.node.scrollTop + this.node.clientHeight) this.node.scrollTop = top + ROW + head - this.node.clientHeight;
    this.draw();
    this.mark();
  }

  /** Makes a row the active one and brings it into sight. */
  select(i) {
    const at = this.rows.indexOf(i);
    if (at >= 0) this.move(at);
  }

  key(event) {
    if (event.target !== this.table || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / ROW) - 2);
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page, Home: 0, End: this.rows.length - 1 }[event.key];
    if (to !== undefined) this.move(to);
    else if (event.key === "Enter" && this.rows.length) this.open?.(this.rows[this.active]);
    else return;
    event.preventDefault();
  }

  click(event) {
    const row = event.target.closest("tr[data-at]");
    if (!row || event.target.closest("a, button") || !getSelection().isCollapsed) return;
    this.active = Number(row.dataset.at);
    this.mark();
    this.open?.(this.rows[this.active]);
  }
}

/** The field that "/" goes to. apply(text) is called for what is typed, which the address bar remembers. */
export function filterField(state, label, placeholder, apply) {
  const field = el("input", { id: "filter", type: "search", value: state.q, placeholder, "aria-label": label });
  field.addEventListener("input", () => {
    state.q = field.value;
    apply(field.value);
    note(state, {});
  });
  return field;
}

/** A small table of plain rows: the twin of a picture. columns: [title, numeric]; rows: arrays of texts or nodes. */
export function plain(caption, columns, rows) {
  return el(
    "table",
    {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map(([title, numeric]) => el("th", { scope: "col", class: numeric ? "n" : "" }, title)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, k) => el("td", { class: columns[k][1] ? "n" : "" }, cell))))),
  );
}
