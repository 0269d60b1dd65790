// The call tree: stacks as rows that open, from the root down or from the leaves up.
import { button, el, replace } from "./dom.js";
import * as format from "./format.js";
import { boxAt, leaves, pathOf, walk } from "./stacks.js";
import { begin, matchedText, remarks } from "./stacks_ask.js";
import { another, functionAt, go, note, to } from "./state.js";
import { BESIDE, finder, NARROW } from "./table.js";
import { TreeGrid } from "./tree_grid.js";
import { bar } from "./report_columns.js";

const HOT = 0.1; // of all time: a box that is open from the beginning
const OPEN = 40; // rows that are open then at most
const MOST = 20000; // boxes in which names are searched

/** The boxes that are open when the address does not say: those with most of the time. */
function hot(root) {
  const all = [];
  const open = [root];
  for (let rows = 0; open.length && rows < OPEN; ) {
    const box = open.reduce((a, b) => (b.value > a.value ? b : a));
    open.splice(open.indexOf(box), 1);
    rows += box.children.length;
    if (rows <= OPEN || box.children.length === 1 || box === root) all.push(box);
    for (const child of box.children) if (child.value >= HOT * root.value) open.push(child);
  }
  return all;
}

const functionOf = ({ frame }, state) => ({
  ...another("report"),
  ...functionAt(state, frame.address, frame.build_id),
});

function columnsOf(look, state) {
  const slim = innerWidth < NARROW;
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
  const letters = slim ? [19, 0.7] : innerWidth < BESIDE ? [46, 1.8] : [78, 1.8]; // of a name, and less for each level
  const label = (box) => format.clip(box.label, Math.max(12, Math.floor(letters[0] - letters[1] * box.level)));
  const name = (box) => [
    box.frame?.address
      ? el("a", { ...to(state, functionOf(box, state)), tabIndex: -1, title: box.name }, label(box))
      : el("span", { title: box.name ?? box.label }, label(box)),
    notes(box),
  ];
  const part = (box) => (box.parent.frame ? look.share(box.value, box.parent.value) : "");
  const own = (box) => (box.self > 0 ? look.amount(box.self) : "");
  const number = (title, width, cell, hint) => ({ title, numeric: true, width, cell, hint });
  const total = (box) => (slim ? look.amount(box.value) : bar(look.amount(box.value), percent(box)));
  const caller = state.mode === "leaves" ? "Of callee" : "Of caller";
  const where = { title: "In", width: 9, cell: (box) => box.frame?.module ?? "", hint: "program or library" };
  return [
    { title: "Function", cell: name },
    number("Total", slim ? 5 : 9, total, "time of all stacks with this path"),
    number("Total %", 5.9, (box) => look.percent(box.value)),
    ...(slim ? [] : [number(caller, 6.4, part, "part of the time of the row above that it is below")]),
    ...(slim || !look.measured ? [] : [number("95 % interval", 9.5, range, "of the total, from the number of stacks")]),
    ...(slim || state.mode === "leaves" ? [] : [number("Self", 6, own, "time of the stacks that end in it")]),
    ...(innerWidth < BESIDE ? [] : [where]),
  ];
}

export async function draw(main, state, signal) {
  const found = await begin(main, state, signal, "Call tree");
  if (!found) return;
  const { root, look, title, choices, chip } = found;
  const top = state.mode === "leaves" ? leaves(root) : root;
  const slim = innerWidth < NARROW;
  const named = state.zoom ? boxAt(top, state.zoom) : top;
  const grid = new TreeGrid({
    label: "Call tree",
    root: top,
    columns: columnsOf(look, state),
    at: named === top ? top.children[0] : named,
    opened: named === top ? hot(top) : [],
    moved: (box) => note(state, { zoom: pathOf(box) }),
    open: (box) => box.frame?.address && go(functionOf(box, state)),
  });
  const sum = el("output.hint", { for: "filter" });
  const hits = (wanted) => {
    const all = [];
    let seen = 0;
    if (wanted)
      walk(top, (box) => {
        if (box.frame && wanted(box.name ?? box.label)) all.push(box);
        return ++seen < MOST;
      });
    grid.search(wanted);
    replace(sum, wanted ? matchedText(root, wanted, look) : "");
    return all;
  };
  const { field, apply } = finder(state, hits, (box) => {
    grid.reveal(box);
    grid.moved(box);
  });
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
