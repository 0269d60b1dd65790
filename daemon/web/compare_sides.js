// The two sides of a comparison: what they are called, how B is chosen, and which comparisons suggest themselves.
import * as api from "./api.js";
import { button, el, facts, later, replace } from "./dom.js";
import * as format from "./format.js";
import { menu } from "./menu.js";
import { go, to } from "./state.js";
import { equals, labelChips, matcherOf } from "./toolbar.js";
import { NARROW } from "./table.js";

const VALUES_MOST = 12; // values of a label that are offered
const LABELS_MOST = 4;
const RELATIVES_MOST = 8;

/** What a report of one side is asked. The toolbar's time is of both sides unless B has its own; labels are of one
 *  side. */
export function sideQuestion(state, side) {
  const own = side === "b" && (state.bsince || state.buntil);
  return {
    since: own ? state.bsince : state.since,
    until: own ? state.buntil : state.until,
    match: side === "b" ? state.bmatch : state.match,
    scope: state.scope,
    dimension: state.dimension,
  };
}

/** What /api/v1/diff is asked. */
export function request(state) {
  const both = { a: state.build, b: state.against, scope: state.scope, dimension: state.dimension };
  for (const side of ["a", "b"]) {
    const { since, until, match } = sideQuestion(state, side);
    Object.assign(both, { [`${side}.since`]: since, [`${side}.until`]: until, [`${side}.match`]: match });
  }
  return both;
}

/** The first values of a label, and whether there are others. */
const valuesOf = (name, build, limit) =>
  api.json(api.valuesUrl(name, build, limit)).then(
    ({ rows, next }) => ({ values: rows.map((r) => r.value).filter(Boolean), more: Boolean(next) }),
    () => ({ values: [], more: false }),
  );

/** "1.2", "3 versions", "20 or more versions", or nothing. */
export async function versionOf(build) {
  const { values, more } = await valuesOf("version", build, 20);
  if (more) return `${values.length} or more versions`;
  return values.length > 1 ? `${values.length} versions` : (values[0] ?? "");
}

/** Labels and times of a side, as a button has them: what A and B share is left out where both have one build. */
function conditions(state, side) {
  const match = side === "b" ? state.bmatch : state.match;
  const { since, until } = sideQuestion(state, side);
  const time = since || until ? format.range(since, until) : "";
  return [...match.map((m) => m.replace(/^(\w+)(=|!=|=~|!~)"(.*)"$/, "$1$2$3")), time].filter(Boolean);
}

const factsOf = (side) =>
  facts([
    ["Build-id", side.build_id],
    ["File", side.name],
    ["Labels", side.match || "all"],
    ["Time", format.span(side.first, side.last)],
    ["Processes", format.exact(side, "processes_started")],
    ["Ticks", `${format.exact(side, "ticks")}, ${format.seconds(side.seconds, side.ticks)}`],
    ["Exact", side.exact ? "yes" : `no: ${side.inexact_reasons.join(", ")}`],
  ]);

/** other: the answer of the other side. */
function textOf(state, side, answer, other, version) {
  const base = format.base(answer.name) || format.brief(answer.build_id);
  const own = conditions(state, side);
  if (innerWidth < NARROW && own.length) return own.join(" · ");
  const where = [version || answer.build_id.slice(0, 8), ...own].join(" · ");
  if (innerWidth < NARROW && format.base(other.name) === base) return where;
  return `${base} ${where}`;
}

const labelOf = (side, text) => el("span.side", el("strong", side), ` ${text}`);

/** The fields that choose B. The builds are asked for when the menu opens. */
function chooser(state) {
  const build = el("select", { id: "against" }, el("option", { value: state.against || state.build }, "this build"));
  const since = el("input", { id: "bsince", value: state.bsince, placeholder: "as A", size: 18 });
  const until = el("input", { id: "buntil", value: state.buntil, placeholder: "as A", size: 18 });
  const label = el("input", { id: "bmatch", placeholder: 'host="db3", != =~ !~', size: 24 });
  const apply = (event) => {
    event.preventDefault();
    const added = matcherOf(label.value.trim());
    const bmatch = added && !state.bmatch.includes(added) ? [...state.bmatch, added] : state.bmatch;
    go({ against: build.value, bsince: since.value.trim(), buntil: until.value.trim(), bmatch, row: "", top: "" });
  };
  const line = (field, text) => [el("label", { for: field.id }, text), field];
  const form = el(
    "form.fields",
    { onsubmit: apply },
    line(build, "Build"),
    line(since, "From"),
    line(until, "to"),
    line(label, "Label"),
    el("button", "Compare"),
  );
  const show = ({ rows, more }) => replace(build, options(rows, state, more));
  const opened = () => later(api.rows("api/v1/builds?limit=1000", 2000), show);
  return { form, opened };
}

function options(rows, state, more) {
  const base = format.base(rows.find((r) => r.build_id.startsWith(state.build))?.name);
  const option = (r) => {
    const about = { value: r.build_id, selected: r.build_id.startsWith(state.against || state.build) };
    return el("option", about, `${format.base(r.name)} ${r.build_id.slice(0, 8)}, ${format.ago(r.last_seen)}`);
  };
  const listed = (label, list) => (list.length ? el("optgroup", { label }, list.map(option)) : null);
  const [same, others] = [true, false].map((own) => rows.filter((r) => (format.base(r.name) === base) === own));
  return [listed(`Builds of ${base}`, same), listed(more ? "Others (not all builds are listed)" : "Others", others)];
}

/** The menus of both sides, and the button that exchanges them. */
export function sideMenus(state, diff) {
  const before = textOf(state, "a", diff.a, diff.b, diff.a.version);
  const after = textOf(state, "b", diff.b, diff.a, diff.b.version);
  const { form, opened } = chooser(state);
  const hint = el("p.hint", "The toolbar above chooses build, time and labels of A.");
  const swapped = {
    build: state.against,
    against: state.build,
    match: state.bmatch,
    bmatch: state.match,
    ...(state.bsince || state.buntil
      ? { since: state.bsince, until: state.buntil, bsince: state.since, buntil: state.until || "now" }
      : {}),
    row: "",
    top: "",
  };
  const none = { against: "", bmatch: [], bsince: "", buntil: "", row: "", top: "" };
  const other = el("a", to(state, none), "Suggestions");
  const exchange = "Exchange A and B";
  return [
    el("h2.spoken", `A: ${before}; B: ${after}`),
    menu("side-a", "Side A, before", labelOf("A", before), [factsOf(diff.a), hint]),
    button("⇄", () => go(swapped), { id: "swap", title: exchange, "aria-label": exchange }),
    menu(
      "side-b",
      "Side B, after",
      labelOf("B", after),
      [form, labelChips(state, "bmatch", " from B"), factsOf(diff.b), other],
      opened,
    ),
  ];
}

function group(title, about, lines) {
  const line = (content) => el("li", content);
  return lines.length ? el("section", el("h3", title), el("p.hint", about), el("ul.offers", lines.map(line))) : null;
}

const CHOSEN = "chosen under “Anything else”.";
const hint = (text) => el("span.hint", text);

/** Older against newer, for every other build of this name. */
async function versionOffers(state, row, all) {
  const base = format.base(row.name);
  const related = all.filter((r) => r !== row && format.base(r.name) === base);
  const same = related.slice(0, RELATIVES_MOST);
  const others = related.length - same.length;
  const names = await Promise.all([row, ...same].map((r) => versionOf(r.build_id)));
  const offers = same.map((r, i) => {
    const older = Date.parse(r.last_seen) < Date.parse(row.last_seen);
    const [from, till] = older ? [r, row] : [row, r];
    const title = (b) => (b === row ? names[0] : names[i + 1]) || format.brief(b.build_id);
    const sides = to(state, { build: from.build_id, against: till.build_id, bmatch: state.match });
    const seen = hint(` ${title(till)} was last seen ${format.ago(till.last_seen)}`);
    return [el("a", sides, `${title(from)} → ${title(till)}`), seen];
  });
  return others ? [...offers, hint(`${format.count(others)} more of this name can be ${CHOSEN}`)] : offers;
}

/** One value of a label against all others. */
function labelOffers(state, name, { values, more }) {
  const others = state.match.filter((m) => !m.startsWith(`${name}=`));
  const offers = values.map((v) => {
    const [one, rest] = [equals(name, v), equals(name, v).replace("=", "!=")];
    const sides = { against: state.build, match: [...others, rest], bmatch: [...others, one] };
    return [
      el("a", to(state, sides), `${v} against the others`),
      el("a", to(state, { ...sides, since: "now-1h", until: "" }), "last hour"),
    ];
  });
  return more ? [...offers, hint(`There are more values; another can be ${CHOSEN}`)] : offers;
}

function timeOffers(state) {
  const offer = (text, unit) => {
    const times = { since: `now-2${unit}`, until: `now-1${unit}`, bsince: `now-1${unit}`, buntil: "now" };
    return el("a", to(state, { against: state.build, bmatch: state.match, ...times }), text);
  };
  return [offer("the hour before → the last hour", "h"), offer("the day before → the last day", "d")];
}

/** Comparisons that are one click away. */
export async function suggestions(state, signal) {
  const { rows: all } = await api.rows("api/v1/builds?limit=1000", 5000, signal);
  const row = all.find((r) => r.build_id.startsWith(state.build)) ?? { name: "", build_id: state.build };
  const names = await api.labelNames(state.build, signal);
  names.sort((a, b) => (b === "host") - (a === "host"));
  const found = await Promise.all(names.map((name) => valuesOf(name, state.build, VALUES_MOST)));
  const several = names.map((name, i) => [name, found[i]]).filter(([, { values }]) => values.length > 1);
  const unlisted = several.slice(LABELS_MOST).map(([name]) => name);
  const { form, opened } = chooser(state);
  opened();
  return [
    group("Versions", "What did a new version change?", await versionOffers(state, row, all)),
    several
      .slice(0, LABELS_MOST)
      .map(([name, values]) =>
        group(`By ${name}`, `Does one ${name} behave unlike all others?`, labelOffers(state, name, values)),
      ),
    group("Times", "Did something change in this build?", timeOffers(state)),
    el(
      "section",
      el("h3", "Anything else"),
      el("p.hint", "A is what the toolbar says. Choose B:"),
      unlisted.length ? el("p.hint", `Other labels with several values: ${unlisted.join(", ")}.`) : null,
      form,
    ),
  ];
}
