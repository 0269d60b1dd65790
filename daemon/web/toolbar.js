// The toolbar: which build, what time, which labels, how exact. Everything that is rare is in a menu.
import * as api from "./api.js";
import { el, facts, labelled, later, replace } from "./dom.js";
import * as format from "./format.js";
import { menu } from "./menu.js";
import { shareMenu } from "./share.js";
import { another, FLEET, fleet, go, href, links, to, VIEWS } from "./state.js";
import { strip } from "./strip.js";

const PRESETS = [
  ["", "All time"],
  ["now-1h", "Last hour"],
  ["now-6h", "Last 6 hours"],
  ["now-1d", "Last day"],
  ["now-7d", "Last week"],
  ["now-30d", "Last 30 days"],
];
const NAMES_MOST = 8; // labels of which a menu lists the values
const VALUES_MOST = 12; // values of each

/** What the time menu is called. */
function timeText(state) {
  const preset = PRESETS.find(([value]) => value === state.since);
  if (preset && !state.until) return preset[1];
  return format.range(state.since, state.until);
}

/** more: what stands below the fields. */
export function timeMenu(state, more) {
  const since = el("input", { id: "since", value: state.since, placeholder: "beginning", size: 22 });
  const until = el("input", { id: "until", value: state.until, placeholder: "now", size: 22 });
  const apply = (event) => {
    event.preventDefault();
    go({ since: since.value.trim(), until: until.value.trim() });
  };
  const now = PRESETS.find(([, text]) => text === timeText(state))?.[0];
  const presets = links("Time ranges", PRESETS, now, state, (value) => ({ since: value, until: "" }));
  const fields = el(
    "form.bar",
    { onsubmit: apply },
    labelled("From", since),
    labelled("to", until),
    el("button", "Apply"),
  );
  const hint = "A time is written as now-1h, 2026-11-22 or 2026-11-22T17:00:00Z.";
  const content = [presets, fields, el("p.hint", hint), more];
  return menu("time", "Time range", timeText(state), content);
}

export const equals = (name, value) => `${name}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** What was typed as the interface reads it: the quotes may be left out. */
export function matcherOf(text) {
  const plain = /^([A-Za-z_]\w*)(=~|!~|!=|=)([^"]*)$/.exec(text);
  return plain ? `${plain[1]}${plain[2]}"${plain[3].replaceAll("\\", "\\\\")}"` : text;
}

/** Offers names, and after a name its values. */
function completed(field, list, state) {
  let names = [];
  let shown = "";
  const offer = (values) =>
    replace(
      list,
      values.map((value) => el("option", { value })),
    );
  const follow = () => {
    const [, name = "", operator] = /^([A-Za-z_]\w*)(=~|!~|!=|=)/.exec(field.value) ?? [];
    if (name === shown) return;
    shown = name;
    if (!name) return offer(names);
    const option = (row) => equals(name, row.value).replace("=", operator);
    return later(
      api.rows(api.valuesUrl(name, state.build, 1000), 5000),
      ({ rows }) => name === shown && offer(rows.map(option)),
    );
  };
  field.addEventListener("input", follow);
  return (all) => offer((names = all.map((name) => `${name}=`)));
}

/** Every label with its first values, each a click away. */
function choices(box, names, state) {
  const pick = (name, value) => {
    const others = state.match.filter((m) => !m.startsWith(`${name}="`));
    return to(state, { match: [...others, equals(name, value)], row: "", top: "" });
  };
  const fill = (place, name) =>
    later(api.json(api.valuesUrl(name, state.build, VALUES_MOST)), ({ rows, next }) => {
      const values = rows.map((r) => el("a", pick(name, r.value), r.value || "(empty)"));
      replace(place, values, next ? "…" : null);
    });
  const line = (name) => {
    const place = el("dd.presets");
    fill(place, name);
    return [el("dt", name), place];
  };
  const others = names.length - NAMES_MOST;
  const rest = `${format.several(others, "more label", "more labels")}: type the name above.`;
  const cut = others > 0 ? [el("dt", "…"), el("dd.hint", rest)] : null;
  replace(box, names.slice(0, NAMES_MOST).map(line), cut);
}

export function labelsMenu(state) {
  const list = el("datalist", { id: "label-names" });
  const placeholder = 'service="shop", != =~ !~';
  const field = el("input", { id: "match", placeholder, list: "label-names", size: 28 });
  const offer = completed(field, list, state);
  const apply = (event) => {
    event.preventDefault();
    const match = matcherOf(field.value.trim());
    if (match && !state.match.includes(match)) go({ match: [...state.match, match], row: "", top: "" });
  };
  const form = el("form.bar", { onsubmit: apply }, labelled("Add", field), list, el("button", "Add"));
  const box = el("dl.facts");
  const opened = () =>
    later(api.labelNames(state.build), (names) => {
      offer(names);
      choices(box, names, state);
    });
  return menu("labels", "Only uploads with these labels", "Labels", [form, box], opened);
}

/** The labels that were chosen, by their place in the address; each goes away by a click. of: what they belong to. */
export function labelChips(state, list = "match", of = "") {
  const without = (m) => () => go({ [list]: state[list].filter((o) => o !== m), row: "", top: "" });
  const about = (m) => ({ type: "button", "aria-label": `Remove ${m}${of}`, onclick: without(m) });
  const chip = (m) => el("button.chip", about(m), `${m} ×`);
  return state[list].length ? el("span.chips", state[list].map(chip)) : null;
}

export function tabs(nav, state) {
  const current = (here) => ({ "aria-current": here ? "page" : null });
  const all = FLEET.map(([view, title]) =>
    el("a", { href: href(state, fleet(view)), ...current(!state.build && view === state.view) }, title),
  );
  const view = ([name, title], i) =>
    el("a", { ...to(state, another(name)), ...current(name === state.view), title: `key ${i + 1}` }, title);
  const of = el("span.of", { "aria-hidden": "true" }, "›");
  replace(nav, all, state.build ? [of, VIEWS.map(view)] : null);
  const here = nav.querySelector("[aria-current]"); // a narrow window shows a part of the tabs
  if (here) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}

/** Versions that the uploads of a build are labelled with. */
const versions = (row) => (row?.labels ?? []).filter((l) => l.name === "version").map((l) => l.value);

/** Which build this is, and the others of the same name. */
function buildMenu(state, row) {
  const name = format.base(row?.name) || "?";
  const known = versions(row);
  const version = known.length > 1 ? `${known.length} versions` : known[0];
  const label = [
    el("h1", name),
    version ? el("span.version", { title: known.join(", ") }, version) : null,
    el("code", { title: state.build }, state.build.slice(0, 8)),
  ];
  const line = (r) => [
    el("a", to(state, { build: r.build_id, fn: "", of: "", row: "", top: "" }), format.brief(r.build_id)),
    `last seen ${format.ago(r.last_seen)}`,
  ];
  const others = el("div");
  const list = (rows) => [el("p", `Other builds named ${name}`), facts(rows.map(line))];
  const show = ({ rows, more }) => {
    const same = rows.filter((r) => r.build_id !== state.build && format.base(r.name) === name);
    const none = el("p.hint", "No other build has this name.");
    const cut = el("p.hint", `Only ${format.count(rows.length)} builds were searched; there are more.`);
    replace(others, same.length ? list(same) : more ? null : none, more ? cut : null);
  };
  const opened = () => later(api.rows("api/v1/builds?limit=1000", 5000), show);
  const about = facts([
    ["Build-id", state.build],
    ["File", row?.name ?? ""],
    ["Version", known.join(", ") || "no label named version"],
  ]);
  return menu("which", "Build", label, [about, others], opened);
}

/** Draws the toolbar of a build. originPut() of origin.js fills its empty places when the report is there. */
export function draw(section, state, row, signal) {
  section.hidden = false;
  const load = el("div.load");
  const table = el("div");
  replace(
    section,
    el(
      "div.toolbar",
      buildMenu(state, row),
      timeMenu(state, table),
      labelsMenu(state),
      labelChips(state),
      el("span", { id: "dimensions" }),
      el("span", { id: "origin" }),
      el("span.gap"),
      shareMenu(state),
    ),
    el("div.over", load, el("div", { id: "headline" })),
  );
  later(strip(state, row, signal), ([picture, rows]) => {
    replace(load, picture);
    replace(table, rows);
  });
}
