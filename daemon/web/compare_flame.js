// Two flame graphs as one. The width of a box is the mean of its shares on both sides; its sign, colour and edge say
// which has more.
import { answerOf, judge, legend, reports } from "./compare_judge.js";
import { button, el, replace } from "./dom.js";
import { Flame, POINT } from "./flame_draw.js";
import * as format from "./format.js";
import { saving } from "./picture.js";
import { boxAt, keyOfName, pathOf, walk } from "./stacks.js";
import { step } from "./state.js";
import { finder, NARROW, pictureTable, plain } from "./table.js";

const SAME = 0.0005; // a difference of shares that is shown as none
const STRONG = 0.1; // a difference of shares that has the full colour

/** Difference of two shares in percentage points, with its sign. */
export function points(d) {
  if (Math.abs(d) < SAME) return "±0";
  const n = Math.abs(100 * d);
  return `${d > 0 ? "+" : "−"}${n >= 9.95 ? n.toFixed(0) : n.toFixed(1)}`;
}
export const kindOf = (d) => (Math.abs(d) < SAME ? "same" : d > 0 ? "more" : "less");
export const signOf = (d) => (Math.abs(d) < SAME ? "=" : d > 0 ? "▲" : "▼");
/** How strong the colour of a difference is, in percent. */
export const strength = (d) => (Math.abs(d) < SAME ? 0 : Math.round(20 + 80 * Math.min(1, Math.abs(d) / STRONG)));

/** Adds the boxes of a side to those of both. Boxes of one path and name are one. */
function gather(answer, root, side) {
  const at = [root];
  answer.frame.forEach((f, i) => {
    const frame = answer.frames[f];
    const parent = at[answer.parent[i] + 1];
    const name = frame.full_name ?? frame.name;
    let box = parent.byName.get(name);
    if (!box) {
      const path = { key: keyOfName(name), parent, level: parent.level + 1 };
      box = { label: frame.name, name, frame, ...path, byName: new Map(), a: 0, b: 0 };
      parent.byName.set(name, box);
    }
    at.push(box);
    const total = answer.self_seconds[i] / (answer.whole || 1);
    for (let b = box; b; b = b.parent) b[side] += total;
  });
}

/** Both trees as one: all boxes, the root first. */
function boxesOf(a, b) {
  for (const answer of [a, b]) answer.whole = answer.self_seconds.reduce((sum, s) => sum + s, 0);
  const root = { label: "total", name: "total", key: "", level: 0, byName: new Map(), a: 0, b: 0 };
  gather(a, root, "a");
  gather(b, root, "b");
  const boxes = [];
  const order = (box) => {
    box.value = (box.a + box.b) / 2;
    box.children = [...box.byName.values()].sort((x, y) => y.a + y.b - x.a - x.b);
    boxes.push(box);
  };
  walk(root, order);
  return boxes;
}

const text = (b) =>
  `${b.name}: ${format.percent(100 * b.a, 200)} of A, ${format.percent(100 * b.b, 200)} of B, ` +
  `${points(b.b - b.a)} points`;

/** More: a line on top. Less: one at the bottom. So that boxes without a text do not depend on colour. */
function paint(box) {
  const d = box.b - box.a;
  const same = kindOf(d) === "same";
  const kind = box.certain ? kindOf(d) : "same";
  const sign = same ? "=" : `${box.certain ? signOf(d) : "≈"} ${points(d)}`;
  return { kind, sign, style: `--strong:${strength(d)}%`, edge: box.certain && !same ? Number(d < 0) : undefined };
}

const COLOURED = "A colour says that the share of the function has changed; single boxes are not tested.";

export async function show(main, bars, diff, state, signal) {
  const [a, b] = await reports(state, { format: "tree" }, signal);
  const boxes = boxesOf(a, b);
  if (!(a.whole > 0 && b.whole > 0)) {
    const none = `${a.whole > 0 ? "B" : "A"} has no samples, so stacks cannot be compared.`;
    replace(main, el("div.compare.bar", bars), el("p.empty", none));
    return;
  }
  const verdicts = judge(diff);
  for (const box of boxes) box.certain = ["more", "less"].includes(verdicts.of(box.name)?.kind);
  const detail = el("p.hint.detail", { "aria-live": "polite" }, POINT);
  const flame = new Flame({
    top: boxAt(boxes[0], state.zoom),
    at: state.at,
    label: "Differences of stacks",
    text: (box) => [text(box)],
    paint,
    told: (box) => replace(detail, text(box)),
    zoomed: (box, at) => {
      const zoom = pathOf(box);
      if (zoom !== state.zoom || at !== state.at) step(state, { zoom, at });
    },
  });
  flame.view.classList.add("differences");
  const { field, apply } = finder(state, (wanted) => {
    flame.mark(wanted);
    return wanted ? boxes.filter((b) => wanted(b.name)) : [];
  });
  const reset = button("Reset zoom", () => flame.reset());
  const save = saving("profd-differences", () => [flame.view]);
  const which = a.synthetic ? (b.synthetic ? "" : " of A") : " of B";
  const made = a.synthetic || b.synthetic ? ` The stacks${which} are derived from call counts.` : "";
  const largest = [...boxes].sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a)).slice(0, 200);
  const line = (x) => [
    String(x.level),
    x.label,
    format.percent(100 * x.a, 200),
    format.percent(100 * x.b, 200),
    `${x.certain ? signOf(x.b - x.a) : "≈"} ${points(x.b - x.a)}`,
  ];
  const hint = `A box is as wide as the mean of both sides.${made} ${COLOURED}`;
  const signs = legend(diff, verdicts, boxes.map((b) => b.name));
  const columns = [["Depth", 1], ["Function"], ["A", 1], ["B", 1], ["Points", 1]];
  replace(
    main,
    el("div.compare.bar", bars, field, innerWidth < NARROW ? null : [reset, save]),
    answerOf(diff, verdicts),
    innerWidth < NARROW ? [flame.node, signs] : [signs, flame.node],
    detail,
    pictureTable(state, "boxes", `the ${largest.length} largest differences`, () =>
      plain("Boxes by difference", columns, largest.map(line)),
    ),
    el("p.hint", hint),
  );
  flame.draw();
  if (state.q) apply(state.q);
}
