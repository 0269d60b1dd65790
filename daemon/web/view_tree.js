// The call tree: stacks as rows that open, from the root down or from the leaves up.
import { splitChoice, timeChoice } from "./choices.js";
import { el, replace } from "./dom.js";
import * as format from "./format.js";
import { boxAt, leaves, matched, pathOf, walk } from "./stacks.js";
import { lookOf, noStacks, remarks, stacksChip, stacksOf } from "./stacks_ask.js";
import { another, functionAt, go, links, note, to } from "./state.js";
import { findField, matcher, NARROW, nextOf } from "./table.js";
import { TreeGrid } from "./tree_grid.js";
import { bar } from "./report_columns.js";

const RANGE = "95 % interval"; // of a total, a column
const MODES = [
  ["", "Root first"],
  ["leaves", "Leaves first"],
];
const HOT = 0.5; // of its parent: a box that is open from the beginning
const MOST = 20000; // boxes in which names are searched

/** Where the tree is open when the address does not say: along the path that has most of the time. */
function hottest(root) {
  let box = root;
  for (let next = root; next && next.value >= HOT * box.value; next = box.children[0]) {
    box = next;
    if (!box.children.length) break;
  }
  return box === root ? root.children[0] : box;
}

const functionOf = ({ frame }, state) => ({
  ...another("report"),
  ...functionAt(state, frame.address, frame.build_id),
});

function columnsOf(look, state) {
  const percent = (box) => (100 * box.value) / look.whole;
  const range = (box) => {
    const known = look.range(box.value);
    return known ? look.between(known) : "";
  };
  const notes = (box) => [
    box.inferred
      ? el(
          "span.chip",
          { title: "not seen on the stack, but named by the call instruction before the next frame" },
          "inferred",
        )
      : null,
    box.frame?.kernel ? el("span.chip", "kernel") : null,
  ];
  const name = (box) => [
    box.frame?.address
      ? el("a", { ...to(state, functionOf(box, state)), tabIndex: -1, title: box.name }, box.label)
      : el("span", { title: box.name ?? box.label }, box.label),
    notes(box),
  ];
  const all = [
    { title: "Function", cell: name },
    {
      title: "Total",
      numeric: true,
      width: 9,
      cell: (box) => bar(look.amount(box.value), percent(box)),
      hint: "time of all stacks with this path",
    },
    { title: "Total %", numeric: true, width: 5.9, cell: (box) => look.percent(box.value) },
    { title: RANGE, numeric: true, width: 9.5, cell: range, hint: "interval of the total, from the number of stacks" },
    {
      title: "Self",
      numeric: true,
      width: 6,
      cell: (box) => (box.self > 0 ? look.amount(box.self) : ""),
      hint: "time of the stacks that end in it",
    },
    {
      title: "Level",
      numeric: true,
      width: 4.6,
      hint: "number of calls from the root",
      cell: (box) => String(box.level),
    },
  ];
  const without = [look.measured ? "" : RANGE, state.mode === "leaves" ? "Self" : ""];
  if (innerWidth >= NARROW) return all.filter((c) => !without.includes(c.title));
  return [all[0], { ...all[1], width: 5, cell: (box) => look.amount(box.value) }, all[2]];
}

const modeChoice = (state) =>
  links("Order of the stacks", MODES, state.mode, state, (mode) => {
    const split = mode ? "" : state.split;
    return { mode, zoom: "", split };
  });

/** The field that marks rows, and goes from one to the next: it opens the way to it. */
function search(state, grid, root, top, look) {
  const sum = el("output.hint", { for: "filter" });
  let hits = [];
  let shown;
  const apply = (text) => {
    const wanted = matcher(text);
    hits = [];
    shown = undefined;
    let seen = 0;
    if (wanted)
      walk(top, (box) => {
        if (box.frame && wanted(box.name ?? box.label)) hits.push(box);
        return ++seen < MOST;
      });
    grid.search(wanted);
    if (!wanted) return void replace(sum);
    const { boxes, time } = matched(root, wanted);
    const share = look.percent(time);
    replace(sum, `${format.several(boxes, "box", "boxes")}: ${look.amount(time)}, ${share} of the time`);
  };
  const next = (step) => {
    shown = nextOf(hits, shown, step);
    if (!shown) return;
    grid.reveal(shown);
    grid.moved(shown);
  };
  return { field: findField(state, "Find functions", apply, next), sum, apply };
}

export async function draw(main, state, signal) {
  const found = await stacksOf(state, signal);
  const { root, answer } = found;
  const look = lookOf(answer, root);
  const split = state.mode === "" ? splitChoice(state, { zoom: "" }) : null;
  const chip = stacksChip(answer, look.amount);
  const choices = [modeChoice(state), split, timeChoice(answer, { zoom: "" })];
  const title = el("h2.unseen", "Call tree");
  if (!(root.value > 0)) {
    replace(main, el("div.bar", title, choices), noStacks(state));
    return;
  }
  const top = state.mode === "leaves" ? leaves(root) : root;
  const slim = innerWidth < NARROW;
  const named = state.zoom ? boxAt(top, state.zoom) : top;
  const grid = new TreeGrid({
    label: "Call tree",
    root: top,
    columns: columnsOf(look, state),
    at: named === top ? hottest(top) : named,
    narrow: slim,
    moved: (box) => note(state, { zoom: pathOf(box) }),
    open: (box) => box.frame?.address && go(functionOf(box, state)),
  });
  const { field, sum, apply } = search(state, grid, root, top, look);
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  const tools = [button("Open all", () => grid.openAll(top)), button("Close all", () => grid.closeAll())];
  replace(
    main,
    el("div.bar.stacks", title, field, slim ? choices : [chip, choices, tools], sum),
    remarks(found, state),
    grid.node,
    slim ? el("p.bar", chip, tools) : null,
    el("p.hint", "→ opens a row, ← closes it, * opens all below it, Enter shows the function."),
  );
  grid.move(named === top ? 0 : grid.active, false);
  if (state.q) apply(state.q);
}
