// A tree as rows, of which only those in sight are in the page. One tab stop; arrows move, open and close.
import { el, replace } from "./dom.js";
import { NARROW, RowList } from "./table.js";

const MOST = 20000; // rows that are opened at once
// Pixels of a level, and levels from which rows are not moved further to the right.
const WIDE = { step: 14, deep: 24 };
const SLIM = { step: 6, deep: 12 };

export class TreeGrid extends RowList {
  /** root: a box of stacks.js; its children are the first rows. columns: {title, hint, numeric, width, cell(box)}, the
   *  first with the names. at: the row that is active; moved(box): told when another is. opened: boxes that are open.
   *  open(box): Enter. */
  constructor({ label, root, columns, at, opened, moved, open }) {
    super("treegrid", label, columns);
    Object.assign(this, { root, moved, open, indent: innerWidth < NARROW ? SLIM : WIDE });
    this.opened = new Set([root, ...opened]);
    const title = (c) => el("th", { scope: "col", class: c.numeric ? "n still" : "still", title: c.hint }, c.title);
    const width = (c, i) => el("col", { style: { width: i ? `${c.width}rem` : "auto" } });
    replace(this.head, columns.map(title));
    replace(this.widths, columns.map(width));
    this.node.classList.add("tall", "treegrid");
    this.reveal(at);
  }

  /** The rows, after something was opened or closed. */
  list() {
    const rows = [];
    const todo = [...this.root.children].reverse();
    while (todo.length) {
      const box = todo.pop();
      rows.push(box);
      if (this.opened.has(box)) for (let i = box.children.length - 1; i >= 0; i--) todo.push(box.children[i]);
    }
    this.setRows(rows);
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

  lineOf(at) {
    const box = this.rows[at];
    const { step, deep } = this.indent;
    const inner = box.children.length > 0;
    const open = this.opened.has(box);
    const level = box.level - this.root.level;
    const twist = { class: inner ? "twist" : "twist leaf", "aria-hidden": "true" };
    const sign = el("span", twist, inner ? (open ? "▾" : "▸") : "");
    const indent = { style: { "padding-left": `${step * (Math.min(level, deep) - 1)}px` } };
    const siblings = box.parent.children;
    return this.line(at, (c, k) => (k === 0 ? el("span.named", indent, sign, c.cell(box)) : c.cell(box)), {
      "aria-level": String(level),
      "aria-setsize": String(siblings.length),
      "aria-posinset": String(siblings.indexOf(box) + 1),
      "aria-expanded": inner ? String(open) : null,
    });
  }

  mark() {
    super.mark();
    for (const row of this.body.querySelectorAll("tr[data-at]"))
      row.classList.toggle("hit", Boolean(this.wanted?.(this.rows[row.dataset.at].name ?? "")));
  }

  /** Marks the rows of which the name matches. */
  search(wanted) {
    this.wanted = wanted;
    this.mark();
  }

  move(to, tell = true) {
    super.move(to);
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
    if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = this.goal(event);
    const does = {
      ArrowRight: () => this.sideways(box, true),
      ArrowLeft: () => this.sideways(box, false),
      " ": () => this.toggle(box),
      "*": () => this.openAll(box),
      Enter: () => this.open(box),
    }[event.key];
    if (to !== undefined) this.move(to);
    else if (does) does();
    else return;
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
