// A tree as rows, of which only those in sight are in the page. One tab stop; arrows move, open and close.
import { el, replace } from "./dom.js";
import { PAPER, prints } from "./table.js";

const ROW = 30; // pixels, as in table.js
const MOST = 20000; // rows that are opened at once
// Pixels of a level, and levels from which rows are not moved further to the right.
const WIDE = { step: 14, deep: 24 };
const NARROW = { step: 6, deep: 12 };

let grids = 0;

export class TreeGrid {
  /** root: a box of stacks.js; its children are the first rows. columns: {title, hint, numeric, width,
   *  cell(box)}, the first with the names. at: the row that is active; moved(box): told when another is. open(box):
   * Enter.
   *  narrow: there is little space. */
  constructor({ label, root, columns, at, moved, open, narrow }) {
    Object.assign(this, {
      root,
      columns,
      moved,
      open,
      indent: narrow ? NARROW : WIDE,
      id: `tree-${++grids}`,
      opened: new Set([root]),
    });
    this.body = el("tbody");
    const title = (c) => el("th", { scope: "col", class: c.numeric ? "n still" : "still", title: c.hint }, c.title);
    const head = columns.map(title);
    const widths = columns.map((c, i) => el("col", { style: { width: i ? `${c.width}rem` : "auto" } }));
    this.table = el(
      "table",
      { role: "treegrid", tabIndex: 0, "aria-label": label },
      el("colgroup", {}, widths),
      el("thead", {}, el("tr", { "aria-rowindex": "1" }, head)),
      this.body,
    );
    this.node = el("div", { class: "scroll tall treegrid" }, this.table);
    this.node.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    this.table.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.node);
    prints(this);
    this.reveal(at);
  }

  /** The rows, after something was opened or closed. */
  list() {
    this.rows = [];
    const todo = [...this.root.children].reverse();
    while (todo.length) {
      const box = todo.pop();
      this.rows.push(box);
      if (this.opened.has(box)) for (let i = box.children.length - 1; i >= 0; i--) todo.push(box.children[i]);
    }
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.from = -1;
  }

  /** Opens the way to a box and makes it the active row. */
  reveal(box) {
    for (let b = box.parent; b; b = b.parent) this.opened.add(b);
    this.list();
    this.move(Math.max(0, this.rows.indexOf(box)), false);
  }

  toggle(box, open = !this.opened.has(box)) {
    if (open) this.opened.add(box);
    else this.opened.delete(box);
    this.list();
    this.draw();
  }

  /** Opens everything below a box, as far as there is space. */
  openAll(box) {
    let count = this.rows.length;
    const todo = [box];
    for (let i = 0; i < todo.length && count < MOST; i++) {
      this.opened.add(todo[i]);
      count += todo[i].children.length;
      for (const child of todo[i].children) if (child.children.length) todo.push(child);
    }
    this.list();
    this.draw();
  }

  closeAll() {
    this.opened = new Set([this.root]);
    this.list();
    this.move(0);
  }

  /** All open rows, to be printed. */
  paper(whole) {
    this.whole = whole;
    this.draw();
  }

  draw() {
    const height = this.node.clientHeight || 600;
    const top = this.whole ? 0 : Math.floor(this.node.scrollTop / ROW) - 10;
    const first = Math.min(Math.max(0, top), Math.max(0, this.rows.length - 1));
    const last = Math.min(this.rows.length, this.whole ? PAPER : first + Math.ceil(height / ROW) + 20);
    if (first === this.from && last === this.to) return;
    Object.assign(this, { from: first, to: last });
    const tall = (n) => el("td", { colSpan: this.columns.length, style: { height: `${n * ROW}px` } });
    const spacer = (n) => (n > 0 ? el("tr", { class: "spacer", "aria-hidden": "true" }, tall(n)) : null);
    const drawn = [];
    for (let at = first; at < last; at++) drawn.push(this.row(at));
    replace(this.body, spacer(first), drawn, spacer(this.rows.length - last));
    this.mark();
  }

  row(at) {
    const box = this.rows[at];
    const { step, deep } = this.indent;
    const inner = box.children.length > 0;
    const open = this.opened.has(box);
    const level = box.level - this.root.level;
    const sign = inner ? (open ? "▾" : "▸") : "";
    const first = el(
      "span",
      { class: "named", style: { "padding-left": `${step * (Math.min(level, deep) - 1)}px` } },
      el("span", { class: inner ? "twist" : "twist leaf", "aria-hidden": "true" }, sign),
      this.columns[0].cell(box),
    );
    const siblings = box.parent.children;
    return el(
      "tr",
      {
        id: `${this.id}-${at}`,
        "data-at": String(at),
        "aria-rowindex": String(at + 2),
        "aria-level": String(level),
        "aria-setsize": String(siblings.length),
        "aria-posinset": String(siblings.indexOf(box) + 1),
        "aria-expanded": inner ? String(open) : null,
      },
      this.columns.map((c, k) => el("td", { class: c.numeric ? "n" : "" }, k === 0 ? first : c.cell(box))),
    );
  }

  mark() {
    let seen = false;
    for (const row of this.body.rows) {
      if (row.dataset.at === undefined) continue;
      const active = Number(row.dataset.at) === this.active;
      row.classList.toggle("active", active);
      row.classList.toggle("hit", Boolean(this.wanted?.(this.rows[row.dataset.at].name ?? "")));
      row.setAttribute("aria-selected", String(active));
      seen ||= active;
    }
    if (seen) this.table.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.table.removeAttribute("aria-activedescendant");
  }

  /** Marks the rows of which the name matches. */
  search(wanted) {
    this.wanted = wanted;
    this.mark();
  }

  move(to, tell = true) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, to));
    const top = this.active * ROW;
    const head = this.table.tHead.offsetHeight;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + ROW + head > this.node.scrollTop + this.node.clientHeight)
      this.node.scrollTop = top + ROW + head - this.node.clientHeight;
    this.draw();
    this.mark();
    if (tell && this.rows[this.active]) this.moved(this.rows[this.active]);
  }

  /** To the right: open, then into it. To the left: close, then out of it. */
  sideways(box, right) {
    const inner = box.children.length > 0;
    const open = this.opened.has(box);
    if (right && inner && !open) this.toggle(box, true);
    else if (right && inner) this.move(this.active + 1);
    else if (!right && open) this.toggle(box, false);
    else if (!right && box.parent !== this.root) this.move(this.rows.indexOf(box.parent));
  }

  key(event) {
    const box = this.rows[this.active];
    if (event.target !== this.table || !box || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / ROW) - 2);
    const does = {
      ArrowDown: () => this.move(this.active + 1),
      ArrowUp: () => this.move(this.active - 1),
      PageDown: () => this.move(this.active + page),
      PageUp: () => this.move(this.active - page),
      Home: () => this.move(0),
      End: () => this.move(this.rows.length - 1),
      ArrowRight: () => this.sideways(box, true),
      ArrowLeft: () => this.sideways(box, false),
      " ": () => this.toggle(box),
      "*": () => this.openAll(box),
      Enter: () => this.open(box),
    }[event.key];
    if (!does) return;
    does();
    event.preventDefault();
    event.stopPropagation();
  }

  click(event) {
    const row = event.target.closest("tr[data-at]");
    if (!row || event.target.closest("a") || !getSelection().isCollapsed) return;
    const box = this.rows[Number(row.dataset.at)];
    this.move(Number(row.dataset.at));
    if (box.children.length) this.toggle(box);
  }
}
