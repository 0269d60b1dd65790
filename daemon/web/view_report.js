// The table of functions, and beside it one function between its callers and its callees.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { functionPane } from "./pane_function.js";
import { go, href, note, question } from "./state.js";
import { filterField, Table } from "./table.js";

/** The flat report: columns, and how its functions are named in the address bar. */
export async function load(build, params, signal) {
  const report = await api.json(api.path(build, "/report", { view: "flat", limit: 0, ...params }), signal);
  const c = report.columns;
  const id = (i) => (c.build[i] === null ? "" : report.builds[c.build[i]].build_id);
  return { report, columns: c, count: c.index.length, id };
}

/** The share of the whole as a bar behind the number. */
const bar = (text, share) => el("span", { class: "share", style: { "--share": `${Math.max(0, Math.min(100, share))}%` } }, text);

function columnsOf(flat, state) {
  const c = flat.columns;
  const total = flat.report.totals.seconds || 1;
  const link = (i) => href(state, { fn: c.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) });
  return [
    {
      key: "name",
      title: "Function",
      value: (i) => c.name[i],
      cell: (i) => [
        el("a", { href: link(i), tabIndex: -1, title: c.name[i] }, c.name[i]),
        c.cycle[i] ? el("span", { class: "chip", title: `member of cycle ${c.cycle[i]}` }, `cycle ${c.cycle[i]}`) : null,
      ],
    },
    { key: "self", title: "Self", hint: "time in the function itself", numeric: true, value: (i) => c.self[i], cell: (i) => bar(format.seconds(c.self[i]), (100 * c.self[i]) / total) },
    { key: "selfp", title: "Self %", numeric: true, value: (i) => c.self[i], cell: (i) => format.percent((100 * c.self[i]) / total) },
    { key: "total", title: "Total", hint: "with what it called; a member of a cycle has its own part only", numeric: true, value: (i) => c.total[i], cell: (i) => bar(format.seconds(c.total[i]), c.percent[i]) },
    { key: "percent", title: "Total %", numeric: true, value: (i) => c.percent[i], cell: (i) => format.percent(c.percent[i]) },
    { key: "calls", title: "Calls", hint: "from other functions, and + direct recursion", numeric: true, value: (i) => Number(c.calls[i]), cell: (i) => count(c, i) },
    { key: "percall", title: "Self/call", numeric: true, value: (i) => perCall(c.self[i], c, i), cell: (i) => format.seconds(perCall(c.self[i], c, i)) },
    { key: "totalcall", title: "Total/call", numeric: true, value: (i) => perCall(c.total[i], c, i), cell: (i) => format.seconds(perCall(c.total[i], c, i)) },
    { key: "build", title: "In", value: (i) => format.base(flat.report.builds[c.build[i]]?.name ?? ""), cell: (i) => format.base(flat.report.builds[c.build[i]]?.name ?? "[outside]") },
  ];
}

const count = (c, i) => format.count(c.calls[i]) + (Number(c.self_calls[i]) ? `+${format.count(c.self_calls[i])}` : "");
const perCall = (time, c, i) => (Number(c.calls[i]) > 0 ? time / Number(c.calls[i]) : Number.NaN);

/** A pattern, or a plain text where it is none. */
export function matcher(text) {
  if (!text) return undefined;
  try {
    const pattern = new RegExp(text, "i");
    return (name) => pattern.test(name);
  } catch {
    const plain = text.toLowerCase();
    return (name) => name.toLowerCase().includes(plain);
  }
}

export async function draw(main, state, signal) {
  const flat = await load(state.build, question(state), signal);
  const pane = el("section", { class: "pane", "aria-label": "Callers and callees", hidden: true });
  const table = new Table({
    label: "Functions",
    columns: columnsOf(flat, state),
    count: flat.count,
    sort: state.sort || "self",
    dir: state.dir,
    tall: true,
    open: (i) => go(state, { fn: flat.columns.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) }),
    sorted: (sort, dir) => note(state, Object.assign(state, { sort, dir })),
  });
  const apply = (text) => {
    const wanted = matcher(text);
    table.filter(wanted ? (i) => wanted(flat.columns.name[i]) : undefined);
    let share = 0;
    for (const i of table.rows) share += flat.columns.self[i];
    say(`${format.count(table.rows.length)} of ${format.count(flat.count)} functions, ${format.percent((100 * share) / (flat.report.totals.seconds || 1))} of self time`);
  };
  const filter = filterField(state, "Filter functions", "function, a pattern", apply);
  const whole = flat.report.truncated ? el("p", { class: "warning" }, `Not shown: ${format.count(flat.report.truncated.functions)} functions with ${format.seconds(flat.report.truncated.seconds)}.`) : null;
  replace(main, el("div", { class: "bar" }, el("h2", {}, `${format.count(flat.count)} functions`), filter), whole, el("div", { class: "split" }, table.node, pane));
  apply(state.q);
  const chosen = flat.columns.address.findIndex((address, i) => address === state.fn && flat.id(i) === (state.of || state.build));
  if (chosen >= 0) table.select(chosen);
  if (state.fn) await functionPane(pane, state, flat, signal);
  return flat.report;
}
