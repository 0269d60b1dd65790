// Asks for the stacks of a build, whole or one tree for each value of a label, and says how they came about.
import * as api from "./api.js";
import { treeUrl } from "./asks.js";
import { matchOf, splitChoice, timeChoice, unfiltered, valuesOf } from "./choices.js";
import { el, replace } from "./dom.js";
import * as format from "./format.js";
import { menu } from "./menu.js";
import { interval, joined, matched, treeOf } from "./stacks.js";
import { links } from "./state.js";

const BRIEF = 100; // ticks of a share with two digits
const VALUES = 12; // of a label: a tree for each

/** {root, answer, others}: the tree, what is said of all its stacks, and how many values of the label are left out. */
async function stacksOf(state, signal) {
  if (!state.split) {
    const answer = await api.json(treeUrl(state), signal);
    const root = treeOf(answer, answer.synthetic ? "total (synthetic stacks)" : "total");
    return { root, answer, others: 0 };
  }
  const { values, others } = await valuesOf(state, VALUES, signal);
  const ask = (value) => api.json(treeUrl(state, matchOf(state, value)), signal);
  const answers = await Promise.all(values.map(ask));
  const titleOf = (value) => (value ? `${state.split}=${value}` : `${state.split} not set`);
  const parts = answers.map((answer, i) => [titleOf(values[i]), answer]);
  return { root: joined("total", parts), answer: together(parts), others };
}

/** What the answers of several values, [title, answer], say together. */
function together(parts) {
  const answers = parts.map(([, answer]) => answer);
  const sum = (of) => answers.reduce((total, answer) => total + of(answer), 0);
  const measured = answers.filter((a) => a.stacks);
  const stacks = {
    count: sum((a) => a.stacks?.count ?? 0),
    coverage: format.least(measured.map((a) => a.stacks.coverage)),
  };
  stacks.overdispersion = format.largest(measured.map((a) => a.stacks.overdispersion));
  return {
    dimension: answers[0]?.dimension ?? "seconds",
    time: answers[0]?.time,
    synthetic: answers.some((a) => a.synthetic),
    seconds: sum((a) => a.seconds),
    ticks: sum((a) => a.ticks),
    left_out: { nodes: sum((a) => a.left_out.nodes), seconds: sum((a) => a.left_out.seconds) },
    undivided: parts.flatMap(([title, a]) => (a.undivided ?? []).map((c) => ({ ...c, part: `${title}: ` }))),
    not_followed: sum((a) => a.not_followed ?? 0),
    ...(measured.length ? { stacks } : {}),
  };
}

/** How times of these stacks read: amounts, shares, brief ones with two digits, and intervals {low, high, stacks} or
 *  null. */
function lookOf(answer, root) {
  const amount = format.amounts(answer.dimension, answer);
  return {
    amount,
    range: (value) => interval(answer, value, root.value),
    between: (known) => amount.between(known.low, known.high),
    percent: (value) => format.share((100 * value) / (root.value || 1), answer.ticks),
    brief: (value) => {
      const percent = (100 * value) / (root.value || 1);
      return format.percent(percent, Math.min(BRIEF, (percent * answer.ticks) / 100));
    },
    share: (value, of) => format.share((100 * value) / (of || 1), answer.ticks * (of / (root.value || 1))),
    whole: root.value || 1,
    measured: Boolean(answer.stacks) && !answer.synthetic,
  };
}

/** How many boxes match, and the time below them. */
export function matchedText(root, wanted, look) {
  const { boxes, time } = matched(root, wanted);
  return `${format.several(boxes, "box", "boxes")}: ${look.amount(time)}, ${look.percent(time)} of the time`;
}

/** Tells which values of the label are not in the picture. */
export function remarks({ others }, state) {
  const text = `Only the ${VALUES} largest values of ${state.split} are shown; ${format.count(others)} are not.`;
  return others ? el("p.warning", text) : null;
}

const SYNTHETIC = [
  "These stacks were not observed. They are derived by dividing times by call counts, as in gprof; whole paths may " +
    "never have occurred.",
  "A cycle is one box that contains the self times of its members, because the stacks inside it are not known.",
  "A name in brackets, such as [outside], is no function: stacks begin or end in it.",
];
const MEASURED =
  "Each stack was found by a tick. The width of a box is the time of all ticks that found it. Intervals are those of " +
  "the number of stacks.";

/** Why a cycle does not stand below its callers. */
function undivided(c, amount) {
  const others = format.several(c.callers_not_named, "other", "others");
  const callers = c.callers.join(", ") + (c.callers_not_named ? ` and ${others}` : "");
  const where = c.below === null ? "at the root" : `below ${c.below}, which every call to it passes`;
  return (
    `${c.part ?? ""}Cycle ${c.cycle} (${amount(c.total_seconds)}) is called by ${callers}. ` +
    `Call counts cannot tell how its time divides among them, so it is placed ${where}.`
  );
}

/** What is not in the measured stacks, or not known of them. */
function facts(answer, amount) {
  const { nodes, seconds } = answer.left_out;
  const { coverage, inferred = 0, cut = 0, folded = 0, incomplete = 0, count } = answer.stacks;
  const stacks = (n) => format.several(n, "stack", "stacks");
  return [
    MEASURED,
    `${stacks(count)}, ${format.percent(100 * coverage)} of the ticks.`,
    nodes > 0 ? `${format.several(nodes, "box", "boxes")} with ${amount(seconds)} are left out.` : "",
    inferred > 0
      ? `In ${stacks(inferred)} a call instruction names a function that frame pointers skip (dashed boxes).`
      : "",
    incomplete > 0 ? `Of ${stacks(incomplete)} the outer callers are not known: they begin with [incomplete].` : "",
    cut > 0 ? `${stacks(cut)} lost outer callers, because no call stands before a return address.` : "",
    folded > 0 ? `${stacks(folded)} lost inner functions, because there was no space.` : "",
  ].filter(Boolean);
}

/** Why there is no stack, and a way to where there are some. */
function noStacks(state) {
  const all = unfiltered(state);
  return el("p.empty", all ? ["No sample has these labels in this time range. ", all] : "This build has no samples.");
}

/** A chip that says how the stacks came about. */
function stacksChip(answer, amount) {
  if (!answer.synthetic) {
    const text = facts(answer, amount).map((sentence) => el("p", sentence));
    return menu("synthetic", "How these stacks were made", el("span.chip", "Measured stacks"), text);
  }
  const { undivided: cycles = [], not_followed: lost = 0 } = answer;
  const label = el("span.chip.warning", "By calls: synthetic stacks");
  const text = [...SYNTHETIC, ...cycles.map((c) => undivided(c, amount))];
  if (lost > 0) text.push(`${amount(lost)} are below paths that were not followed.`);
  return menu(
    "synthetic",
    "How these stacks were made",
    label,
    text.map((sentence) => el("p", sentence)),
  );
}

export const ORDERS = [
  ["", "Root first"],
  ["leaves", "Leaves first"],
];

/** What a view of stacks begins with: what stacksOf() gives, look, and its title, choices and chip; where there are no
 *  stacks, null, and the page says why. orders: [mode, text]. */
export async function begin(main, state, signal, name, orders = ORDERS) {
  const found = await stacksOf(state, signal);
  const { root, answer } = found;
  const look = lookOf(answer, root);
  const afresh = { zoom: "", at: "" };
  const changes = (mode) => ({ mode, split: mode ? "" : state.split, ...afresh });
  const split = state.mode ? null : splitChoice(state, afresh);
  const order = links("Order of the stacks", orders, state.mode, state, changes);
  const title = el("h2.unseen", name);
  const choices = [order, split, timeChoice(answer, afresh)];
  if (root.value > 0) return { ...found, look, title, choices, chip: stacksChip(answer, look.amount) };
  replace(main, el("div.bar", title, choices), noStacks(state));
  return null;
}
