// Where the data of a report comes from, and what is not exact about it: a sentence, and a chip that explains itself.
import { choice, el, facts, replace } from "./dom.js";
import * as format from "./format.js";
import { menu } from "./menu.js";
import { go } from "./state.js";
import { NARROW } from "./table.js";

/** Calls of much CPU time have no ticks: seconds divided by calls would be too small. */
export const lacksTicks = (report) => report.collector?.without_ticks_seconds > 0;

/** The share of ticks that found the collector. It is no share of the time: the processor executes functions while it
 *  counts. */
const overhead = (c, percent) =>
  c.overhead_below !== null
    ? `Overhead: below ${format.percent(Math.ceil(10000 * c.overhead_below) / 100)} of the CPU time: ` +
      "no tick was inside the collector. "
    : c.overhead > 0
      ? `Overhead: ${percent(c.overhead)} of the ticks were inside the collector, ` +
        "a rough estimate of the time spent counting. "
      : null;

/** How much of the CPU time is in known objects, and what the collectors lost: one phrase for each number that is not
 *  0. */
function coverage(c, totals) {
  if (!c) return null;
  const rate = totals.seconds > 0 ? totals.ticks / totals.seconds : 0;
  const ticks = totals.ticks + c.collector_seconds * rate;
  const time = (seconds) => format.seconds(seconds, seconds * rate);
  const percent = (share) => format.percent(100 * share, ticks);
  const parts = [
    ["collector_seconds", "inside the collector"],
    ["blocked_seconds", "late, because the signal was blocked"],
    ["dropped_seconds", "lost for lack of memory"],
    ["outside_seconds", "outside every known object"],
    ["unclocked_seconds", "of processes that ended before their CPU time was read"],
    ["undelivered_seconds", "of ticks that had not come when their threads ended"],
  ];
  const reasons = [
    ["calls_lost", "calls lost for lack of memory"],
    ["calls_junk", "calls from addresses outside all code"],
    ["pairs_dropped", "ticks without their whole stack: no memory, or dlclose()"],
    ["threads_untimed", "threads without timers"],
    ["modules_lost", "objects lost for lack of memory"],
    ["modules_without_build_id", "objects without a build-id"],
    ["processes_with_own_sigprof", "processes with their own SIGPROF handler"],
    ["processes_with_unseen_forks", "processes with a child that counted into their memory"],
    ["pauses", "pauses of counting"],
    ["overlaps", "pairs of objects that may be confused with each other"],
    ["ends_not_seen", "processes with an unobserved end"],
    ["samples_lost", "samples lost by the kernel meanwhile, of this or any other program"],
    ["processes_without_kernel_time", "processes whose time in the kernel was not sampled"],
    ["programs_not_counted", "programs that were not counted, started by processes of profctl run"],
  ];
  const processes = format.many(c, "processes", "process", "processes");
  const recorded = c.processes_recorded > 0 && c.processes_recorded >= c.processes;
  const unsampled = c.sampled_seconds === 0;
  const shown = format.shownPercent(100 * c.coverage, ticks);
  const without =
    c.without_ticks_seconds > 0
      ? [
          `${format.seconds(c.without_ticks_seconds)} without ticks: ${c.without_ticks_reason} ` +
            "(so times of a call are not known)",
        ]
      : [];
  const lost = [
    ...without,
    ...parts.filter(([k]) => c[k] > 0).map(([k, text]) => `${time(c[k])} ${text}`),
    ...reasons.filter(([k]) => c[k] > 0).map(([k, text]) => `${format.exact(c, k)} ${text}`),
  ];
  const share = unsampled
    ? ["unknown", `: no tick in ${format.seconds(c.cpu_seconds)} of CPU time in ${processes}, so no times are known`]
    : c.coverage === null
      ? [
          "unknown",
          `: ${time(c.attributed_seconds)} in known objects, ` +
            `${format.seconds(c.cpu_seconds)} of CPU time in ${processes}`,
        ]
      : [
          percent(c.coverage),
          ` of the CPU time${recorded ? "" : " outside the collector"} is in known objects: ` +
            (shown >= 99.995 ? "all" : time(c.attributed_seconds - c.unclocked_seconds)) +
            ` of ${format.seconds(c.cpu_seconds - c.collector_seconds)} in ${processes}`,
        ];
  return el(
    "p",
    { id: "coverage", class: c.coverage !== null && c.coverage < 0.9 ? "warning" : "" },
    overhead(c, percent),
    el("strong", `Coverage ${share[0]}`),
    share[1],
    `${lost.length ? `; ${lost.join(", ")}` : ""}.` +
      (c.wider_than_report ? " For whole processes; the report is for one build." : ""),
  );
}

/** The dimension that is shown, and what else was sampled. */
function dimensions(report) {
  const { dimension, ticks, other_dimensions: others = [] } = report.totals;
  if (!others.length) return null;
  const text = (o) => `${o.dimension}, ${format.many(o, "ticks", "tick", "ticks")}`;
  const all = [{ dimension, ticks }, ...others].map((o) => [o.dimension, text(o)]);
  const change = (value) => go({ dimension: value, sort: "", dir: "" });
  return choice({ id: "dimension", "aria-label": "Dimension" }, all, dimension, change);
}

const ROUGH = { brief: "rough", full: "so few that times and percentages are rough" };

const totalOf = (report) => {
  const { seconds, ticks, dimension } = report.totals;
  if (ticks === 0) return "No ticks";
  const few = report.totals.few_ticks
    ? ` in ${format.several(ticks, "tick", "ticks")} (${innerWidth < NARROW ? ROUGH.brief : ROUGH.full})`
    : "";
  if (dimension === "seconds") return `${format.seconds(seconds, ticks)} of CPU time${few}`;
  return dimension === "wall"
    ? `${format.seconds(seconds, ticks)}${few}, including waiting`
    : `${format.amounts(dimension)(seconds)} ${dimension}`;
};

/** Calls that are no counts say so. */
export const sampled = (report) => report.provenance.inexact_reasons.includes("sampled");
export const SAMPLED =
  "sampled, at least in part: where a program does not count its calls, the number is that of ticks that found the " +
  "callee called by its caller";

/** The vDSO, the kernel, generated code and deleted files have no file that could be sent. */
const isFile = (build) => build.name.startsWith("/") && !build.name.endsWith(" (deleted)");
const unnamed = (advice, builds) =>
  builds.length
    ? el(
        "p.warning",
        `No symbols for ${builds.map((b) => format.base(b.name) || format.brief(b.build_id)).join(", ")}: ${advice}.`,
      )
    : null;

/* Ages on the page grow with it. */
setInterval(() => {
  for (const time of document.querySelectorAll("time.age")) time.textContent = format.ago(time.dateTime);
}, 1000);

const warning = (...parts) => el("p.warning", parts);

/** Each reason with its meaning. p: provenance. */
function inexact(p) {
  if (p.exact) return el("p", "Exact: no call and no tick was lost on the way.");
  const whole = p.calls_exact === p.ticks_exact ? "" : p.calls_exact ? " Calls are exact." : " Ticks are exact.";
  const line = (reason, i) => [reason, p.inexact_meanings?.[i] ?? ""];
  return [el("p", `Not exact, for these reasons.${whole}`), facts(p.inexact_reasons.map(line))];
}

function gaps(p) {
  const stops = () => format.many(p, "down_count", "stop", "stops");
  const processes = () => format.many(p, "not_read", "process was", "processes were");
  const down = () =>
    `profd was not running for ${format.seconds(p.down_seconds)} of this time (${stops()}): processes that began and ` +
    "ended then are in no report.";
  const unread = () =>
    `${processes()} not read since ${format.moment(p.not_read_since)}: later counts are missing until the daemon ` +
    "reads them.";
  return [
    p.down_count ? el("p.warning", { id: "down" }, down()) : null,
    p.not_read ? el("p.warning", { id: "not-read" }, unread()) : null,
  ];
}

/** What was asked, where it is not what the stored sums could answer. */
function widened({ window, since, until }) {
  if (!window || (window.since === since && window.until === until)) return null;
  const range = `${format.moment(window.since) || "the beginning"} to ${format.moment(window.until) || "now"}`;
  return el("p.hint", `The data of this time is stored by the hour. This report covers ${range}.`);
}

/** All that is known of how true the numbers are. */
export function truth(report) {
  const p = report.provenance;
  if (p.uploads === 0) return [warning("Nothing matches: no stored upload has these labels in this time range.")];
  const nameless = report.builds.filter((b) => !b.has_names);
  return [
    inexact(p),
    gaps(p),
    sampled(report) && report.totals.calls > 0 ? el("p.warning", { id: "sampled" }, `~ Calls are ${SAMPLED}.`) : null,
    coverage(report.collector, report.totals),
    unnamed("profctl symbols FILE sends them", nameless.filter(isFile)),
    unnamed("they have no file that could be sent", nameless.filter((b) => !isFile(b))),
    widened(report),
  ];
}

/** Nothing was lost, but calls are no counts. */
const onlySampled = (p) => p.inexact_reasons.length === 1 && p.inexact_reasons[0] === "sampled";

/** What a chip says of a provenance: the worst first. */
function words(p, collector) {
  if (p.uploads === 0) return "∅ No data";
  const low = collector?.coverage !== null && collector?.coverage < 0.9;
  return [
    p.exact ? "✓ Exact" : onlySampled(p) ? "≈ Sampled" : "≈ Not exact",
    low ? `coverage ${format.percent(Math.floor(100 * collector.coverage), 1)}` : "",
    p.down_count || p.not_read ? "gaps" : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The chip that explains how true the numbers are. content: of its panel. */
export function truthChip(p, collector, content) {
  const [sign, ...rest] = words(p, collector).split(" ");
  const label = el(
    "span",
    { class: p.exact || onlySampled(p) ? "chip" : "chip warning" },
    sign,
    el("span", ` ${rest.join(" ")}`),
  );
  return menu("truth", "How exact these numbers are", label, content);
}

/** When the uploads were: short, by the reader's clock; the title has both ends in full. */
function when(p) {
  const text = [...new Set([format.clock(p.first), format.clock(p.last)])].join(" – ");
  return el("span", { title: format.span(p.first, p.last) }, text);
}

/** The sentence on what was added up. */
export function headline(report) {
  const p = report.provenance;
  if (p.uploads === 0) return el("p", "Nothing matches.");
  const values = p.host_labels > 0 && p.host_labels !== p.hosts;
  const labels = values ? format.many(p, "host_labels", "value of the label host", "values of the label host") : null;
  const none = report.totals.calls === 0 ? "calls were not counted" : "not all calls were counted";
  const calls = sampled(report) ? none : format.many(report.totals, "calls", "call", "calls");
  const processes = format.many(p, "processes_started", "process", "processes");
  const machines = el("span", { title: labels }, format.many(p, "hosts", "machine", "machines"));
  const on = p.hosts > 0 ? [" on ", machines] : null;
  return el("p", `${totalOf(report)}, ${calls}, ${processes}`, on, p.first ? [", ", when(p)] : null);
}

function live(p) {
  if (!p.live) return null;
  const age = el("time.age", { dateTime: p.as_of, title: format.both(p.as_of) }, format.ago(p.as_of));
  const processes = format.many(p, "live", "process was", "processes were");
  return el("p", { id: "live" }, "As of ", age, `: ${processes} still running.`);
}

/** Fills the places that the toolbar keeps for a report. */
export function originPut(report) {
  const p = report.provenance;
  const put = (id, ...content) => replace(document.getElementById(id), ...content);
  put("dimensions", dimensions(report));
  put("origin", truthChip(p, report.collector, truth(report)));
  put("headline", headline(report), live(p));
}
