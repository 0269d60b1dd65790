// The load of a build over time.
import * as api from "./api.js";
import { el } from "./dom.js";
import * as format from "./format.js";
import { pictureTable, plain } from "./table.js";
import { axis, begin, charts, secondsOf, stepFor, versionsOf } from "./timeline.js";

const MOST = 200; // bars

/** The picture and its table; neither if there is no load. row: of the build. */
export async function strip(state, row, signal) {
  const now = Date.now() / 1000;
  const first = Math.min(Date.parse(row.first_seen) / 1000, now - 3600);
  if (!Number.isFinite(first)) return [null, null];
  const step = stepFor(now - first, MOST);
  const { match, scope, dimension: asked } = state;
  const url = api.path(state.build, "/groups", { step, match, scope, dimension: asked, limit: "1000" });
  const [page, versions] = await Promise.all([api.rows(url, 2000, signal), versionsOf(row.name, signal)]);
  const rows = page.rows.filter((r) => r.time);
  if (!rows.some((r) => r.seconds > 0)) return [null, null];
  const { dimension } = page.first;
  const amount = format.amounts(dimension);
  const what = ["seconds", undefined].includes(dimension) ? "CPU time" : dimension;
  const ends = rows.map((r) => begin(r) + (r.width ?? secondsOf(step)));
  const range = axis(step, [first, now, ...rows.map(begin), ...ends]);
  const parts = [[what, (r) => r.seconds, amount]];
  const line = (r) => [
    el("span", { title: format.utc(r.time) }, format.moment(r.time)),
    amount(r.seconds),
    format.exact(r, "calls"),
    format.exact(r, "processes_started"),
  ];
  const columns = [["From"], [what, 1], ["Calls", 1], ["Processes", 1]];
  const table = () => plain("Load over time", columns, rows.map(line));
  const summary = `load in ${format.several(rows.length, "step", "steps")}`;
  return [
    charts({ id: "brush", label: `Load in steps of ${step}`, range, rows, parts, versions, state }),
    pictureTable(state, "load", summary, table),
  ];
}
