// One function over time: self, total and calls of each step, as three rows of bars over one axis, and as a table.
import * as api from "./api.js";
import { choice, el, labelled, refocusLate, replace } from "./dom.js";
import * as format from "./format.js";
import { go, question, to } from "./state.js";
import { pictureTable, plain } from "./table.js";
import { axis, begin, charts, names, secondsOf, stamp, stepFor, versionsOf } from "./timeline.js";

const MOST = 96; // bars, unless the user chooses a step
const LIMIT = 1500; // steps that may be asked for

function chooser(step, span) {
  const all = names.filter((name) => name === step || span / secondsOf(name) <= LIMIT).map((name) => [name, name]);
  return labelled(
    "Steps of",
    choice({ id: "step" }, all, step, (value) => go({ step: value })),
  );
}

const totalOf = (r) => (r.time_shown === "measured" ? r.measured_total : undefined) ?? r.total_seconds;

function drawn(rows, versions, step, state, look) {
  const range = axis(step, [...rows.map(begin), ...rows.map((r) => begin(r) + r.width)]);
  const parts = [
    ["Self", (r) => r.self_seconds, look.amount],
    ["Total", totalOf, look.amount],
    [`${look.mark}Calls`, (r) => r.calls, (v) => look.mark + format.count(v)],
  ];
  const when = (r) => {
    const there = to(state, { since: stamp(begin(r)), until: stamp(begin(r) + r.width) });
    return el("a", { ...there, title: format.utc(r.time) }, format.moment(r.time));
  };
  const line = (r) => [
    when(r),
    look.amount(r.self_seconds),
    look.amount(totalOf(r)),
    look.mark + format.exact(r, "calls") + (r.self_calls ? ` + ${format.exact(r, "self_calls")}` : ""),
    r.calls > 0 ? look.amount(r.self_seconds / r.calls) : "",
    r.exact ? "yes" : r.inexact_reasons.join(", "),
  ];
  const columns = [["From"], ["Self", 1], ["Total", 1], [`${look.mark}Calls`, 1], ["Self/call", 1], ["Exact"]];
  const label = `The function in steps of ${step}`;
  return [
    charts({ id: "series-brush", label, range, rows, parts, versions, state, captions: true }),
    pictureTable(state, "series", `${format.several(rows.length, "step", "steps")} with uploads`, () =>
      plain("Over time", columns, rows.map(line)),
    ),
  ];
}

/** answer: that of the function itself; the series is fetched beside it and put in when it comes. */
export function seriesPart(state, f, answer, look, signal) {
  const times = [answer.provenance.first, answer.provenance.last].map((t) => Date.parse(t) / 1000);
  const span = Math.max(1, times[1] - times[0]);
  const step = names.includes(state.step) && span / secondsOf(state.step) <= LIMIT ? state.step : stepFor(span, MOST);
  const box = el("div", { id: "series" }, el("p", { role: "status" }, "Loading…"));
  const own = { ...question(state), build_id: state.of || undefined, step };
  const path = api.path(state.build, `/functions/${encodeURIComponent(f.address)}/series`, own);
  const versions = api
    .json(api.path(state.build, ""), signal)
    .then((row) => versionsOf(row.name, signal))
    .catch(() => []); // the charts go without marks
  Promise.all([api.json(path, signal), versions]).then(
    ([{ rows }, appeared]) => {
      const none = "No calls and no samples in this time range.";
      replace(box, rows.length ? drawn(rows, appeared, step, state, look) : el("p", none));
      refocusLate();
    },
    (error) => error.name !== "AbortError" && replace(box, el("p.warning", error.message)),
  );
  const about = { "aria-label": "Over time" };
  return el("section.over-time", about, el("h3", "Over time"), Number.isFinite(span) ? chooser(step, span) : null, box);
}
