// Functions that no process entered: code that may be dead, largest first, and how sure that is.
import * as api from "./api.js";
import { unfiltered } from "./choices.js";
import { el, replace, say } from "./dom.js";
import * as format from "./format.js";
import { another, go, question, to } from "./state.js";
import { BESIDE, column, fitted, listing, numbers } from "./table.js";

const MOST = 2000; // rows
const FEW = ["bytes"]; // columns where there is little space
const OTHER = "Another copy of this function was called; this one was not";
const INLINED = "Other functions have copies of its code, which count no calls: it may have run";

/** The code of a function: its lines, where they are known. */
const whereIs = (row) => ({ ...another("code"), fn: row.address, of: "" });

const bytes = (n) => (n >= 10240 ? `${format.count(Math.round(n / 1024))} KiB` : `${format.count(n)} B`);

function columns(rows, state) {
  const chip = (title, text) => el("span.chip", { title }, text);
  const name = (row, space) => {
    const link = { ...to(state, whereIs(row)), tabIndex: -1, title: row.function };
    const left = space - (row.entered_elsewhere ? 130 : 0) - (row.inlined ? 80 : 0);
    return [
      el("a", link, fitted(format.shortName(row.function), left)),
      row.entered_elsewhere ? chip(OTHER, "other copy ran") : null,
      row.inlined ? chip(INLINED, "inlined") : null,
    ];
  };
  const file = (row) => el("span", { title: row.file }, format.base(row.file) || "–");
  const size = { width: 7, hint: "of its machine code, with all copies that were not called" };
  const all = [
    column("name", "Function", { value: (row) => row.function, cell: name }),
    numbers("bytes", "Size", { cell: (row) => bytes(row.bytes), ...size }),
    numbers("copies", "Copies", { hint: "clones that the compiler made, and that were not called" }),
    column("address", "Address", { cell: (row) => el("code", row.address), width: 9, rare: 1 }),
    column("file", "File", { cell: file, width: innerWidth < BESIDE ? 12 : 18 }),
  ];
  return rows.some((row) => row.copies > 1) ? all : all.filter((c) => c.key !== "copies");
}

/** Functions of which not all copies are known not to have run. */
const othersText = (n) => `${format.count(n)} of which another copy ran, or that were inlined`;

/** What can be said of all of them, and how sure it is. */
function headline(answer) {
  const { functions, counted_functions: counted, bytes: size, processes_started: processes, bound } = answer;
  const some =
    `${format.count(functions)} of ${format.several(counted, "function", "functions")} that count their calls ` +
    `were never called: ${bytes(size)} of code.`;
  const seen = format.several(processes, "process", "processes");
  const sure =
    bound === null
      ? ` Seen in ${seen}, in which calls may have been lost, so some of them may have run.`
      : ` With 95 % confidence, each runs in fewer than ${format.percent(100 * bound, 10)} of processes ` +
        `(none of ${seen} entered it).`;
  const others = answer.row_count - functions;
  const copies = others > 0 ? ` Listed, too: ${othersText(others)}.` : "";
  const known = answer.symbols === "yes" ? "" : " Only exported functions have names; of the others nothing is known.";
  return el("p.answer", el("strong", some), sure, copies, known);
}

function empty(answer, state) {
  if (answer.counted_functions > 0) return "Every function that counts its calls was called.";
  if (answer.symbols !== "yes") {
    return [
      "No function of this build that counts its calls has a name. Its executable or debug file has them: ",
      el("code", "profctl symbols FILE"),
    ];
  }
  return [
    "No function of this build counts its calls, so none is known not to be called. Compile with ",
    el("code", "-pg"),
    ". ",
    unfiltered(state),
  ];
}

export async function draw(main, state, signal) {
  const { since, until, match, scope } = question(state);
  const answer = await api.json(
    api.path(state.build, "/never-called", { since, until, match, scope, limit: MOST }),
    signal,
  );
  const { rows, functions } = answer;
  const bar = (...more) => el("div.bar.compare", el("h2", "Never called"), more);
  if (rows.length === 0) {
    replace(main, bar(), el("p.empty", empty(answer, state)));
    return;
  }
  const told = (_, shown) => {
    const whole = shown.filter((i) => !rows[i].entered_elsewhere && !rows[i].inlined).length;
    const others = shown.length > whole ? `, and ${othersText(shown.length - whole)}` : "";
    say(`${format.count(whole)} of ${format.several(functions, "function", "functions")} never called${others}`);
  };
  const { table, filter, show } = listing({
    about: "Filter functions",
    text: (row) => `${row.function} ${row.file}`,
    told,
    few: FEW,
    label: "Functions never called",
    columns: columns(rows, state),
    rows,
    state,
    sort: "bytes",
    open: (row) => go(whereIs(row)),
  });
  const cut = `Only the ${format.count(MOST)} largest of ${format.count(answer.row_count)} are listed. `;
  const note = "Code that was inlined into another function may have run. Start-up code is left out.";
  const hint = el("p.hint", answer.row_count > rows.length ? cut : "", note);
  replace(main, bar(filter), headline(answer), table.node, hint);
  show();
}
