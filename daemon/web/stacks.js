// The daemon's tree of stacks as boxes: from the root down, from the leaves up, or around one function. Pure.
//
// A box has label, name (in full), frame, key, parent, level, value (with what is below), self, cut, inferred and
// children, by descending value. Merged boxes make their children when they are asked for.

import { base } from "./format.js";

/** What names a frame in the address, also in another window of time. */
const keyOf = (frame) =>
  frame.address ? `${frame.address.slice(2)}@${(frame.build_id ?? "").slice(0, 4)}` : keyOfName(frame.name);

/** A name as a key of a path in the address, whose keys are parted by "~". */
export const keyOfName = (name) => encodeURIComponent(name).replaceAll("~", "%7E");

/** An answer of format=tree. Gives the box of everything; under: a box that it becomes a child of. */
export function treeOf(answer, label, under) {
  const modules = new Map(answer.builds.map((build) => [build.build_id, base(build.name)]));
  const root = { label, key: keyOfName(label), level: under ? 1 : 0, parent: under, self: 0, cut: 0 };
  Object.assign(root, { value: 0, children: [], inferred: false });
  const boxes = [root];
  for (let i = 0; i < answer.frame.length; i++) {
    const frame = answer.frames[answer.frame[i]];
    frame.key ??= keyOf(frame);
    frame.module ??= modules.get(frame.build_id) ?? "";
    const parent = boxes[answer.parent[i] + 1];
    const label = frame.name.replace(/^\[gap\]/, "no symbol"); // "[gap] (library)" where several have one
    const box = { label, name: frame.full_name ?? frame.name, frame, key: frame.key, parent };
    const times = { self: answer.self_seconds[i], cut: answer.cut[i], value: answer.self_seconds[i] };
    const rest = { level: parent.level + 1, inferred: answer.inferred[i] === 1, children: [] };
    boxes.push(Object.assign(box, times, rest));
    parent.children.push(box);
  }
  for (let i = boxes.length - 1; i > 0; i--) boxes[i].parent.value += boxes[i].value;
  return root;
}

/** Trees of several answers below one box, in their order: [label, answer]. */
export function joined(label, parts) {
  const root = { label, key: keyOfName(label), level: 0, self: 0, cut: 0, inferred: false, value: 0 };
  root.children = parts.map(([name, answer]) => treeOf(answer, name, root));
  for (const child of root.children) root.value += child.value;
  return root;
}

/** All boxes below one, itself included, parents first. visit may return false: nothing below it. */
export function walk(root, visit) {
  const todo = [root];
  while (todo.length) {
    const box = todo.pop();
    if (visit(box) === false) continue;
    for (let i = box.children.length - 1; i >= 0; i--) todo.push(box.children[i]);
  }
}

/** The tree without what the reader leaves out, by keys of boxes. only: stacks that have all of them; ignore: no stack
 *  that has one of them; hide: no such box, its time is in the one above. */
export function refined(root, { only = [], ignore = [], hide = [] }) {
  if (!only.length && !ignore.length && !hide.length) return root;
  const copy = (box, parent) => {
    const fresh = { ...box, parent, level: parent ? parent.level + 1 : 0, self: 0, cut: 0, value: 0 };
    return Object.assign(fresh, { children: [], byKey: new Map() });
  };
  const top = copy(root);
  const all = [top];
  const todo = [[root, top, only]];
  while (todo.length) {
    const [box, into, missing] = todo.pop();
    if (!missing.length) {
      into.self += box.self;
      into.cut += box.cut;
      into.value += box.self;
    }
    for (const child of box.children) {
      if (ignore.includes(child.key)) continue;
      let target = into;
      if (!hide.includes(child.key)) {
        target = into.byKey.get(child.key);
        if (!target) {
          target = copy(child, into);
          into.byKey.set(child.key, target);
          all.push(target);
        }
        target.inferred &&= child.inferred;
      }
      todo.push([child, target, missing.filter((key) => key !== child.key)]);
    }
  }
  for (let i = all.length - 1; i > 0; i--) all[i].parent.value += all[i].value;
  for (const box of all)
    box.children = [...box.byKey.values()].filter((child) => child.value > 0).sort((a, b) => b.value - a.value);
  return top;
}

/** Boxes of the tree that stand for one: items are [box of the tree, time of it]. */
class Merged {
  constructor(parent, items, next, first) {
    const [{ label, name, frame, key }] = items[0] ?? first;
    Object.assign(this, { label, name, frame, key, parent, items, next, level: parent ? parent.level + 1 : 0 });
    this.value = items.reduce((sum, [, time]) => sum + time, 0);
    this.inferred = items.length > 0 && items.every(([box]) => box.inferred);
    this.cut = next === below ? items.reduce((sum, [box]) => sum + box.cut, 0) : 0;
  }

  get children() {
    if (!this.made) this.make();
    return this.made;
  }

  /** Time of the stacks that end here: in the function, or, upwards, begin with it. */
  get self() {
    if (!this.made) this.make();
    return this.ends;
  }

  make() {
    const groups = new Map();
    this.ends = this.value;
    for (const item of this.items)
      for (const [box, time] of this.next(item)) {
        const group = groups.get(box.key);
        if (group) group.push([box, time]);
        else groups.set(box.key, [[box, time]]);
        this.ends -= time;
      }
    if (this.ends < 1e-9 * this.value) this.ends = 0;
    this.made = [...groups.values()].map((items) => new Merged(this, items, this.next));
    this.made.sort((a, b) => b.value - a.value);
  }
}

const above = ([box, time]) => (box.parent?.frame ? [[box.parent, time]] : []);
const below = ([box]) => box.children.map((child) => [child, child.value]);

/** The functions in which stacks end, below each its callers. */
export function leaves(root) {
  const ends = [];
  walk(root, (box) => {
    if (box.frame && box.self > 0) ends.push([box, box.self]);
  });
  const top = new Merged(null, [], above, [root]);
  top.items = ends;
  top.next = (item) => [item];
  top.value = root.value;
  top.make();
  for (const child of top.made) child.next = above;
  top.ends = 0;
  return top;
}

/** The outermost boxes of a function: each stack that it is in is counted once. */
function outermost(root, key) {
  const found = [];
  walk(root, (box) => {
    if (box.key !== key || !box.frame) return true;
    found.push([box, box.value]);
    return false;
  });
  return found;
}

/** What is around a function: {callers, callees}, each with its box as root; null where no stack has it. */
export function around(root, key) {
  const found = outermost(root, key);
  if (!found.length) return null;
  return { callers: new Merged(null, found, above), callees: new Merged(null, found, below) };
}

/** Every function below a box: {key, label, name, frame, self, total}; total counts each stack once. */
export function functions(root) {
  const all = new Map();
  const path = new Map();
  const todo = [[root, true]];
  while (todo.length) {
    const [box, down] = todo.pop();
    const depth = path.get(box.key) ?? 0;
    if (!down) {
      path.set(box.key, depth - 1);
      continue;
    }
    if (box.frame) {
      let row = all.get(box.key);
      if (!row) {
        row = { key: box.key, label: box.label, name: box.name, frame: box.frame, self: 0, total: 0 };
        all.set(box.key, row);
      }
      row.self += box.self;
      if (depth === 0) row.total += box.value;
      path.set(box.key, depth + 1);
      todo.push([box, false]);
    }
    for (const child of box.children) todo.push([child, true]);
  }
  return [...all.values()];
}

/** The functions of the stacks that pass through a box of leaves(): its own, those between it and the leaf in which all
 *  of them end, and its callers. */
export function functionsAbove(box) {
  const way = [];
  for (let b = box; b.frame; b = b.parent) way.unshift(b);
  const rows = new Map(functions(box).map((row) => [row.key, { ...row, self: 0 }]));
  for (const { key, label, name, frame } of way) rows.set(key, { key, label, name, frame, self: 0, total: box.value });
  rows.get(way[0].key).self = box.value;
  return [...rows.values()];
}

/** Time below the topmost matches of each path, so that nothing is counted twice, and how many boxes match. */
export function matched(root, wanted) {
  let boxes = 0;
  let time = 0;
  const todo = [[root, false]];
  while (todo.length) {
    const [box, covered] = todo.pop();
    const hit = Boolean(box.frame) && wanted(box.name ?? box.label);
    if (hit) boxes += 1;
    if (hit && !covered) time += box.value;
    for (const child of box.children) todo.push([child, covered || hit]);
  }
  return { boxes, time };
}

/** The path from the root to a box, as the address has it, and back. What is not there ends the way. */
export function pathOf(box) {
  const keys = [];
  for (let b = box; b.parent; b = b.parent) keys.unshift(b.key);
  return keys.join("~");
}
export function boxAt(root, path) {
  let box = root;
  for (const key of path.split("~").filter(Boolean)) {
    const next = box.children.find((b) => b.key === key);
    if (!next) break;
    box = next;
  }
  return box;
}

export function rootOf(box) {
  let root = box;
  while (root.parent) root = root.parent;
  return root;
}
/** The time to the left of a box, in the picture of all. */
export function startOf(box) {
  let start = 0;
  for (let b = box; b.parent; b = b.parent)
    for (const child of b.parent.children) {
      if (child === b) break;
      start += child.value;
    }
  return start;
}

const Z = 1.959963984540054; // P(|Z| ≤ z) = 0.95

/** Wilson's score interval of a share of so many samples. The rule of report_measure_wilson(). */
export function wilson(p, samples) {
  const middle = p + (Z * Z) / (2 * samples);
  const half = Z * Math.sqrt((p * (1 - p)) / samples + (Z * Z) / (4 * samples * samples));
  const all = 1 + (Z * Z) / samples;
  return { low: p > 0 && middle > half ? (middle - half) / all : 0, high: p < 1 ? (middle + half) / all : 1 };
}

/** The 95 % interval of a time in these stacks, from their number, widened for ticks that come in bundles. answer:
 *  format=tree or a report. null: not known. */
export function interval(answer, value, whole) {
  const stacks = answer.stacks?.count / answer.stacks?.overdispersion;
  if (!(stacks > 0) || !(whole > 0) || answer.synthetic) return null;
  const { low, high } = wilson(Math.min(1, value / whole), stacks);
  return { low: low * whole, high: high * whole, stacks: Math.round((value / whole) * answer.stacks.count) };
}
