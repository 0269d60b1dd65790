// The code of one function: where ticks fell and what was called, by source line, by instruction or by address. The
// text of the lines is with the reader: files that are opened stay in this browser.
import * as api from "./api.js";
import { instructionsOf } from "./code_instructions.js";
import { folded, interval, linesOf, withText } from "./code_lines.js";
import { keepSources, readSources, sourceOf } from "./code_source.js";
import { button, copy, el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { command } from "./share.js";
import { another, functionAt, links, note, question, to } from "./state.js";
import { BESIDE, column, NARROW, numbers, Table } from "./table.js";
import { bar, fitting } from "./report_columns.js";
import { load } from "./view_report.js";

const WIDTHS = { bars: true, width: 9.2, slim: 5.6 };
const FEW_NAMES = 5; // of files, in a sentence
const OFFERED = 12; // functions to choose from
// Columns where there is little space; the number of calls of an instruction then stands beside their callee.
const FEW = { Instructions: ["ticks"], Lines: ["ticks", "calls"], Addresses: ["ticks", "calls"] };
const INSTRUCTIONS = "instructions"; // forms of the address bar; without one: lines, where they are known
const ADDRESSES = "addresses";
const SELF =
  "time of the ticks that fell here, and its part of the function; ~: a bin of the histogram covers several lines, " +
  "and is divided by their bytes";
const RANGE = "within which the time is, as ticks are a sample of it";
const SKID = "The ticks of a slow instruction are counted at the instruction that runs after it. ";
const UNOPENED = "To see the text of the lines, open or drop the source files. They stay in this browser.";
const WIDE = 1300; // pixels of a window that has space for intervals beside instructions
const UNSURE = "The debug information has no MD5, so profd cannot tell whether it was compiled. ";

const wide = () => innerWidth >= NARROW;

/** A source that the reader opened: files have their names without folders there. */
const openedOf = (file, answer) => sourceOf(answer.function.build_id, format.base(file));

/** The lines of a file that was opened; undefined where none was, or where it is not the one that was compiled. */
function textOf(file, answer) {
  const opened = file && openedOf(file, answer);
  const known = answer.files.filter((f) => f.file === file);
  return opened && (!known.length || known.some((f) => f.md5 === opened.md5)) ? opened.lines : undefined;
}

const titleOf = (name) => (wide() ? format.called(name) : format.clip(format.shortName(name), 28));

/** The share of the function's own time. */
const partOf = ({ seconds }, { function: f, ticks, seconds: all }) =>
  format.share((100 * seconds) / (f.self_seconds || 1), ticks * (f.self_seconds / (all || 1)));

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

/** Lines by file, below the name and the time of each, with the text of those that were opened; below each line what it
 *  calls. */
function linesShown(lines, answer) {
  const files = Map.groupBy(lines.rows, (row) => row.file);
  const lineOf = (row) => {
    if (row.gap) return [{ ...row, name: "⋯", title: "lines without code of this function" }];
    const number = row.last ? `${row.line} … ${row.last}` : row.line;
    const place = row.file ? `${format.base(row.file)}:${number}` : "no line known";
    const name = row.text === undefined ? place : String(row.line); // the text needs the space
    const title = row.file ? `${row.file}:${number}` : "bytes without a line in the debug information";
    return [{ ...row, place, name, title }, ...row.callees.map((call) => ({ call, calls: call.calls, name: "" }))];
  };
  return [...files].flatMap(([file, rows]) => {
    const text = textOf(file, answer);
    const shown = (text ? withText(rows, file, text) : folded(rows)).flatMap(lineOf);
    const whole = rows.reduce((sum, row) => sum + row.seconds, 0);
    return file ? [{ path: file, whole, estimated: rows.some((row) => row.estimated) }, ...shown] : shown;
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
  const shared = () => el("span.chip", { title: "These bytes belong in part to another function" }, "shared");
  const texts = rows.some((row) => row.text !== undefined);
  const times = (c) =>
    wide() || title === "Address" || (title === "Line" && !texts) ? null : `×${format.short(c.calls)}`;
  const most = format.largest(rows.map((row) => (row.path ? 0 : (row.seconds ?? 0)))) || 1;
  const share = (seconds) => ({ "--share": `${((100 * seconds) / most).toFixed(1)}%` });
  const hot = (seconds) => (seconds > 0 ? { style: share(seconds) } : {});
  const cell = ({ path, name, title: about, call, text, shared: of, head, goes, seconds }) => [
    path ? el("code.path", { title: path }, el("bdi", path)) : null,
    path || !name ? null : el("code", { class: head ? "place head" : "place", title: about, ...hot(seconds) }, name),
    path || name ? null : el("span.indent"),
    call ? el("span.callee", "→", calleeLink(call, state), times(call)) : null,
    text === undefined ? null : el("code.text", { title: text, ...hot(seconds) }, text),
    goes ? el("span.callee", calleeLink(goes, state), times(goes)) : null,
    of ? shared() : null,
  ];
  const order = new Map(rows.map((row, i) => [row, String(i).padStart(8, "0")]));
  return column("name", title, { width: wide() ? undefined : 8, value: (row) => order.get(row), cell });
}

function columns(rows, answer, state, title) {
  const own = answer.function.self_seconds || 1;
  const amount = format.amounts(answer.dimension, answer);
  const tick = answer.ticks > 0 ? answer.seconds / answer.ticks : 0;
  const mark = (row) => (row.estimated ? "~" : "");
  const value = (row) => row.ticks || -1;
  const range = (row) => (row.high === undefined ? "" : amount.between(row.low * tick, row.high * tick));
  const self = (row) => {
    if (row.path) return row.whole ? el("strong", mark(row) + amount(row.whole)) : "";
    return row.ticks ? bar(mark(row) + amount(row.seconds), (100 * row.seconds) / own, range(row)) : "";
  };
  const part = ({ ticks, seconds, whole }) => (ticks || whole ? partOf({ seconds: whole ?? seconds }, answer) : "");
  const count = (row) => (row.ticks ? mark(row) + format.count(row.ticks_str ?? Math.round(row.ticks)) : "");
  const calls = {
    value: (row) => row.calls || -1,
    cell: (row) => (row.calls ? callsOf(row.call ?? row, row.most ? "≤ " : "") : ""),
    hint: "from here, counted at the call sites; ≤ where a callee may have jumped to another",
  };
  return [
    nameColumn(rows, state, title),
    numbers("ticks", "Self", { hint: SELF, ...WIDTHS, value, cell: self }),
    numbers("part", "Self %", { value, cell: part, hint: "of the function's own time", width: 5.6 }),
    numbers("range", "95 % interval", { hint: RANGE, width: 9.6, value, cell: range }),
    numbers("count", "Ticks", { value, cell: count }),
    numbers("calls", "Calls", { ...calls, width: wide() ? 8 : 6.8 }),
  ];
}

/** Without a function: the ones with the most time. */
async function choose(main, state, signal) {
  const flat = await load(state.build, { ...question(state), limit: OFFERED, sort: "self" }, signal);
  const c = flat.columns;
  const amount = format.amounts(flat.report.totals.dimension, flat.report.totals);
  const link = (i) => to(state, { fn: c.address[i], of: flat.id(i) === flat.report.build_id ? "" : flat.id(i) });
  const whole = flat.report.totals.seconds || 1;
  const object = (i) => format.base(flat.report.builds[c.build[i]]?.name);
  const offer = (name, i) => {
    const part = (100 * c.self_seconds[i]) / whole;
    const time = bar(`${amount(c.self_seconds[i])}, ${format.share(part, flat.report.totals.ticks)}`, part);
    return el("li", el("a", { ...link(i), title: name }, format.called(name)), time, el("span.hint", object(i)));
  };
  const title = el("div.bar.compare", el("h2", "Code of which function?"));
  const about = el("p.hint", "The functions with the most time in their own code:");
  replace(main, title, about, el("ul.offers.hot", c.name.map(offer)));
}

/** Reads what was opened before for the files of this answer. */
const recall = (answer) =>
  readSources(answer.function.build_id, new Set(answer.lines.map((line) => format.base(line.file))));

/** Opens files or a folder of the reader; then show(). */
async function take(files, wanted, answer, show) {
  const known = new Set(wanted.map(format.base));
  await keepSources(answer.function.build_id, files);
  await recall(answer);
  if ([...files].some((file) => known.has(file.name))) return void show();
  const names = files.length > FEW_NAMES ? format.several(files.length, "file", "files") : "";
  const strange = names || [...files].map((file) => file.name).join(", ");
  say(`No line of this function is in ${strange}: its code is of ${[...known].join(", ")}.`);
}

/** The buttons that open sources, and a box onto which they can be dropped. */
function opener(files, box, answer, show) {
  box.addEventListener("dragover", (event) => event.preventDefault());
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer.files, files, answer, show);
  });
  const open = (id, text, title, more) => {
    const onchange = () => take(field.files, files, answer, show);
    const field = el("input", { type: "file", multiple: true, hidden: true, id, onchange, ...more });
    return [button(text, () => field.click(), { title }), field];
  };
  const folder = "Opens all sources of the program once. They stay in this browser, for all functions of this build.";
  return [
    open("sources", "Open file…", "Shows the text of the lines. The file stays in this browser.", {}),
    wide() ? open("folder", "Open folder…", folder, { webkitdirectory: true }) : null,
  ];
}

/** Names of files that were opened: those that were compiled, those of which that is not known, and others. */
function filesOpened(rows, answer) {
  const opened = [...new Set(rows.map((row) => row.file))].filter((file) => file && openedOf(file, answer));
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
  const behind = rows.filter((row) => row.line > (textOf(row.file, answer)?.length ?? Infinity));
  const short = [...new Set(behind.map((row) => format.base(row.file)))];
  const { sure, unsure, other } = filesOpened(rows, answer);
  return [
    other.length
      ? el(
          "p.warning",
          `${other.join(", ")}: not what was compiled, as the MD5 in the debug information is another one. `,
          "Its text is not shown.",
        )
      : null,
    short.length ? el("p.warning", `${short.join(", ")}: fewer lines than what was compiled had.`) : null,
    el("p.hint", [
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
      unsure.length ? `${unsure.join(", ")}: the file that you opened. ${UNSURE}` : null,
    ]),
  ];
}

/** Why something is not shown, and the command that sends it. */
const missing = (why, command, answer) =>
  el("p.hint", why, el("code", `${command} ${format.quote(answer.function.object || "FILE")}`), ".");
const NO_INSTRUCTIONS = "The instructions of this build are not stored. To store them, send the file: ";
const noLines = () => ["Source lines are not known. Compile with ", el("code", "-g"), " and send the file: "];

const hottestOf = (rows) => rows.reduce((a, b) => ((b.seconds ?? 0) > (a?.seconds ?? 0) ? b : a), null);

/** Where most time is, as a sentence. jump(): goes there. */
function headline(hottest, answer, jump) {
  const f = answer.function;
  if (!hottest) {
    const none = f.calls > 0 ? "No tick fell into this function" : "No call and no tick of this function was seen";
    return el("p.answer", el("strong", `${none}.`));
  }
  const amount = format.amounts(answer.dimension, answer);
  const text = wide() && hottest.bytes && hottest.text ? ` ${hottest.text}` : "";
  const place = button(`${hottest.place ?? hottest.name}${text}`, jump, { class: "link", title: "Go there" });
  const time = `${hottest.estimated ? "~" : ""}${amount(hottest.seconds)} of ${amount(f.self_seconds)}`;
  return el("p.answer", el("strong", "Most time is at ", place, `: ${time}, ${partOf(hottest, answer)}.`));
}

/** What can be shown, the usual one first: {form, title, column, rows}. */
function formsOf(lines, answer) {
  const byLine = { form: "lines", title: "Lines", column: "Line", rows: () => linesShown(lines, answer) };
  const byCode = { form: INSTRUCTIONS, title: "Instructions", column: "Instruction" };
  const byAddress = { form: ADDRESSES, title: "Addresses", column: "Address", rows: () => addressesOf(answer) };
  return [
    ...(answer.lines.length ? [byLine] : []),
    ...(answer.instructions.length ? [{ ...byCode, rows: () => instructionsShown(answer) }] : []),
    byAddress,
  ];
}

/** Links to the others. */
function formLinks(state, forms, now) {
  const changes = (form) => ({ form: form === forms[0] ? "" : form.form, sort: "", dir: "", row: "", top: "" });
  const all = forms.map((form) => [form, form.title]);
  return links("Shown as", all, now, state, changes);
}

/** All instructions beside the lines; those of the line that was chosen are marked. */
class Beside extends Table {
  mark() {
    super.mark();
    for (const row of this.body.rows) row.classList.toggle("of", Boolean(this.row(this.rows[row.dataset.at])?.of));
  }

  /** Marks the instructions of a row of lines, and brings that with most time into sight unless one is active. */
  follow({ file, line, last = line }) {
    for (const row of this.list) row.of = row.file === file && row.line >= line && row.line <= last;
    const most = hottestOf(this.list.filter((row) => row.of));
    if (most && !this.row(this.rows[this.active]).of) this.select(this.list.indexOf(most), false);
    else this.mark();
  }
}

/** chosen(row): one was clicked. */
function instructionsBeside(answer, state, chosen) {
  let head = {};
  const lined = instructionsOf(answer).rows.map((row) => {
    if (row.head) head = row;
    return { ...row, file: head.file, line: head.line };
  });
  const rows = lined.filter((row) => !row.head);
  const shown = columns(rows, answer, state, "Instruction").filter(({ key }) => ["name", "ticks"].includes(key));
  const own = { q: "", sort: "", local: true };
  const about = { label: "All instructions", columns: shown, rows, state: own, sort: "name", tall: true };
  return new Beside({ ...about, open: chosen });
}

function show(main, state, answer) {
  const lines = linesOf(answer);
  const has = answer.lines.length > 0;
  const forms = formsOf(lines, answer);
  const form = forms.find((one) => one.form === state.form) ?? forms[0];
  const rows = form.rows();
  const f = answer.function;
  const shell = command(["annotate", state.build, f.name], state); // has texts where sources and binutils are
  const counted = f.calls > 0 || f.self_calls > 0 || f.self_seconds > 0 || answer.calls.length > 0;
  const files = [...new Set(answer.lines.map((line) => line.file))];
  const box = el("div");
  const again = () => {
    note(state, { row: "", top: "" }); // the rows are others
    show(main, state, answer);
  };
  const bar2 = el(
    "div.bar.compare",
    el("h2.function.one", { title: f.name }, titleOf(f.name)),
    forms.length > 1 ? formLinks(state, forms, form) : null,
    has && form.form !== ADDRESSES ? opener(files, box, answer, again) : null,
    wide() ? button("Copy command", () => copy(shell, "Command"), { title: shell }) : null,
    counted ? el("a", to(state, another("report")), "Callers and callees") : null,
  );
  const hottest = hottestOf(rows);
  const lined = form.form === "lines" && answer.instructions.length && innerWidth >= BESIDE;
  const within = (one, { file, line }) => one.file === file && one.line <= line && line <= (one.last ?? one.line);
  const chosen = (i) => table.select(rows.findIndex((one) => within(one, i)));
  const beside = lined ? instructionsBeside(answer, state, chosen) : null;
  const follow = beside ? (row) => row.line && beside.follow(row) : undefined;
  const table = new Table({
    label: form.title,
    columns: columns(rows, answer, state, form.column),
    rows,
    state,
    sort: "name",
    tall: true,
    open: follow,
    moved: follow,
  });
  const texts = rows.some((row) => row.text !== undefined); // have the place of bars and intervals
  const jump = () => table.select(rows.indexOf(hottest));
  const parts = [table.node, beside?.node];
  replace(
    box,
    bar2,
    headline(hottest, answer, jump),
    rows.length ? el("div", { class: beside ? `split lines ${texts ? "texts" : ""}` : "" }, parts) : null,
    has && form.form !== ADDRESSES && !texts ? el("p.hint", UNOPENED) : null,
    remarks(lines, answer),
    has ? null : missing(noLines(), "profctl symbols", answer),
    answer.instructions.length ? null : missing(NO_INSTRUCTIONS, "profctl symbols --code", answer),
  );
  replace(main, box);
  const full = texts && innerWidth < BESIDE; // the text needs the space
  const left = [
    beside || full ? "count" : "",
    full || (beside && (texts || innerWidth < WIDE)) ? "range" : "",
    rows.some((row) => row.calls) ? "" : "calls",
  ];
  const usual = table.all.map((c) => c.key).filter((key) => !left.includes(key));
  const few = texts ? ["ticks"] : FEW[form.title].filter((key) => !left.includes(key));
  table.show(wide() ? usual : few, !wide() || Boolean(texts && (beside || full)));
  table.filter();
  table.restore();
  if (!state.row && !state.top && !state.sort) table.select(rows.indexOf(hottest), false);
  beside?.draw();
  if (hottest) follow?.(rows[table.rows[table.active]] ?? hottest);
}

export async function draw(main, state, signal) {
  if (!state.fn) return choose(main, state, signal);
  const { since, until, match, scope, dimension } = question(state);
  const params = { since, until, match, scope, dimension, build_id: state.of };
  const path = `/functions/${encodeURIComponent(state.fn)}/addresses`;
  const answer = await api.json(api.path(state.build, path, params), signal);
  await recall(answer);
  show(main, state, answer);
  return undefined;
}
