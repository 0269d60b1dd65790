// The code of one function by address: where ticks fell, and what each call site called. Sources are with the reader.
import * as api from "./api.js";
import { copy, el, replace } from "./dom.js";
import * as format from "./format.js";
import { another, question, to } from "./state.js";
import { Table } from "./table.js";
import { bar, load, NARROW } from "./view_report.js";

const OFFERED = 12; // functions to choose from
const FEW = ["ticks", "callee"]; // columns where there is little space
const WIDE = 18; // rem of the callee
const SLIM = 9.8; // where there is little space

/** Ticks and calls by ascending address, as one list. */
function rowsOf(answer) {
  const start = BigInt(answer.function.address);
  const offset = (address) => `+0x${(BigInt(address) - start).toString(16)}`;
  const ticks = answer.rows.map((r) => ({ ...r, at: Number(BigInt(r.address) - start), offset: offset(r.address) }));
  const calls = answer.calls.map((c) => ({
    ...c,
    call: true,
    at: Number(BigInt(c.address) - start),
    offset: offset(c.address),
  }));
  return [...ticks, ...calls].sort((a, b) => a.at - b.at || Boolean(a.call) - Boolean(b.call));
}

/** The callee as a link to its row in the table. */
function calleeCell(name, state) {
  if (!name) return "→ outside";
  const q = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const link = { ...to(state, { ...another("report"), fn: "", of: "", q }), tabIndex: -1, title: name };
  return el("span", { class: "callee" }, "→ ", el("a", link, format.shortName(name)));
}

function columns(rows, answer, state) {
  const { seconds } = answer.function.self_seconds > 0 ? { seconds: answer.function.self_seconds } : { seconds: 1 };
  const amount = format.amounts(answer.dimension, answer);
  const share = (r) => (100 * (r.seconds ?? 0)) / seconds;
  const place = (r) =>
    `${r.address}${r.bytes > 1 ? `, ${r.bytes} bytes` : ""}${r.shared ? ", shared with another function" : ""}`;
  return [
    {
      key: "name",
      title: "Address",
      width: innerWidth < NARROW ? 6.8 : undefined,
      value: (i) => String(rows[i].at).padStart(12, "0"),
      cell: (i) => [
        el("code", { title: place(rows[i]) }, rows[i].offset),
        rows[i].shared
          ? el("span", { class: "chip", title: "These bytes belong in part to another function" }, "shared")
          : null,
      ],
    },
    {
      key: "ticks",
      title: "Self",
      hint: "time of the ticks that fell on these bytes, and its part of the function",
      width: 9.2,
      bars: true,
      numeric: true,
      value: (i) => rows[i].seconds ?? -1,
      cell: (i) => (rows[i].call ? "" : bar(amount(rows[i].seconds), share(rows[i]))),
    },
    {
      key: "count",
      title: "Ticks",
      numeric: true,
      value: (i) => rows[i].ticks ?? -1,
      cell: (i) => (rows[i].call ? "" : format.exact(rows[i], "ticks")),
    },
    {
      key: "calls",
      title: "Calls",
      hint: "counted at this call site",
      width: 8,
      numeric: true,
      value: (i) => rows[i].calls ?? -1,
      cell: (i) => (rows[i].call ? format.exact(rows[i], "calls") : ""),
    },
    {
      key: "callee",
      title: "Calls what",
      width: innerWidth < NARROW ? SLIM : WIDE,
      value: (i) => rows[i].callee ?? "",
      cell: (i) => (rows[i].call ? calleeCell(rows[i].callee, state) : ""),
    },
  ];
}

/** The same with source lines, which only the reader has. */
function command(state, f) {
  const words = ["profctl", "annotate", state.build, f.name];
  if (state.since) words.push("--since", state.since);
  if (state.until) words.push("--until", state.until);
  for (const m of state.match) words.push("--match", m);
  return words.map(format.quote).join(" ");
}

/** Without a function: the ones with the most time. */
async function choose(main, state, signal) {
  const flat = await load(state.build, { ...question(state), limit: OFFERED, sort: "self" }, signal);
  const c = flat.columns;
  const link = (i) => to(state, { fn: c.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) });
  const offers = c.name.map((name, i) => el("li", {}, el("a", { ...link(i), title: name }, c.short_name[i] ?? name)));
  const title = el("div", { class: "bar compare" }, el("h2", {}, "Code of which function?"));
  const about = el("p", { class: "hint" }, "The functions with the most time in their own code:");
  replace(main, title, about, el("ul", { class: "offers" }, offers));
}

export async function draw(main, state, signal) {
  if (!state.fn) return choose(main, state, signal);
  const { since, until, match, scope, dimension } = question(state);
  const params = { since, until, match, scope, dimension, build_id: state.of };
  const answer = await api.json(
    api.path(state.build, `/functions/${encodeURIComponent(state.fn)}/addresses`, params),
    signal,
  );
  const f = answer.function;
  const rows = rowsOf(answer);
  const shell = command(state, f);
  const lines = el(
    "button",
    { type: "button", title: shell, onclick: () => copy(shell, "Command") },
    "Copy command for source lines",
  );
  const report = el("a", to(state, another("report")), "Callers and callees");
  const bar2 = el(
    "div",
    { class: "bar compare" },
    el("h2", { class: "function", title: f.name }, format.shortName(f.name)),
    report,
    lines,
  );
  const hottest = answer.rows.reduce((a, b) => (b.seconds > (a?.seconds ?? 0) ? b : a), null);
  const amount = format.amounts(answer.dimension, answer);
  const most = hottest
    ? `Most time is at ${rows.find((r) => r.address === hottest.address && !r.call).offset}: ${amount(hottest.seconds)} of ${amount(f.self_seconds)}. `
    : "No tick fell into this function. ";
  const sites = answer.call_sites ? "" : "A gmon.out is among the uploads: its call sites are rounded. ";
  const said = el(
    "p",
    { class: "answer" },
    el("strong", {}, most),
    sites,
    `${format.count(f.bytes)} bytes of ${format.base(f.object)}.`,
  );
  if (rows.length === 0) {
    replace(main, bar2, said);
    return undefined;
  }
  const table = new Table({
    label: "Addresses",
    columns: columns(rows, answer, state),
    count: rows.length,
    state,
    sort: "name",
    tall: true,
  });
  replace(main, bar2, said, table.node);
  if (innerWidth < NARROW) table.show(FEW, true);
  table.filter();
  table.restore();
  return undefined;
}
