// What is asked: time range with a strip of load to brush over, labels, scope; and what it is called elsewhere.
import * as api from "./api.js";
import { copy, el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { another, fleet, FLEET, go, href, question, to, VIEWS } from "./state.js";
import { strip } from "./strip.js";

const PRESETS = [
  ["", "all time"],
  ["now-1h", "last hour"],
  ["now-6h", "6 hours"],
  ["now-1d", "day"],
  ["now-7d", "week"],
  ["now-30d", "30 days"],
];

export function range(state) {
  const since = el("input", { id: "since", value: state.since, placeholder: "beginning", size: 22 });
  const until = el("input", { id: "until", value: state.until, placeholder: "now", size: 22 });
  const preset = el(
    "select",
    { id: "preset", onchange: () => go({ since: preset.value, until: "" }) },
    PRESETS.map(([value, text]) => el("option", { value, selected: value === state.since && !state.until }, text)),
  );
  if (state.until || !PRESETS.some(([value]) => value === state.since))
    preset.append(el("option", { selected: true, disabled: true, value: "-" }, "chosen"));
  const apply = (event) => {
    event.preventDefault();
    go({ since: since.value.trim(), until: until.value.trim() });
  };
  return el(
    "form",
    { class: "bar", onsubmit: apply },
    el("label", { for: "preset" }, "Time"),
    preset,
    el("label", { for: "since" }, "from"),
    since,
    el("label", { for: "until" }, "to"),
    until,
    el("button", {}, "Apply"),
  );
}

export function labels(state, signal) {
  const names = el("datalist", { id: "label-names" });
  const field = el("input", { id: "match", placeholder: 'label="value", != =~ !~', list: "label-names", size: 24 });
  const apply = (event) => {
    event.preventDefault();
    const text = field.value.trim();
    const plain = /^([A-Za-z_]\w*)(=~|!~|!=|=)([^"]*)$/.exec(text);
    const match = plain ? `${plain[1]}${plain[2]}"${plain[3].replaceAll("\\", "\\\\")}"` : text;
    if (match && !state.match.includes(match)) go({ match: [...state.match, match], row: "", top: "" });
  };
  api.json(`api/v1/labels${state.build ? `?build_id=${encodeURIComponent(state.build)}` : ""}`, signal).then(
    (page) =>
      replace(
        names,
        page.rows.map((row) => el("option", { value: `${row.name}=` })),
      ),
    () => {},
  );
  const chips = state.match.map((m) =>
    el(
      "button",
      {
        type: "button",
        class: "chip",
        "aria-label": `Remove ${m}`,
        onclick: () => go({ match: state.match.filter((o) => o !== m) }),
      },
      `${m} ×`,
    ),
  );
  return el(
    "form",
    { class: "bar", onsubmit: apply },
    el("label", { for: "match" }, "Labels"),
    chips,
    field,
    names,
    el("button", {}, "Add"),
  );
}

function shape(state) {
  const scope = el(
    "select",
    { id: "scope", onchange: () => go({ scope: scope.value }) },
    [
      ["", "Automatic"],
      ["program", "the program, all its builds"],
      ["build", "this build in the program"],
      ["everywhere", "this build in every program"],
    ].map(([value, text]) => el("option", { value, selected: state.scope === value }, text)),
  );
  const box = el("input", {
    id: "static",
    type: "checkbox",
    checked: state.static === "1",
    onchange: () => go({ static: box.checked ? "1" : "" }),
  });
  return el(
    "p",
    { class: "bar" },
    el("label", { for: "scope" }, "Scope"),
    scope,
    box,
    el(
      "label",
      { for: "static", title: "also use calls found in the machine code but never executed when detecting cycles" },
      "static arcs",
    ),
  );
}

/** The same question for a terminal. */
function command(state) {
  const words = ["profctl", "report", state.build];
  if (state.since) words.push("--since", state.since);
  if (state.until) words.push("--until", state.until);
  if (state.scope) words.push("--scope", state.scope);
  if (state.static) words.push("--static");
  if (state.dimension) words.push("--dimension", state.dimension);
  for (const m of state.match) words.push("--match", m);
  return words.map(format.quote).join(" ");
}

function shares(state) {
  const url = (what) =>
    new URL(api.path(state.build, "/report", { ...question(state), ...what }), document.baseURI).href;
  return el(
    "p",
    { class: "bar shares" },
    el("button", { type: "button", onclick: () => copy(location.href, "Link") }, "Copy link"),
    el("button", { type: "button", onclick: () => copy(command(state), "Command") }, "Copy profctl command"),
    el(
      "button",
      {
        type: "button",
        onclick: () =>
          api.text(url({ format: "gprof", static: "", dimension: "" })).then(
            (text) => copy(text, "gprof listing"),
            (e) => say(e.message),
          ),
      },
      "Copy gprof text",
    ),
    el(
      "button",
      {
        type: "button",
        onclick: () =>
          api.text(url({ format: "json", limit: 0 })).then(
            (text) => copy(text, "JSON"),
            (e) => say(e.message),
          ),
      },
      "Copy JSON",
    ),
    el("a", { href: url({ format: "json", limit: 0 }), target: "_blank", rel: "noopener" }, "JSON"),
    ["text", "pprof", "callgrind", "speedscope", "csv", "dot"].map((f) =>
      el(
        "a",
        {
          href: url({ format: f, limit: f === "dot" ? undefined : 0 }),
          target: "_blank",
          rel: "noopener",
          download:
            f === "pprof" || f === "callgrind" || f === "csv" ? `profd-${state.build.slice(0, 12)}.${f}` : false,
        },
        f,
      ),
    ),
  );
}

export function tabs(nav, state) {
  const all = FLEET.map(([view, title]) =>
    el(
      "a",
      { href: href(state, fleet(view)), "aria-current": !state.build && view === state.view ? "page" : undefined },
      title,
    ),
  );
  const one = state.build
    ? VIEWS.map(([view, title], i) =>
        el(
          "a",
          {
            ...to(state, another(view)),
            "aria-current": view === state.view ? "page" : undefined,
            title: `key ${i + 1}`,
          },
          title,
        ),
      )
    : [];
  replace(nav, all, one.length ? el("span", { class: "of", "aria-hidden": "true" }, "›") : null, one);
}

/** Calls of much CPU time have no ticks: seconds divided by calls would be too small. */
export const lacksTicks = (report) => report.collector?.without_ticks_seconds > 0;

/** The share of ticks that found the collector. It is no share of the time: the processor executes functions while it counts. */
const overhead = (c, percent) =>
  c.overhead_below !== null
    ? `Overhead: below ${format.percent(Math.ceil(10000 * c.overhead_below) / 100)} of the CPU time: no tick was inside the collector. `
    : c.overhead > 0
      ? `Overhead: ${percent(c.overhead)} of the ticks were inside the collector, a rough estimate of the time spent counting. `
      : null;

/** How much of the CPU time is in known objects, and what the collectors lost: one phrase for each number that is not 0. */
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
  ];
  const reasons = [
    ["calls_lost", "calls lost for lack of memory"],
    ["calls_junk", "calls from addresses outside all code"],
    ["pairs_dropped", "sampled pairs left out: no memory, or dlclose()"],
    ["threads_untimed", "threads without timers"],
    ["modules_lost", "objects lost for lack of memory"],
    ["modules_without_build_id", "objects without a build-id"],
    ["processes_with_own_sigprof", "processes with their own SIGPROF handler"],
    ["processes_with_unseen_forks", "processes with a child that counted into their memory"],
    ["pauses", "pauses of counting"],
    ["overlaps", "pairs of objects that may be confused with each other"],
    ["ends_not_seen", "processes with an unobserved end"],
  ];
  const processes = format.many(c, "processes", "process", "processes");
  const unsampled = c.sampled_seconds === 0 && c.wall_seconds === 0;
  const shown = format.shownPercent(100 * c.coverage, ticks);
  const over = shown >= 100.005;
  const above = over ? [`above ${format.percent(100)}, because ticks are a sample of the time`] : [];
  const without =
    c.without_ticks_seconds > 0
      ? [
          `${format.seconds(c.without_ticks_seconds)} without ticks: ${c.without_ticks_reason} (so times of a call are not known)`,
        ]
      : [];
  const lost = [
    ...above,
    ...without,
    ...parts.filter(([k]) => c[k] > 0).map(([k, text]) => `${time(c[k])} ${text}`),
    ...reasons.filter(([k]) => c[k] > 0).map(([k, text]) => `${format.exact(c, k)} ${text}`),
  ];
  const share = unsampled
    ? ["unknown", `: no tick in ${format.seconds(c.cpu_seconds)} of CPU time in ${processes}, so no times are known`]
    : c.coverage === null
      ? [
          "unknown",
          `: ${time(c.attributed_seconds)} in known objects, ${format.seconds(c.cpu_seconds)} of CPU time in ${processes}`,
        ]
      : [
          percent(c.coverage),
          ` of the CPU time outside the collector is in known objects: ${shown >= 99.995 && !over ? "all" : time(c.attributed_seconds)} of ${format.seconds(c.cpu_seconds - c.collector_seconds)} in ${processes}`,
        ];
  return el(
    "p",
    { id: "coverage", class: c.coverage !== null && c.coverage < 0.9 ? "warning" : "" },
    overhead(c, percent),
    el("strong", {}, `Coverage ${share[0]}`),
    share[1],
    `${lost.length ? `; ${lost.join(", ")}` : ""}.${c.wider_than_report ? " For whole processes; the report is for one build." : ""}`,
  );
}

/** What else was sampled, a step away. */
function dimensions(report, state) {
  const others = report.totals.other_dimensions ?? [];
  if (!others.length) return null;
  return el(
    "p",
    { id: "dimensions" },
    `In ${report.totals.dimension}. Also sampled: `,
    others
      .map((o) => [
        el("a", to(state, { dimension: o.dimension, sort: "", dir: "" }), o.dimension),
        ` (${format.many(o, "ticks", "tick", "ticks")}) `,
      ])
      .flat(),
  );
}

const totalOf = (report) => {
  const { seconds, ticks, dimension } = report.totals;
  if (ticks === 0) return "No ticks";
  const few = report.totals.few_ticks
    ? ` in ${format.several(ticks, "tick", "ticks")} (so few that times and percentages are rough)`
    : "";
  if (dimension === "seconds") return `${format.seconds(seconds, ticks)} of CPU time${few}`;
  return dimension === "wall"
    ? `${format.seconds(seconds, ticks)}${few}, including waiting`
    : `${format.amounts(dimension)(seconds)} ${dimension}`;
};

/** Calls that are no counts say so. */
export const sampled = (report) => report.provenance.inexact_reasons.includes("sampled");
export const SAMPLED =
  "sampled, at least in part: where a program does not count its calls, they are the ticks that found the callee below its caller";

/** The vDSO, the kernel, generated code and deleted files have no file that could be sent. */
const isFile = (build) => build.name.startsWith("/") && !build.name.endsWith(" (deleted)");
const unnamed = (advice, builds) =>
  builds.length
    ? el(
        "p",
        { class: "warning" },
        `No symbols for ${builds.map((b) => format.base(b.name) || format.brief(b.build_id)).join(", ")}: ${advice}.`,
      )
    : null;

/* Ages on the page grow with it. */
setInterval(() => {
  for (const time of document.querySelectorAll("time.age")) time.textContent = format.ago(time.dateTime);
}, 1000);

/** Where the data comes from, and what is not exact about it. */
export function origin(report, state) {
  const p = report.provenance;
  const window = report.window;
  const exactPart =
    p.exact || p.calls_exact === p.ticks_exact ? "" : p.calls_exact ? " Calls are exact." : " Ticks are exact.";
  if (p.uploads === 0)
    return [
      el("p", { class: "warning" }, "Nothing matches: no stored upload has these labels in this time range."),
      dimensions(report, state),
    ];
  const labels =
    p.host_labels > 0 && p.host_labels !== p.hosts
      ? ` (${format.many(p, "host_labels", "value", "values")} of the label host)`
      : "";
  return [
    el(
      "p",
      {},
      `${totalOf(report)}, ${sampled(report) ? "~" : ""}${format.many(report.totals, "calls", "call", "calls")}, ${format.many(p, "processes_started", "process", "processes")} on ${format.many(p, "hosts", "machine", "machines")}${labels}, ${format.span(p.first, p.last)}.`,
    ),
    dimensions(report, state),
    p.exact
      ? null
      : el(
          "p",
          { class: "warning" },
          "Not exact: ",
          ...p.inexact_reasons.flatMap((reason, i) => [
            i ? ", " : "",
            el("abbr", { title: p.inexact_meanings[i] }, reason),
          ]),
          `.${exactPart}`,
        ),
    p.live
      ? el(
          "p",
          { id: "live" },
          "As of ",
          el("time", { class: "age", dateTime: p.as_of, title: format.moment(p.as_of) }, format.ago(p.as_of)),
          `: ${format.many(p, "live", "process was", "processes were")} still running.`,
        )
      : null,
    p.down_count
      ? el(
          "p",
          { class: "warning", id: "down" },
          `profd was not running for ${format.seconds(p.down_seconds)} of this time (${format.many(p, "down_count", "stop", "stops")}): processes that began and ended then are in no report.`,
        )
      : null,
    p.not_read
      ? el(
          "p",
          { class: "warning", id: "not-read" },
          `${format.many(p, "not_read", "process was", "processes were")} not read since ${format.moment(p.not_read_since)}: later counts are missing until the daemon reads them.`,
        )
      : null,
    sampled(report) ? el("p", { class: "warning", id: "sampled" }, `~ Calls are ${SAMPLED}.`) : null,
    coverage(report.collector, report.totals),
    unnamed(
      "profctl symbols FILE sends them",
      report.builds.filter((b) => !b.has_names && isFile(b)),
    ),
    unnamed(
      "they have no file that could be sent",
      report.builds.filter((b) => !b.has_names && !isFile(b)),
    ),
    window && (window.since !== report.since || window.until !== report.until)
      ? el(
          "p",
          { class: "hint" },
          `The data of this time is stored by the hour. This report covers ${format.moment(window.since) || "the beginning"} to ${format.moment(window.until) || "now"}.`,
        )
      : null,
  ];
}

export function draw(section, state, row, signal) {
  section.hidden = false;
  const load = el("div");
  const about = el("div", { id: "origin" });
  replace(
    section,
    el("h1", {}, format.base(row?.name) || "?", " ", el("code", { title: state.build }, format.brief(state.build))),
    load,
    el(
      "details",
      { open: innerWidth > 700 },
      el("summary", {}, "Filters"),
      el("div", { class: "row" }, range(state), labels(state, signal), shape(state)),
      shares(state),
    ),
    about,
  );
  strip(state, row, signal).then(
    (box) => replace(load, box),
    () => {},
  );
}
