// One function over time: self, total and calls of each step, as three rows of bars over one axis, and as a table.
import * as api from "./api.js";
import { el, replace, svg } from "./dom.js";
import * as format from "./format.js";
import { go, question, to } from "./state.js";
import { pictureTable, plain } from "./table.js";
import { axis, bars, begin, names, secondsOf, stepFor } from "./timeline.js";

const HEIGHT = 36;
const MOST = 96; // bars, unless the user chooses a step
const LIMIT = 1500; // steps that may be asked for
const stamp = (seconds) => new Date(seconds * 1000).toISOString().replace(".000", "");

function chooser(state, step, span) {
  const select = el(
    "select",
    { id: "step", onchange: () => go({ step: select.value }) },
    names
      .filter((name) => name === step || span / secondsOf(name) <= LIMIT)
      .map((name) => el("option", { value: name, selected: name === step }, name)),
  );
  return el("p", { class: "bar" }, el("label", { for: "step" }, "Steps of"), select);
}

function chart(range, rows, [title, value, text]) {
  const most = format.largest(rows.map(value), 0);
  const about = `${title} in ${format.many({ n: rows.length }, "n", "step", "steps")}, at most ${text(most)} in one`;
  return el(
    "figure",
    { class: "series" },
    el("figcaption", {}, title, el("span", { class: "hint" }, ` at most ${text(most)}`)),
    svg(
      "svg",
      { viewBox: `0 0 ${range.bars} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": about },
      bars(range, rows, HEIGHT, value, (r) => `${format.moment(r.time)}: ${text(value(r))}`),
    ),
  );
}

const totalOf = (r) => (r.time_shown === "measured" ? r.measured_total : undefined) ?? r.total_seconds;

function drawn(rows, step, state, look) {
  const range = axis(step, [...rows.map(begin), ...rows.map((r) => begin(r) + r.width)]);
  const number = (v) => look.mark + format.count(v);
  const parts = [
    ["Self", (r) => r.self_seconds, look.amount],
    ["Total", totalOf, look.amount],
    [`${look.mark}Calls`, (r) => r.calls, number],
  ];
  const when = (r) =>
    el(
      "a",
      { ...to(state, { since: stamp(begin(r)), until: stamp(begin(r) + r.width) }), title: format.utc(r.time) },
      format.moment(r.time),
    );
  const line = (r) => [
    when(r),
    look.amount(r.self_seconds),
    look.amount(totalOf(r)),
    look.mark + format.exact(r, "calls") + (r.self_calls ? ` + ${format.exact(r, "self_calls")}` : ""),
    r.calls > 0 ? look.amount(r.self_seconds / r.calls) : "",
    r.exact ? "yes" : r.inexact_reasons.join(", "),
  ];
  return [
    parts.map((part) => chart(range, rows, part)),
    el(
      "p",
      { class: "axis hint" },
      el("span", {}, format.moment(stamp(range.from))),
      el("span", {}, format.moment(stamp(range.from + range.bars * range.width))),
    ),
    pictureTable(state, "series", `${format.many({ n: rows.length }, "n", "step", "steps")} with uploads`, () =>
      plain(
        "Over time",
        [["From"], ["Self", 1], ["Total", 1], [`${look.mark}Calls`, 1], ["Self/call", 1], ["Exact"]],
        rows.map(line),
      ),
    ),
  ];
}

/** answer: that of the function itself; the series is fetched beside it and put in when it comes. */
export function seriesPart(state, f, answer, look, signal) {
  const times = [answer.provenance.first, answer.provenance.last].map((t) => Date.parse(t) / 1000);
  const span = Math.max(1, times[1] - times[0]);
  const step = names.includes(state.step) && span / secondsOf(state.step) <= LIMIT ? state.step : stepFor(span, MOST);
  const box = el("div", { id: "series" }, el("p", { role: "status" }, "Loading…"));
  const path = api.path(state.build, `/functions/${encodeURIComponent(f.address)}/series`, {
    ...question(state),
    build_id: state.of || undefined,
    step,
  });
  api.json(path, signal).then(
    (page) =>
      replace(
        box,
        page.rows.length
          ? drawn(page.rows, step, state, look)
          : el("p", {}, "No calls and no samples in this time range."),
      ),
    (error) => error.name !== "AbortError" && replace(box, el("p", { class: "warning" }, error.message)),
  );
  return el(
    "section",
    { class: "over-time", "aria-label": "Over time" },
    el("h3", {}, "Over time"),
    Number.isFinite(span) ? chooser(state, step, span) : null,
    box,
  );
}
