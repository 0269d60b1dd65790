// The code of one function: where ticks fell and what was called, by source line, by instruction or by address. The
// text of the lines is with the reader: a file that is opened stays in the page.
import * as api from "./api.js";
import { instructionsOf } from "./code_instructions.js";
import { interval, linesOf, withText } from "./code_lines.js";
import { copy, el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { md5 } from "./md5.js";
import { another, functionAt, question, to } from "./state.js";
import { Table } from "./table.js";
import { bar, fitting, load, NARROW } from "./view_report.js";

const WIDTHS = { bars: true, width: 9.2, slim: 4.8 };
const OFFERED = 12; // functions to choose from
// Columns where there is little space; the number of calls of an instruction then stands beside their callee.
const FEW = { Instructions: ["ticks"], Lines: ["ticks", "calls"], Addresses: ["ticks", "calls"] };
const INSTRUCTIONS = "instructions"; // forms of the address bar; without one: lines, where they are known
const ADDRESSES = "addresses";
const SELF =
  "time of the ticks that fell here, and its part of the function; ~: a bin of the histogram covers several lines, " +
  "and is divided by their bytes";
const RANGE = "within which the time is, as ticks are a sample of it";
const SKID = "A tick stands at the instruction that was to run next: those of a slow one stand behind it. ";
const UNSURE = "The debug information has no MD5, so profd cannot tell whether it was compiled. ";
const texts = new Map(); // of files that were opened: {lines, md5} by the file's name without folders

const wide = () => innerWidth >= NARROW;

/** The lines of a file that was opened; undefined where none was, or where it is not the one that was compiled. */
function textOf(file, answer) {
  const opened = file && texts.get(format.base(file));
  const known = answer.files.filter((f) => f.file === file);
  return opened && (!known.length || known.some((f) => f.md5 === opened.md5)) ? opened.lines : undefined;
}

const titleOf = (name) => (wide() ? format.called(name) : format.clip(format.shortName(name), 28));

/** Ticks and calls by ascending address, as one list. */
function addressesOf(answer) {
  const start = BigInt(answer.function.address);
  const rowOf = (row, more) => {
    const at = Number(BigInt(row.address) - start);
    const title = `${row.address}${row.bytes > 1 ? `, ${row.bytes} bytes` : ""}`;
    return { ...row, ...more, at, title, name: `+0x${at.toString(16)}` };
  };
  const ticks = answer.rows.map((r) => rowOf(r, r.shared ? {} : interval(answer, r.ticks)));
  const calls = answer.calls.map((c) => rowOf(c, { call: c }));
  return [...ticks, ...calls].sort((a, b) => a.at - b.at || Boolean(a.call) - Boolean(b.call));
}

/** Lines by file and number, with the text of those files that were opened; below each line what it calls. */
function linesShown(lines, answer) {
  const files = [...new Set(lines.rows.map((row) => row.file))];
  const rows = files.flatMap((file) => {
    const text = textOf(file, answer);
    return text ? withText(lines.rows, file, text) : lines.rows.filter((row) => row.file === file);
  });
  return rows.flatMap((row) => {
    const name = row.file ? `${format.base(row.file)}:${row.line}` : "no line known";
    const title = row.file ? `${row.file}:${row.line}` : "bytes without a line in the debug information";
    return [{ ...row, name, title }, ...row.callees.map((call) => ({ call, calls: call.calls, name: "" }))];
  });
}

/** Instructions, with the text of their lines where a file was opened. */
function instructionsShown(answer) {
  const { rows } = instructionsOf(answer);
  return rows.map((row) => (row.head ? { ...row, text: textOf(row.file, answer)?.[row.line - 1] } : row));
}

/** The name of a callee as a link to its callers and callees. */
function calleeLink(call, state) {
  if (!call.callee) return "outside";
  const where = { ...another("report"), ...functionAt(state, call.callee_address, call.build_id) };
  return el("a", { ...to(state, where), tabIndex: -1, title: call.callee }, fitting(format.called(call.callee)));
}

/** A number of calls; all its digits on hover where there is little space. */
function callsOf(row, before) {
  const all = before + format.exact(row, "calls");
  return wide() ? all : el("span", { title: all }, before + format.short(row.calls));
}

/** A line or an address; what is called from there; the text of the line. */
function nameColumn(rows, state, title) {
  const shared = () => el("span", { class: "chip", title: "These bytes belong in part to another function" }, "shared");
  const times = (c) => (wide() || title !== "Instruction" ? null : `×${format.short(c.calls)}`);
  const cell = (i) => {
    const { name, title: about, call, text, shared: of, head, goes } = rows[i];
    return [
      name ? el("code", { class: head ? "place head" : "place", title: about }, name) : el("span", { class: "indent" }),
      call ? el("span", { class: "callee" }, "→", calleeLink(call, state), times(call)) : null,
      text === undefined ? null : el("code", { class: "text", title: text }, text),
      goes ? el("span", { class: "callee" }, calleeLink(goes, state), times(goes)) : null,
      of ? shared() : null,
    ];
  };
  return { key: "name", title, width: wide() ? undefined : 8, value: (i) => String(i).padStart(8, "0"), cell };
}

function columns(rows, answer, state, title) {
  const own = answer.function.self_seconds || 1;
  const amount = format.amounts(answer.dimension, answer);
  const tick = answer.ticks > 0 ? answer.seconds / answer.ticks : 0;
  const mark = (row) => (row.estimated ? "~" : "");
  const ticks = (i) => rows[i].ticks || -1;
  const range = (row) => (row.high === undefined ? "" : amount.between(row.low * tick, row.high * tick));
  const self = (row) => (row.ticks ? bar(mark(row) + amount(row.seconds), (100 * row.seconds) / own) : "");
  const count = (row) => (row.ticks ? mark(row) + format.count(row.ticks_str ?? Math.round(row.ticks)) : "");
  return [
    nameColumn(rows, state, title),
    { key: "ticks", title: "Self", hint: SELF, ...WIDTHS, numeric: true, value: ticks, cell: (i) => self(rows[i]) },
    { key: "range", title: "95 %", hint: RANGE, numeric: true, width: 9.6, value: ticks, cell: (i) => range(rows[i]) },
    { key: "count", title: "Ticks", numeric: true, value: ticks, cell: (i) => count(rows[i]) },
    {
      key: "calls",
      title: "Calls",
      hint: "from here, counted at the call sites; ≤ where a callee may have jumped to another",
      width: wide() ? 8 : 6.8,
      numeric: true,
      value: (i) => rows[i].calls || -1,
      cell: (i) => (rows[i].calls ? callsOf(rows[i].call ?? rows[i], rows[i].most ? "≤ " : "") : ""),
    },
  ];
}

/** The same with text and instructions, where sources and binutils are. */
function command(state, f) {
  const words = ["profctl", "annotate", state.build, f.name];
  if (state.since) words.push("--since", state.since);
  if (state.until) words.push("--until", state.until);
  for (const m of state.match) words.push("--match", m);
  return words.map(format.quote).join(" ");
}

/** Without a function: the ones with the most time. */
async function choose(main, state, signal) {
  const flat = await load(state.build, { ...question(state), limit: OFFERED, sort: "self" }, signal);
  const c = flat.columns;
  const amount = format.amounts(flat.report.totals.dimension, flat.report.totals);
  const link = (i) => to(state, { fn: c.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) });
  const offer = (name, i) =>
    el(
      "li",
      {},
      el("a", { ...link(i), title: name }, format.called(name)),
      el("span", { class: "hint" }, `self ${amount(c.self_seconds[i])}`),
    );
  const title = el("div", { class: "bar compare" }, el("h2", {}, "Code of which function?"));
  const about = el("p", { class: "hint" }, "The functions with the most time in their own code:");
  replace(main, title, about, el("ul", { class: "offers" }, c.name.map(offer)));
}

/** Opens files of the reader; then show(). */
async function take(files, wanted, show) {
  const known = new Set(wanted.map(format.base));
  const strange = [...files].filter((file) => !known.has(file.name)).map((file) => file.name);
  const taken = [...files].filter((file) => known.has(file.name));
  for (const file of taken) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const lines = new TextDecoder().decode(bytes).replace(/\r?\n$/, "").split(/\r?\n/);
    texts.set(file.name, { lines, md5: md5(bytes) });
  }
  if (taken.length) show();
  if (strange.length)
    say(`No line of this function is in ${strange.join(", ")}: its code is of ${[...known].join(", ")}.`);
}

/** The button that opens sources, and a box onto which they can be dropped. */
function opener(files, box, show) {
  const field = el("input", { type: "file", multiple: true, hidden: true, id: "sources" });
  field.addEventListener("change", () => take(field.files, files, show));
  box.addEventListener("dragover", (event) => event.preventDefault());
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer.files, files, show);
  });
  const about = "The text of the lines, from this computer. It stays in this page.";
  return [el("button", { type: "button", title: about, onclick: () => field.click() }, "Open source file…"), field];
}

/** Names of files that were opened: those that were compiled, those of which that is not known, and others. */
function filesOpened(rows, answer) {
  const opened = [...new Set(rows.map((row) => row.file))].filter((file) => file && texts.has(format.base(file)));
  const stated = (file) => answer.files.some((f) => f.file === file);
  const names = (wanted) => [...new Set(opened.filter(wanted).map(format.base))];
  return {
    sure: names((file) => stated(file) && textOf(file, answer)),
    unsure: names((file) => !stated(file)),
    other: names((file) => !textOf(file, answer)),
  };
}

/** What cannot be said of all numbers. */
function remarks(lines, answer) {
  const { rows, shared, lost } = lines;
  const short = [...new Set(rows.map((row) => row.file))].filter((file) => {
    const text = textOf(file, answer);
    return text && rows.some((row) => row.file === file && row.line > text.length);
  });
  const { sure, unsure, other } = filesOpened(rows, answer);
  return [
    other.length
      ? el(
          "p",
          { class: "warning" },
          `${other.join(", ")}: not what was compiled, as the MD5 in the debug information is another one. `,
          "Its text is not shown.",
        )
      : null,
    short.length
      ? el("p", { class: "warning" }, `${short.map(format.base).join(", ")}: fewer lines than what was compiled had.`)
      : null,
    el("p", { class: "hint" }, [
      `${format.count(answer.function.bytes)} bytes of ${format.base(answer.function.object)}. `,
      shared
        ? `${format.several(shared, "tick is", "ticks are")} in bins that other functions share: at no line. `
        : null,
      lost && !answer.call_sites
        ? "A gmon.out is among the uploads: it rounds the addresses of callers, so " +
          `${format.several(lost, "call has", "calls have")} no line. `
        : null,
      rows.some((row) => row.ticks) && ["seconds", "wall"].includes(answer.dimension) ? SKID : null,
      sure.length ? `${sure.join(", ")}: by its MD5 the file that was compiled. ` : null,
      unsure.length
        ? `${unsure.join(", ")}: the file that you opened. ${UNSURE}`
        : null,
    ]),
  ];
}

/** Why there are no lines, and what to do. */
const without = (answer) =>
  el(
    "p",
    { class: "hint" },
    "Source lines are not known. Compile with ",
    el("code", {}, "-g"),
    " and send the file: ",
    el("code", {}, `profctl symbols ${format.quote(answer.function.object || "FILE")}`),
    ".",
  );

const hottestOf = (rows) => rows.reduce((a, b) => ((b.seconds ?? 0) > (a?.seconds ?? 0) ? b : a), null);

/** Where most time is, as a sentence. */
function headline(rows, answer) {
  const f = answer.function;
  const hottest = hottestOf(rows);
  const amount = format.amounts(answer.dimension, answer);
  const most = hottest
    ? `Most time is at ${hottest.name}${wide() && hottest.bytes && hottest.text ? ` ${hottest.text}` : ""}: ` +
      `${hottest.estimated ? "~" : ""}${amount(hottest.seconds)} of ${amount(f.self_seconds)}. `
    : `${f.calls > 0 ? "No tick fell into this function" : "No call and no tick of this function was seen"}. `;
  return el("p", { class: "answer" }, el("strong", {}, most));
}

/** What can be shown, the usual one first: {form, title, column, rows}. */
function formsOf(lines, answer) {
  const all = [
    { form: INSTRUCTIONS, title: "Instructions", column: "Instruction", rows: () => instructionsShown(answer) },
    { form: ADDRESSES, title: "Addresses", column: "Address", rows: () => addressesOf(answer) },
  ];
  if (!answer.instructions.length) all.shift();
  if (answer.lines.length)
    all.unshift({ form: "lines", title: "Lines", column: "Line", rows: () => linesShown(lines, answer) });
  return all;
}

/** Links to the others. */
function formLinks(state, forms, now) {
  const link = (form, i) => {
    const there = to(state, { form: i === 0 ? "" : form.form, sort: "", dir: "", row: "", top: "" });
    return el("a", { ...there, "aria-current": form === now ? "true" : null }, form.title);
  };
  return el("span", { class: "presets" }, forms.map(link));
}

/** Why there are no instructions, and what to do. */
const withoutInstructions = (answer) =>
  el(
    "p",
    { class: "hint" },
    "The instructions of this build are not stored. To store them, send the file: ",
    el("code", {}, `profctl symbols --code ${format.quote(answer.function.object || "FILE")}`),
    ".",
  );

function show(main, state, answer) {
  const lines = linesOf(answer);
  const has = answer.lines.length > 0;
  const forms = formsOf(lines, answer);
  const form = forms.find((one) => one.form === state.form) ?? forms[0];
  const rows = form.rows();
  const f = answer.function;
  const shell = command(state, f);
  const about = { type: "button", title: shell };
  const counted = f.calls > 0 || f.self_calls > 0 || f.self_seconds > 0 || answer.calls.length > 0;
  const files = [...new Set(answer.lines.map((line) => line.file))];
  const box = el("div");
  const bar2 = el(
    "div",
    { class: "bar compare" },
    el("h2", { class: "function one", title: f.name }, titleOf(f.name)),
    forms.length > 1 ? formLinks(state, forms, form) : null,
    has && form.form !== ADDRESSES ? opener(files, box, () => show(main, state, answer)) : null,
    wide() ? el("button", { ...about, onclick: () => copy(shell, "Command") }, "Copy command") : null,
    counted ? el("a", to(state, another("report")), "Callers and callees") : null,
  );
  const table = new Table({
    label: form.title,
    columns: columns(rows, answer, state, form.column),
    count: rows.length,
    state,
    sort: "name",
    tall: true,
  });
  replace(
    box,
    bar2,
    headline(rows, answer),
    rows.length ? table.node : null,
    remarks(lines, answer),
    has ? null : without(answer),
    answer.instructions.length ? null : withoutInstructions(answer),
  );
  replace(main, box);
  table.show(wide() ? table.all.map((c) => c.key) : FEW[form.title], !wide());
  table.filter();
  table.restore();
  if (!state.row && !state.top && !state.sort) table.select(rows.indexOf(hottestOf(rows)), false);
}

export async function draw(main, state, signal) {
  if (!state.fn) return choose(main, state, signal);
  const { since, until, match, scope, dimension } = question(state);
  const params = { since, until, match, scope, dimension, build_id: state.of };
  const path = `/functions/${encodeURIComponent(state.fn)}/addresses`;
  show(main, state, await api.json(api.path(state.build, path, params), signal));
  return undefined;
}
