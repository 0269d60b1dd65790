// What is asked: time range with a strip of load to brush over, labels, scope; and what it is called elsewhere.
import * as api from "./api.js";
import { copy, el, replace, svg } from "./dom.js";
import * as format from "./format.js";
import { another, go, href, question, VIEWS } from "./state.js";

const PRESETS = [["", "all time"], ["now-1h", "last hour"], ["now-6h", "6 hours"], ["now-1d", "day"], ["now-7d", "week"], ["now-30d", "30 days"]];

/** The load over time as bars; a drag over it chooses a range, and the fields beside it say the same for keyboards. */
async function strip(state, signal) {
  const box = el("div", { class: "strip" });
  let page;
  try {
    page = await api.json(api.path(state.build, "/groups", { step: "1h", match: state.match, since: "now-7d", limit: "1000" }), signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return box;
  }
  const HOURS = 168;
  const sums = new Array(HOURS).fill(0);
  const now = Math.ceil(Date.now() / 3600e3);
  for (const row of page.rows) {
    const hour = HOURS - (now - Math.floor(new Date(row.time).getTime() / 3600e3));
    if (hour >= 0 && hour < HOURS) sums[hour] += row.seconds;
  }
  const most = Math.max(...sums);
  if (!(most > 0)) return box;
  const brush = svg("rect", { class: "brush", y: 0, height: 40, width: 0 });
  const view = svg("svg", { viewBox: `0 0 ${HOURS} 40`, preserveAspectRatio: "none", role: "img", "aria-label": `Load of the last seven days, at most ${format.seconds(most)} an hour` }, sums.map((s, i) => (s > 0 ? svg("rect", { x: i, y: 40 - (38 * s) / most, width: 0.9, height: (38 * s) / most }, svg("title", {}, format.seconds(s))) : null)), brush);
  let from = null;
  const at = (event) => {
    const frame = view.getBoundingClientRect();
    return Math.max(0, Math.min(HOURS, ((event.clientX - frame.left) / frame.width) * HOURS));
  };
  const time = (hour) => new Date((now - HOURS + hour) * 3600e3).toISOString().replace(".000", "");
  view.addEventListener("pointerdown", (event) => {
    from = at(event);
    view.setPointerCapture(event.pointerId);
  });
  view.addEventListener("pointermove", (event) => {
    if (from === null) return;
    brush.setAttribute("x", Math.min(from, at(event)));
    brush.setAttribute("width", Math.abs(at(event) - from));
  });
  view.addEventListener("pointerup", (event) => {
    const to = at(event);
    const [low, high] = [Math.floor(Math.min(from, to)), Math.ceil(Math.max(from, to))];
    from = null;
    if (high > low) go(state, { since: time(low), until: time(high) });
  });
  box.append(view, el("span", { class: "hint" }, "last seven days; drag to choose"));
  return box;
}

function range(state) {
  const since = el("input", { id: "since", value: state.since, placeholder: "beginning", size: 22 });
  const until = el("input", { id: "until", value: state.until, placeholder: "now", size: 22 });
  const preset = el("select", { id: "preset", onchange: () => go(state, { since: preset.value, until: "" }) }, PRESETS.map(([value, text]) => el("option", { value, selected: value === state.since && !state.until }, text)));
  if (state.until || !PRESETS.some(([value]) => value === state.since)) preset.append(el("option", { selected: true, disabled: true, value: "-" }, "chosen"));
  const apply = (event) => {
    event.preventDefault();
    go(state, { since: since.value.trim(), until: until.value.trim() });
  };
  return el("form", { class: "bar", onsubmit: apply }, el("label", { for: "preset" }, "Time"), preset, el("label", { for: "since" }, "from"), since, el("label", { for: "until" }, "to"), until, el("button", {}, "Apply"));
}

function labels(state, signal) {
  const names = el("datalist", { id: "label-names" });
  const field = el("input", { id: "match", placeholder: 'label="value", != =~ !~', list: "label-names", size: 24 });
  const apply = (event) => {
    event.preventDefault();
    const text = field.value.trim();
    const plain = /^([A-Za-z_]\w*)(=~|!~|!=|=)([^"]*)$/.exec(text);
    const match = plain ? `${plain[1]}${plain[2]}"${plain[3].replaceAll("\\", "\\\\")}"` : text;
    if (match && !state.match.includes(match)) go(state, { match: [...state.match, match] });
  };
  api.json(`api/v1/labels?build_id=${encodeURIComponent(state.build)}`, signal).then((page) => replace(names, page.rows.map((row) => el("option", { value: `${row.name}=` }))), () => {});
  const chips = state.match.map((m) => el("button", { type: "button", class: "chip", "aria-label": `Remove ${m}`, onclick: () => go(state, { match: state.match.filter((o) => o !== m) }) }, `${m} ×`));
  return el("form", { class: "bar", onsubmit: apply }, el("label", { for: "match" }, "Labels"), chips, field, names, el("button", {}, "Add"));
}

function shape(state) {
  const scope = el("select", { id: "scope", onchange: () => go(state, { scope: scope.value }) }, [["", "as usual"], ["program", "the program, all its builds"], ["build", "this build in the program"], ["everywhere", "this build in every program"]].map(([value, text]) => el("option", { value, selected: state.scope === value }, text)));
  const box = el("input", { id: "static", type: "checkbox", checked: state.static === "1", onchange: () => go(state, { static: box.checked ? "1" : "" }) });
  return el("p", { class: "bar" }, el("label", { for: "scope" }, "Scope"), scope, box, el("label", { for: "static", title: "arcs of the machine code close cycles too, as in 1982" }, "static arcs"));
}

/** The same question for a terminal. */
function command(state) {
  const words = ["profctl", "report", state.build];
  if (state.since) words.push("--since", state.since);
  if (state.until) words.push("--until", state.until);
  if (state.scope) words.push("--scope", state.scope);
  if (state.static) words.push("--static");
  for (const m of state.match) words.push("--match", m);
  return words.map(format.quote).join(" ");
}

function shares(state) {
  const url = (what) => new URL(api.path(state.build, "/report", { ...question(state), ...what }), document.baseURI).href;
  return el(
    "p",
    { class: "bar shares" },
    el("button", { type: "button", onclick: () => copy(location.href, "Link") }, "Copy link"),
    el("button", { type: "button", onclick: () => copy(command(state), "Command") }, "Copy profctl command"),
    el("button", { type: "button", onclick: () => api.text(url({ format: "gprof" })).then((text) => copy(text, "gprof listing"), (e) => copy(e.message, "Refusal")) }, "Copy gprof text"),
    el("a", { href: url({ format: "json" }), target: "_blank", rel: "noopener" }, "JSON"),
    ["text", "pprof", "callgrind", "speedscope", "csv", "dot"].map((f) => el("a", { href: url({ format: f, limit: f === "dot" ? undefined : 0 }), target: "_blank", rel: "noopener", download: f === "pprof" || f === "callgrind" || f === "csv" ? `profd-${state.build.slice(0, 12)}.${f}` : false }, f)),
  );
}

export function tabs(nav, state) {
  replace(nav, state.build ? VIEWS.map(([view, title], i) => el("a", { href: href(state, another(view)), "aria-current": view === state.view ? "page" : undefined, title: `key ${i + 1}` }, title)) : null);
}

/** Where the data comes from, and what is not exact about it. */
export function origin(report) {
  const p = report.provenance;
  const window = report.window;
  return [
    el("p", {}, `${format.seconds(report.totals.seconds)} of CPU time, ${format.exact(report.totals, "calls")} calls, ${format.many(p, "processes_started", "process", "processes")} on ${format.many(p, "hosts", "host", "hosts")}, ${format.moment(p.first)} to ${format.moment(p.last)}.`),
    p.exact ? null : el("p", { class: "warning" }, `Not exact: ${p.inexact_reasons.join(", ")}.`),
    report.builds.some((b) => !b.has_names) ? el("p", { class: "warning" }, `No symbols for ${report.builds.filter((b) => !b.has_names).map((b) => format.base(b.name) || format.brief(b.build_id)).join(", ")}: profctl symbols EXE.`) : null,
    window && (window.since !== report.since || window.until !== report.until) ? el("p", { class: "hint" }, `Hours are the finest that is stored here: counted is ${format.moment(window.since) || "the beginning"} to ${format.moment(window.until) || "now"}.`) : null,
  ];
}

export async function draw(section, state, row, signal) {
  section.hidden = false;
  const load = el("div");
  const about = el("div", { id: "origin" });
  replace(section, el("h1", {}, format.base(row?.name) || "?", " ", el("code", { title: state.build }, format.brief(state.build))), load, el("details", { open: innerWidth > 700 }, el("summary", {}, "Question"), el("div", { class: "row" }, range(state), labels(state, signal), shape(state)), shares(state)), about);
  strip(state, signal).then((box) => replace(load, box), () => {});
}
