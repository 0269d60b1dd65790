// The table of functions, and beside it one function between its callers and its callees.
import * as api from "./api.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { functionPane } from "./pane_function.js";
import { lacksTicks, SAMPLED, sampled } from "./origin.js";
import { go, question, to } from "./state.js";
import { filterField, Table } from "./table.js";

/** The flat report: columns, and how its functions are named in the address bar. */
export async function load(build, params, signal) {
  const report = await api.json(
    api.path(build, "/report", { view: "flat", limit: 0, names: "short", ...params }),
    signal,
  );
  const c = report.columns;
  const id = (i) => (c.build[i] === null ? "" : report.builds[c.build[i]].build_id);
  return { report, columns: c, count: c.index.length, id };
}

/** The share of the whole as a bar behind the number. */
const bar = (text, share, title) =>
  el(
    "span",
    { class: "share", title: title || undefined, style: { "--share": `${Math.max(0, Math.min(100, share))}%` } },
    text,
  );

function columnsOf(flat, now) {
  const c = flat.columns;
  const total = flat.report.totals.seconds || 1;
  const amount = format.amounts(flat.report.totals.dimension, flat.report.totals);
  const mark = sampled(flat.report) ? "~" : "";
  const timed = ["seconds", "wall"].includes(flat.report.totals.dimension);
  const unknown = mark
    ? "not known: calls are sampled"
    : timed && lacksTicks(flat.report)
      ? "not known: calls of much CPU time have no ticks"
      : "";
  const each = (times, i) =>
    !unknown && Number(c.calls[i]) > 0 && (times[i] > 0 || !timed) ? times[i] / Number(c.calls[i]) : Number.NaN; // no call takes no time
  const link = (i) => to(now(), { fn: c.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) });
  return [
    {
      key: "name",
      title: "Function",
      value: (i) => c.name[i],
      cell: (i) => [
        el("a", { ...link(i), tabIndex: -1, title: c.name[i] }, c.short_name[i] ?? c.name[i]),
        c.cycle[i]
          ? el("span", { class: "chip", title: `member of cycle ${c.cycle[i]}` }, `cycle ${c.cycle[i]}`)
          : null,
      ],
    },
    {
      key: "self",
      title: "Self",
      hint: "time in the function itself",
      numeric: true,
      value: (i) => c.self[i],
      cell: (i) =>
        bar(
          format.self(amount, c.self[i], c.self_least?.[i]),
          (100 * c.self[i]) / total,
          format.selfRange(amount, c.self_least?.[i], c.self_most?.[i]),
        ),
    },
    {
      key: "selfp",
      title: "Self %",
      numeric: true,
      value: (i) => c.self[i],
      cell: (i) => format.percent((100 * c.self[i]) / total),
    },
    {
      key: "total",
      title: "Total",
      hint: "self time and callees; for a member of a cycle, without the other members; a name in brackets does not pass the time of what it calls on to its callers",
      numeric: true,
      value: (i) => c.total[i],
      cell: (i) => bar(amount(c.total[i]), c.percent[i]),
    },
    {
      key: "percent",
      title: "Total %",
      numeric: true,
      value: (i) => c.percent[i],
      cell: (i) => format.percent(c.percent[i]),
    },
    {
      key: "calls",
      title: `${mark}Calls`,
      hint: mark ? SAMPLED : "calls from other functions + recursive calls",
      numeric: true,
      value: (i) => Number(c.calls[i]),
      cell: (i) =>
        mark && (Number(c.calls[i]) || Number(c.self_calls[i]))
          ? el("span", { title: SAMPLED }, mark + count(c, i))
          : count(c, i),
    },
    {
      key: "percall",
      title: "Self/call",
      hint: unknown,
      numeric: true,
      value: (i) => each(c.self, i),
      cell: (i) => amount(each(c.self, i), c.self[i]),
    },
    {
      key: "totalcall",
      title: "Total/call",
      hint: unknown,
      numeric: true,
      value: (i) => each(c.total, i),
      cell: (i) => amount(each(c.total, i), c.total[i]),
    },
    {
      key: "build",
      title: "In",
      value: (i) => format.base(flat.report.builds[c.build[i]]?.name ?? ""),
      cell: (i) => format.base(flat.report.builds[c.build[i]]?.name ?? "[outside]"),
    },
  ];
}

const count = (c, i) => format.count(c.calls[i]) + (Number(c.self_calls[i]) ? `+${format.count(c.self_calls[i])}` : "");

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

let last = { key: "" };

/** The table, and what is asked when it changes. Kept while only the function beside it is another. */
async function build(main, state, signal) {
  const flat = await load(state.build, question(state), signal);
  const kept = {
    state,
    flat,
    pane: el("section", { class: "pane", "aria-label": "Callers and callees", hidden: true, tabIndex: -1 }),
  };
  kept.table = new Table({
    label: "Functions",
    columns: columnsOf(flat, () => kept.state),
    count: flat.count,
    state,
    sort: "self",
    tall: true,
    open: (i) => go({ fn: flat.columns.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) }),
  });
  kept.apply = (text) => {
    const wanted = matcher(text);
    kept.table.filter(wanted ? (i) => wanted(flat.columns.name[i]) : undefined);
    let share = 0;
    for (const i of kept.table.rows) share += flat.columns.self[i];
    say(
      `${format.count(kept.table.rows.length)} of ${format.several(flat.count, "function", "functions")}, ${format.percent((100 * share) / (flat.report.totals.seconds || 1))} of self time`,
    );
  };
  kept.filter = filterField(() => kept.state, "Filter functions", "Filter (regex)", kept.apply);
  const hidden = flat.report.truncated;
  const whole = hidden
    ? el(
        "p",
        { class: "warning" },
        `Not shown: ${format.several(hidden.functions, "function", "functions")} with ${format.amounts(flat.report.totals.dimension, flat.report.totals)(hidden.seconds)}.`,
      )
    : null;
  const body = flat.count ? el("div", { class: "split" }, kept.table.node, kept.pane) : empty(flat.report, state);
  replace(
    main,
    el("div", { class: "bar" }, el("h2", {}, format.several(flat.count, "function", "functions")), kept.filter),
    whole,
    body,
  );
  kept.apply(state.q);
  return kept;
}

/** Why nothing is shown, and a way to where there is something. */
function empty(report, state) {
  const narrowed = state.since || state.until || state.match.length;
  return el(
    "p",
    { class: "empty" },
    narrowed
      ? "No upload of this build has these labels in this time range. "
      : "No function of this build was called or sampled. ",
    narrowed ? el("a", to(state, { since: "", until: "", match: [] }), "Remove all filters") : null,
  );
}

export async function draw(main, state, signal) {
  const key = JSON.stringify([state.build, question(state)]);
  const fresh = last.key !== key || !last.filter.isConnected;
  if (fresh) last = { key, ...(await build(main, state, signal)) };
  const { table, flat, pane } = last;
  last.state = state;
  table.state = state;
  if (!fresh && last.filter.value !== state.q) {
    last.filter.value = state.q;
    last.apply(state.q);
  }
  table.restore();
  if (state.fn && fresh && !state.row && !state.top) {
    const chosen = flat.columns.address.findIndex(
      (address, i) => address === state.fn && flat.id(i) === (state.of || state.build),
    );
    if (chosen >= 0) table.select(chosen);
  }
  if (state.fn) await functionPane(pane, state, flat, signal);
  else pane.hidden = true;
  return flat.report;
}
