// Two builds, or two windows of one, side by side: calls, cost per call and total, with their differences. Joined by name.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { lacksTicks, sampled, SAMPLED } from "./origin.js";
import { another, go, question, to } from "./state.js";
import { filterField, Table } from "./table.js";
import { menu } from "./menu.js";
import { load, matcher } from "./view_report.js";

/** Functions of one name on one side are one row: builds differ in addresses. */
function gather(flat, rows, side) {
  const c = flat.columns;
  for (let i = 0; i < flat.count; i++) {
    const row =
      rows.get(c.name[i]) ??
      rows.set(c.name[i], { name: c.name[i], short: c.short_name[i] ?? c.name[i], a: null, b: null }).get(c.name[i]);
    const sum = (row[side] ??= { self: 0, total: 0, calls: 0, address: c.address[i], id: flat.id(i) });
    sum.self += c.self[i];
    sum.total += c.total[i];
    sum.calls += Number(c.calls[i]) + Number(c.self_calls[i]);
  }
}

const none = { self: 0, total: 0, calls: 0 };
const per = (side) => (side.calls > 0 ? side.self / side.calls : Number.NaN);

/** Where A's side of a row is shown with callers and callees. */
const there = (row) => ({ ...another("report"), fn: row.a.address, of: row.a.id });

/** b - a, but 0 where only the rounding of the scale differs. */
const difference = (b, a) => (Math.abs(b - a) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b)) ? 0 : b - a);

/** A difference shows its sign by a symbol, not by colour alone. */
function delta(text, value, bad = 1) {
  const kind = !value ? "same" : value * bad > 0 ? "more" : "less";
  return el("span", { class: `delta ${kind}` }, value > 0 ? `▲ ${text}` : value < 0 ? `▼ ${text}` : "=");
}

function columnsOf(rows, scale, amount, mark, state, timed) {
  const a = (i) => rows[i].a ?? none;
  const b = (i) => rows[i].b ?? none;
  const change = (i) => difference(b(i).self * scale, a(i).self);
  const whole = (i) => difference(b(i).total * scale, a(i).total);
  const hint = mark ? SAMPLED : undefined;
  const ratio = (i) =>
    timed && per(a(i)) > 0 && per(b(i)) > 0 ? (100 * (per(b(i)) - per(a(i)))) / per(a(i)) : Number.NaN;
  return [
    {
      key: "name",
      title: "Function",
      value: (i) => rows[i].name,
      cell: (i) => [
        rows[i].a
          ? el("a", { ...to(state, there(rows[i])), tabIndex: -1, title: rows[i].name }, rows[i].short)
          : el("span", { title: rows[i].name }, rows[i].short),
        rows[i].a ? null : el("span", { class: "chip" }, "only B"),
        rows[i].b ? null : el("span", { class: "chip" }, "only A"),
      ],
    },
    {
      key: "delta",
      width: 7.4,
      title: "Δ self",
      hint: "B − A, after scaling",
      numeric: true,
      value: (i) => Math.abs(change(i)),
      cell: (i) => delta(amount(Math.abs(change(i))), change(i)),
    },
    { key: "aself", title: "Self A", numeric: true, value: (i) => a(i).self, cell: (i) => amount(a(i).self) },
    {
      key: "bself",
      title: "Self B",
      numeric: true,
      value: (i) => b(i).self,
      cell: (i) => amount(b(i).self * scale, b(i).self),
    },
    { key: "atotal", title: "Total A", numeric: true, value: (i) => a(i).total, cell: (i) => amount(a(i).total) },
    {
      key: "btotal",
      title: "Total B",
      numeric: true,
      value: (i) => b(i).total,
      cell: (i) => amount(b(i).total * scale, b(i).total),
    },
    {
      key: "dtotal",
      width: 7.4,
      title: "Δ total",
      hint: "B − A, after scaling, including callees",
      numeric: true,
      value: (i) => Math.abs(whole(i)),
      cell: (i) => delta(amount(Math.abs(whole(i))), whole(i)),
    },
    {
      key: "acalls",
      title: `${mark}Calls A`,
      width: 8.6,
      hint,
      numeric: true,
      value: (i) => a(i).calls,
      cell: (i) => format.count(a(i).calls),
    },
    {
      key: "bcalls",
      title: `${mark}Calls B`,
      width: 8.6,
      hint,
      numeric: true,
      value: (i) => b(i).calls,
      cell: (i) => format.count(b(i).calls),
    },
    {
      key: "dcalls",
      title: "Δ calls",
      width: 10.5,
      numeric: true,
      value: (i) => Math.abs(b(i).calls - a(i).calls),
      cell: (i) => delta(format.count(Math.abs(b(i).calls - a(i).calls)), b(i).calls - a(i).calls),
    },
    {
      key: "cost",
      title: "Δ self/call",
      width: 7.8,
      hint: "change of self time per call",
      numeric: true,
      value: (i) => (Number.isNaN(ratio(i)) ? -1 : Math.abs(ratio(i))),
      cell: (i) => (Number.isNaN(ratio(i)) ? "" : delta(format.percent(Math.abs(ratio(i))), ratio(i))),
    },
  ];
}

/** What to compare with: another build, or the same in another window. */
async function chooser(state, signal) {
  const { rows } = await api.rows("api/v1/builds?limit=1000", 2000, signal);
  const here = rows.find((r) => r.build_id === state.build);
  const base = format.base(here?.name);
  const relatives = rows.filter((r) => format.base(r.name) === base);
  const others = rows.filter((r) => format.base(r.name) !== base);
  const option = (r) =>
    el(
      "option",
      { value: r.build_id, selected: r.build_id === (state.against || state.build) },
      `${format.base(r.name)} ${format.brief(r.build_id)}, ${format.ago(r.last_seen)}`,
    );
  const build = el(
    "select",
    { id: "against" },
    el("optgroup", { label: `Builds of ${base}` }, relatives.map(option)),
    others.length ? el("optgroup", { label: "Others" }, others.map(option)) : null,
  );
  const since = el("input", { id: "bsince", value: state.bsince, placeholder: "since, e.g. now-2d" });
  const until = el("input", { id: "buntil", value: state.buntil, placeholder: "until, e.g. now-1d" });
  const apply = (event) => {
    event.preventDefault();
    go({ against: build.value, bsince: since.value.trim(), buntil: until.value.trim(), row: "", top: "" });
  };
  return el(
    "form",
    { class: "bar", onsubmit: apply },
    el("label", { for: "against" }, "B: "),
    build,
    el("label", { for: "bsince" }, "from "),
    since,
    el("label", { for: "buntil" }, "to "),
    until,
    el("button", {}, "Compare"),
  );
}

const SCALED = "both sides have the same CPU time. Calls are not scaled.";

/** What one side of the comparison added up. */
function side(name, report) {
  const { totals, provenance } = report;
  const parts = [
    `${format.base(report.build_name)} ${format.brief(report.build_id)}`,
    format.amounts(totals.dimension, totals)(totals.seconds),
    format.many(totals, "calls", "call", "calls"),
    format.many(provenance, "processes_started", "process", "processes"),
  ];
  return el("p", {}, el("strong", {}, `${name}: `), parts.join(", "));
}

const missing = (alone) =>
  `${format.several(alone("b"), "function is", "functions are")} only in A, ${format.count(alone("a"))} only in B.`;

export async function draw(main, state, signal) {
  const form = await chooser(state, signal);
  if (!state.against) {
    replace(
      main,
      el("h2", {}, "Compare"),
      el("p", {}, "A is the build and time range above. Choose B: another build, or this build in another time range."),
      form,
    );
    return;
  }
  const [a, b] = await Promise.all([
    load(state.build, question(state), signal),
    load(state.against, { ...question(state), since: state.bsince, until: state.buntil }, signal),
  ]);
  const joined = new Map();
  gather(a, joined, "a");
  gather(b, joined, "b");
  const rows = [...joined.values()];
  const normal = state.scale === "1";
  const scale = normal && b.report.totals.seconds > 0 ? a.report.totals.seconds / b.report.totals.seconds : 1;
  const mark = sampled(a.report) || sampled(b.report) ? "~" : "";
  const open = (i) => rows[i].a && go(there(rows[i]));
  const table = new Table({
    label: "Differences",
    columns: columnsOf(
      rows,
      scale,
      format.amounts(a.report.totals.dimension, a.report.totals),
      mark,
      state,
      !mark && !lacksTicks(a.report) && !lacksTicks(b.report),
    ),
    count: rows.length,
    state,
    sort: "delta",
    tall: true,
    open,
  });
  const apply = (text) => {
    const wanted = matcher(text);
    table.filter(wanted ? (i) => wanted(rows[i].name) : undefined);
    say(`${format.count(table.rows.length)} of ${format.several(rows.length, "function", "functions")}`);
  };
  const filter = filterField(
    () => state,
    "Filter functions",
    "Filter (regex)",
    apply,
    () => table,
  );
  const alone = (side) => rows.filter((r) => r[side] === null).length;
  const both = [
    side("A", a.report),
    side("B", b.report),
    normal ? el("p", {}, `Times of B are multiplied by ${scale.toPrecision(4)}, so that ${SCALED}`) : null,
    alone("a") + alone("b") > 0 ? el("p", {}, `Functions are matched by name. ${missing(alone)}`) : null,
    el(
      "p",
      {},
      el("a", to(state, { scale: normal ? "" : "1" }), normal ? "Show unscaled times" : "Scale B to A's CPU time"),
    ),
  ];
  const other = `B: ${format.base(b.report.build_name)} ${b.report.build_id.slice(0, 8)}`;
  replace(
    main,
    el(
      "div",
      { class: "bar" },
      el("h2", {}, "Compare"),
      filter,
      menu("other", "What A is compared with", other, form),
      menu("sides", "What is compared", "A and B", both),
    ),
    table.node,
  );
  apply(state.q);
  table.restore();
  return a.report;
}
