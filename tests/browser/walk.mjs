// By keyboard alone through every view; what is shown is compared with what the interface says.
import { address, check, get, id, open, point, ready, step, tabTo, text, visit } from "./page.mjs";

const calc = await get(`api/v1/builds/${id("calc")}/report?limit=0`);
const member = calc.functions.find((f) => f.cycle === 1);
const parameter = (page, name) => new URL(page.url()).searchParams.get(name) ?? "";
const GRID = "table[role=grid]";

async function fromBuilds(page) {
  await visit(page, "");
  point((await page.locator(`${GRID} tbody tr[data-at]`).count()) > 3, "overview: programs have rows");
  await page.keyboard.press("Tab");
  point(
    (await page.evaluate(() => document.activeElement.className)) === "skip",
    "keyboard: the first stop skips to the content",
  );
  point(
    await page.evaluate(
      () =>
        document.activeElement.getBoundingClientRect().left >= 0 &&
        getComputedStyle(document.activeElement).outlineStyle !== "none",
    ),
    "and is seen while it has the focus",
  );
  await page.keyboard.press("/");
  await page.keyboard.type("calc");
  point((await page.locator("tbody tr[data-at]").count()) === 1, "keyboard: / filters builds");
  point(await tabTo(page, GRID), "keyboard: Tab reaches the table");
  await page.keyboard.press("Enter");
  await page.waitForSelector("text=functions");
  point(
    parameter(page, "build") === id("calc"),
    "keyboard: Enter opens the build, and the address says so",
    page.url(),
  );
  await page.waitForSelector(`${GRID} tbody tr[data-at]`);
  await ready(page);
}

async function inTable(page) {
  const self = new Map(calc.functions.map((f) => [f.name, f.self_seconds]));
  const names = () => page.locator(`${GRID} tbody tr[data-at] td:first-child a`).allTextContents();
  const shown = await names();
  point(
    shown.length === self.size &&
      shown.every((name, i) => self.has(name) && (i === 0 || self.get(shown[i - 1]) >= self.get(name))),
    "table: the report's functions, by self time",
    shown,
  );
  point(
    await page.evaluate(
      () =>
        [...document.querySelectorAll("[role=grid] tr[aria-rowindex]")].every(
          (r, i) => Number(r.getAttribute("aria-rowindex")) === i + 1,
        ) &&
        document.querySelector("[role=grid]").getAttribute("aria-rowcount") ===
          String(document.querySelectorAll("[role=grid] tr[aria-rowindex]").length),
    ),
    "table: rows are numbered for screen readers, the head too",
  );
  await tabTo(page, "thead th:nth-child(1) button");
  await page.keyboard.press("Enter");
  point(
    (await names()).join() === [...shown].sort((a, b) => (a < b ? -1 : 1)).join() &&
      (await page.getAttribute("thead th:nth-child(1)", "aria-sort")) === "ascending",
    "keyboard: a column's title sorts",
    await names(),
  );
  point(
    await page.evaluate(() => document.activeElement.matches("thead th:nth-child(1) button")),
    "and keeps the focus",
  );
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  point((await names()).join() === shown.join(), "and another one by self time again", await names());
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Shift+Tab");
  point(await page.evaluate((s) => document.activeElement.matches(s), GRID), "keyboard: the table is one stop");
  for (const key of ["End", "Home", "ArrowDown"]) await page.keyboard.press(key);
  const active = await page.evaluate(() =>
    document
      .getElementById(document.querySelector("[role=grid]").getAttribute("aria-activedescendant"))
      .getAttribute("aria-rowindex"),
  );
  point(active === "3", "keyboard: End, Home and arrows move the active row", active);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".pane dl");
  await ready(page);
  const second = await page.locator("tr.active td:first-child a").first().textContent();
  point((await text(page, ".pane h2")) === second, "keyboard: the second row's function is opened", second);
  point(await page.evaluate((s) => document.activeElement.matches(s), GRID), "and the table keeps the focus");
}

async function inFunction(page) {
  await visit(page, `?build=${id("calc")}&fn=${member.address}`);
  const arcs = await page.locator(".butterfly tbody tr").allTextContents();
  const all = (rows) =>
    rows.every((r) => arcs.some((t) => t.includes(r.name) && t.includes(r.calls.toLocaleString("en"))));
  point(all(member.callers) && all(member.callees), "butterfly: every caller and callee with its exact calls", arcs);
  await tabTo(page, "details.cycle summary");
  await page.keyboard.press("Enter");
  await page.waitForSelector("details.cycle table");
  const members = await page.locator("details.cycle table").first().locator("tbody tr").count();
  point(members === calc.cycles[0].members.length, "cycle: opens in place and shows its members", members);
  const path = `api/v1/builds/${id("calc")}/functions/${member.address}/series?step=1m`;
  const series = await get(path);
  await tabTo(page, "#series summary");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#series tbody tr");
  const rows = await page.locator("#series tbody tr").allTextContents();
  point(
    rows.length === series.rows.length && series.rows.every((r, i) => rows[i].includes(r.calls.toLocaleString("en"))),
    "series: the calls of each step, as the interface says",
    rows,
  );
  point((await page.locator("#series figure svg").count()) === 3, "series: pictures of self, total and calls");
  const step = page.locator("#step");
  await step.focus();
  await page.keyboard.press("End");
  await address(page, "step", "7d");
  await ready(page);
  point(await page.evaluate(() => document.activeElement.id === "step"), "series: the choice of steps keeps the focus");
  point(
    (await page.locator("#series tbody tr").count()) === (await get(path.replace("1m", "7d"))).rows.length,
    "series: another step, by keyboard",
  );
  point(await tabTo(page, ".butterfly tbody a"), "keyboard: Tab reaches the callers");
  await page.keyboard.press("Enter");
  await ready(page);
  point(
    parameter(page, "fn") !== member.address && (await text(page, ".pane h2")) !== member.name,
    "butterfly: a caller is one step away",
    page.url(),
  );
  await page.goBack();
  await ready(page);
  point((await text(page, ".pane h2")) === member.name, "the browser's Back goes back");
}

async function inGraph(page) {
  await page.keyboard.press("2");
  await page.waitForSelector("svg.graph .node");
  await ready(page);
  const nodes = await page.locator("svg.graph .node").count();
  point(await tabTo(page, "svg.graph .node.cycle"), "graph: Tab reaches the cycle");
  await page.keyboard.press("Enter");
  await page.waitForFunction((n) => document.querySelectorAll("svg.graph .node").length > n, nodes);
  await ready(page);
  point(
    (await page.locator("svg.graph .node").count()) === nodes - 1 + calc.cycles[0].members.length,
    "graph: the cycle opens in place",
  );
  await visit(page, `?build=${id("calc")}&view=graph&nodes=2`);
  const folded = await page.locator("svg.graph .node.cycle title").first().textContent();
  const [whole] = calc.cycles;
  point(
    folded.includes(`${whole.members.length} functions`) &&
      folded.includes(`${whole.calls_inside.toLocaleString("en")} among its members`),
    "graph: a folded cycle has the report's numbers when two functions are shown",
    folded,
  );
  const two = await get(`api/v1/builds/${id("calc")}/report?format=graph&limit=2`);
  const outside = new Set(two.nodes.filter((n) => !n.cycle).map((n) => n.id));
  const others = two.edges.filter((e) => outside.has(e.source) && outside.has(e.target)).length;
  point(
    (await page.locator("svg.graph .edge").count()) === whole.callers.length + whole.callees.length + others,
    "graph: and its callers and callees are drawn",
    await page.locator("svg.graph .node").allTextContents(),
  );
  await page.goBack();
  await ready(page);
  const camera = () => page.getAttribute("svg.graph", "viewBox");
  point(await tabTo(page, "svg.graph"), "graph: Tab reaches the picture");
  for (const key of ["+", "ArrowRight", "-", "ArrowDown"]) {
    const before = await camera();
    await page.keyboard.press(key);
    point((await camera()) !== before, `graph: ${key} ${key.length > 1 ? "moves" : "zooms"}`);
  }
  const moved = await camera();
  await address(
    page,
    "at",
    moved
      .split(" ")
      .slice(0, 3)
      .map((n) => Number(n).toFixed(1))
      .join(","),
  ); // of the last key, not of one before
  await page.reload();
  await ready(page);
  const near = (await camera()).split(" ").every((n, i) => Math.abs(n - moved.split(" ")[i]) < 0.2);
  point(
    near && (await page.locator("svg.graph .node.cycle").count()) === 0,
    "graph: a reload shows the same part, the cycle open",
    [moved, await camera()],
  );
  await tabTo(page, "svg.graph");
  await page.keyboard.press("0");
  await tabTo(page, "main details.picture-table summary");
  await page.keyboard.press("Enter");
  await page.waitForSelector("main details tbody tr");
  const answer = await get(`api/v1/builds/${id("calc")}/report?format=graph&limit=40`);
  point(
    (await page.locator("main details tbody tr").count()) === answer.edges.length,
    `graph: the table has the same ${answer.edges.length} arcs`,
  );
  await tabTo(page, "svg.graph .node:not(.cycle)");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".pane dl");
  point(parameter(page, "fn") !== "", "graph: Enter opens a function");
}

async function inFlame(page) {
  await page.keyboard.press("3");
  await page.waitForSelector("svg.flame .box");
  await ready(page);
  point(/synthetic stacks/.test(await text(page)), "flame: says that it is derived");
  await tabTo(page, "svg.flame .box");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => new URLSearchParams(location.search).has("zoom"));
  point(
    (await page.locator("svg.flame .above").count()) > 0,
    "flame: arrows move, Enter zooms, the address remembers",
    page.url(),
  );
  await page.keyboard.press("Escape");
  point((await page.locator("svg.flame .above").count()) === 0, "flame: Escape goes back to the whole");
  point(await tabTo(page, GRID), "flame: Tab reaches the table beside it");
  point((await page.locator(`${GRID} tbody tr[data-at]`).count()) > 3, "flame: its functions as a table");
}

async function inCompare(page) {
  await page.keyboard.press("5");
  await page.waitForFunction(() => document.querySelectorAll("#against option").length > 1);
  await ready(page);
  await page.locator("#against").focus();
  await tabTo(page, "form:has(#against) button");
  await page.keyboard.press("Enter");
  try {
    await page.locator(`${GRID}[aria-label=Differences] tbody .delta`).first().waitFor();
  } catch (error) {
    point(false, "compare: Enter shows what differs", [page.url(), await text(page)]);
    throw error;
  }
  await ready(page);
  const verdicts = await page.locator(`${GRID} tbody .delta`).allTextContents();
  point(
    verdicts.length > 0 && verdicts.every((t) => !/[▲▼+−]/.test(t)),
    "compare: a build differs nowhere from itself",
    [page.url(), verdicts, await page.locator("main").innerText()],
  );
  await tabTo(page, GRID);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".pane dl");
  point(parameter(page, "view") === "report" && parameter(page, "fn") !== "", "compare: Enter opens a row's function");
}

async function brush(page) {
  await visit(page, `?build=${id("calc")}`);
  point(await tabTo(page, "#brush"), "brush: Tab reaches it");
  for (const key of ["End", "Shift+ArrowRight", "ArrowLeft", "ArrowRight", "Shift+ArrowLeft", "Shift+ArrowRight"])
    await page.keyboard.press(key);
  point(
    /UTC to .* UTC/.test(await page.getAttribute("#brush", "aria-valuetext")),
    "brush: it says what is chosen",
    await page.getAttribute("#brush", "aria-valuetext"),
  );
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => new URLSearchParams(location.search).has("since"));
  await ready(page);
  const [since, until] = [parameter(page, "since"), parameter(page, "until")];
  point(
    Date.parse(since) < Date.parse(until) &&
      (await page.inputValue("#since")) === since &&
      Number(await page.getAttribute("svg .brush", "width")) > 0,
    "brush: Enter takes the time; fields and brush show it",
    page.url(),
  );
  await tabTo(page, "#brush");
  await page.keyboard.press("Escape");
  await address(page, "since", "");
  await ready(page);
  point((await page.inputValue("#since")) === "", "brush: Escape takes it away");
}

async function fleet(page) {
  await page.keyboard.press("f");
  await page.waitForSelector(`${GRID}[aria-label^=Functions]`);
  await ready(page);
  const joined = await get("api/v1/functions?limit=1000");
  const first = await page.locator(`${GRID} tbody tr[data-at] td:first-child a`).allTextContents();
  point(
    first[0] === joined.rows[0].name &&
      (await page.getAttribute(GRID, "aria-rowcount")) === String(joined.rows.length + 1),
    "functions: of all builds, by self time",
    first[0],
  );
  point(
    /Not added up/.test(await text(page, "#not-joined").catch(() => "")) ===
      (joined.not_joined.unnamed_functions + joined.not_joined.ambiguous_functions > 0 ||
        joined.not_joined.other_seconds > 0),
    "functions: what did not join is said",
  );
  await page.locator("#service").focus();
  await page.keyboard.press("End");
  await address(page, "match", 'service="uselib"');
  await ready(page);
  const uselib = await get(`api/v1/functions?limit=1000&match=${encodeURIComponent('service="uselib"')}`);
  point(
    (await page.getAttribute(GRID, "aria-rowcount")) === String(uselib.rows.length + 1),
    "functions: of one service",
    await page.getAttribute(GRID, "aria-rowcount"),
  );
  await tabTo(page, GRID);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".pane tbody a");
  await tabTo(page, ".pane tbody a");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".pane dl");
  point(
    parameter(page, "build") === id("uselib") && (await text(page, ".pane h2")) === uselib.rows[0].name,
    "functions: a row leads to its callers and callees",
    page.url(),
  );
  await page.keyboard.press("l");
  await page.waitForSelector("h1:has-text('Live')");
  await ready(page);
  const live = (await get("api/v1/processes")).rows;
  const rows = await page.locator(`${GRID} tbody tr[data-at]`).allTextContents();
  point(
    rows.length === live.length &&
      live.every((p) => rows.some((t) => t.includes(String(p.pid)) && t.includes(p.state))),
    `live: ${live.length} processes with their state`,
    [rows, live],
  );
  if (live.length) {
    const before = await page.locator(GRID).getAttribute("id");
    await page.waitForFunction((b) => document.querySelector("[role=grid]").id !== b, before);
    point(true, "live: the list is asked for again while it is looked at");
    await tabTo(page, "#still");
    await page.keyboard.press("Space");
    const held = () => page.getAttribute("#still", "aria-label");
    point((await held()) === "Resume updates", "live: it can be paused", await held());
    await page.keyboard.press("Space");
    point((await held()) === "Pause updates", "live: and goes on", await held());
    await visit(page, `?build=${live[0].build_id}`);
    await page.waitForSelector("#live");
    const shown = await text(page, "#live");
    point(
      /^As of (\d+ (second|minute)s? ago|now): 1 process was still running\.$/.test(shown),
      "live: a report says how old it is",
      shown,
    );
    const age = await text(page, "#live time");
    await page.waitForFunction((before) => document.querySelector("#live time").textContent !== before, age);
    point(true, "live: and it grows older while it is looked at");
  }
}

/** What was sampled says so, in its own unit. */
async function sampledBuild(page) {
  await visit(page, `?build=${id("sampled")}`);
  const about = async (part) =>
    (await page
      .locator(`#${part}`)
      .textContent()
      .catch(() => "")) ?? "";
  await page.waitForSelector("#coverage", { state: "attached" });
  point(
    (await about("coverage")).startsWith(
      "Overhead: 4.8 % of the ticks were inside the collector, a rough estimate of the time spent counting. " +
        "Coverage 83 % of the CPU time outside the collector is in known objects: 4 s of 4.80 s in 1 process; " +
        "800 ms without ticks: threads block SIGPROF or still ran when their process ended " +
          "(so times of a call are not known), " +
        "200 ms inside the collector, 3 calls lost",
    ),
    "overhead and coverage: their shares, and what was lost",
    await about("coverage"),
  );
  point(
    /Calls are sampled/.test(await about("sampled")) && /Ticks are exact/.test(await about("origin")),
    "sampled calls are said to be sampled",
    await about("origin"),
  );
  point(
    (await page.locator("thead", { hasText: "~Calls" }).count()) > 0 &&
      (await page.locator("tbody [title^=sampled]").allTextContents()).some((t) => t === "~12,345"),
    "and look like it in the table",
    await text(page),
  );
  const titles = await page.locator("thead th").allTextContents();
  point(
    titles.length > 3 && !titles.some((t) => /^(Self|Total)\/call/.test(t)),
    "a time per sampled call is not known, and no empty column says so",
    titles,
  );
  await check(page, "sampled build");
  await page.locator("#dimension").selectOption("cycles");
  await address(page, "dimension", "cycles");
  await ready(page);
  point((await page.inputValue("#dimension")) === "cycles", "the toolbar says which dimension is shown");
  const first = await text(page, "main tbody");
  point(
    /70,?000|70\.0 k/.test(first) && !/ m?s\b/.test(first) && parameter(page, "dimension") === "cycles",
    "another dimension is a step away, in its own unit",
    await text(page),
  );
  for (const view of ["graph", "flame", "tree"]) {
    await step(page, `?build=${id("sampled")}&view=${view}&dimension=cycles`);
    const shown = await text(page);
    point(/70,?000|70\.0 k/.test(shown) && !/\d m?s\b/.test(shown), `${view}: in its own unit, too`, shown);
  }
  await step(page, `?build=${id("sampled")}&view=graph`);
  point(/~12/.test(await text(page)), "graph: sampled calls are marked");
}

/** What is above 0 does not read 0; a number that is rounded up has the next unit. */
async function numbers(page) {
  await step(page, "");
  const cases = [
    [
      "seconds",
      [0, 1e-16, 3.5e-10, 1.5e-7, 9.997e-7, 0.9997, 12.345, 99.996, 3600],
      ["0", "<0.01 ns", "0.35 ns", "150 ns", "1.00 µs", "1.00 s", "12.35 s", "100 s", "1.00 h"],
    ],
    ["percent", [0, 1e-9, 0.04, 0.09996, 50], ["0 %", "<0.001 %", "0.040 %", "0.10 %", "50.00 %"]],
    ["short", [0, 0.0001, 0.25, 9999, 999960, 1e15], ["0", "<0.001", "0.25", "9,999", "1.00 M", "1000 T"]],
    ["rate", [0, 0.0001, 0.25, 812.4, 10000], ["0", "<0.01", "0.25", "812", "10.0 k"]],
  ];
  for (const [name, values, wanted] of cases) {
    const shown = await page.evaluate(
      async ([f, v]) => {
        const format = await import(new URL("src/format.js", document.baseURI));
        return v.map((value) => format[f](value));
      },
      [name, values],
    );
    point(shown.join() === wanted.join(), `${name}: nothing above 0 reads 0`, [shown, wanted]);
  }
  const rough = await page.evaluate(async () => {
    const { percent, seconds } = await import(new URL("src/format.js", document.baseURI));
    return [
      seconds(0.0123, 1),
      seconds(0.1234, 12),
      seconds(1.234, 999),
      seconds(1.234, 1000),
      percent(98.47, 193),
      percent(98.47, 1000),
    ];
  });
  point(
    rough.join() === "10 ms,120 ms,1.2 s,1.23 s,98 %,98.47 %",
    "times and shares have the digits of their ticks",
    rough,
  );
}

/** Long names lose arguments first, then namespaces, then their middle. */
async function names(page) {
  const long = "bool std::_Map<…>::operator()(int) const";
  const cases = [
    ["clip", ["storefront::parsing::Sum::evaluate() const", 34], "storefront::parsing::Sum::evaluate"],
    ["clip", ["storefront::parsing::Sum::evaluate() const", 28], "…::parsing::Sum::evaluate"],
    ["clip", ["storefront::parsing::Sum::evaluate() const", 22], "parsing::Sum::evaluate"],
    ["clip", ["__memcpy_avx512_unaligned_erms", 20], "__memcpy_a…gned_erms"],
    ["clip", ["operator new(unsigned long)", 22], "operator new"],
    ["clip", [long, 20], "_Map<…>::operator()"],
    ["clip", ["(anonymous namespace)::go(int)", 25], "(anonymous namespace)::go"],
    ["called", ["void std::sort<int*, less<int> >(int*, int*, void (*)(int)) [clone .isra.0]"], "std::sort<…>"],
    ["called", ["f(void (*)(int)) const"], "f"],
    ["called", ["main"], "main"],
    ["called", ["no symbol (libjson.so)"], "no symbol (libjson.so)"],
  ];
  const shown = await page.evaluate(async (all) => {
    const format = await import(new URL("src/format.js", document.baseURI));
    return all.map(([f, values]) => format[f](...values));
  }, cases);
  const wrong = cases.filter(([, , wanted], i) => shown[i] !== wanted).map((c) => c[1]);
  point(wrong.length === 0, "names: what is left of a long one", [wrong, shown]);
}

/** A program that ended before its first tick. */
async function unticked(page) {
  const shown = await page.evaluate(
    async (path) => {
      const report = await (await fetch(new URL(path, document.baseURI))).json();
      Object.assign(report.totals, { ticks: 0, seconds: 0 });
      Object.assign(report.collector, {
        sampled_seconds: 0,
        collector_seconds: 0,
        cpu_seconds: 0.0004,
        coverage: 0,
        overhead: null,
        overhead_below: null,
      });
      const { headline, truth } = await import(new URL("src/origin.js", document.baseURI));
      return [headline(report), truth(report)]
        .flat(3)
        .map((node) => node?.textContent ?? "")
        .join("\n");
    },
    `api/v1/builds/${id("sampled")}/report?view=flat&limit=1`,
  );
  point(
    /^No ticks, not all calls were counted, /.test(shown) &&
      /\nCoverage unknown: no tick in 400 µs of CPU time in 1 process, so no times are known[;.]/.test(shown),
    "without ticks no times are known",
    shown,
  );
}

/** On paper the call tree has every row that is open, and no other. */
async function openRows(page) {
  await page.emulateMedia({ media: "screen" });
  await visit(page, `?build=${id("stacks100")}&view=tree`);
  await page.getByRole("button", { name: "Open all" }).press("Enter");
  await page.evaluate(() => (document.querySelector(".scroll.treegrid").style.height = "60px"));
  const rows = () => page.locator("[role=treegrid] tr[data-at]").count();
  const all = Number(await page.getAttribute("[role=treegrid]", "aria-rowcount")) - 1;
  await page.waitForFunction((n) => document.querySelectorAll("[role=treegrid] tr[data-at]").length < n, all);
  const before = await rows();
  await page.emulateMedia({ media: "print", reducedMotion: "reduce" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  point((await rows()) === all && before < all, `print: all ${all} open rows of the call tree`, [before, await rows()]);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
}

/** On paper: no controls, every row and not only those in sight. */
async function paper(page) {
  await visit(page, "?view=functions");
  await page.evaluate(() => (document.querySelector(".scroll.tall").style.height = "60px"));
  await page.waitForFunction(
    (all) => document.querySelectorAll("[role=grid] tbody tr[data-at]").length < all,
    Number(await page.getAttribute(GRID, "aria-rowcount")) - 1,
  );
  const rows = () => page.locator(`${GRID} tbody tr[data-at]`).count();
  const all = Number(await page.getAttribute(GRID, "aria-rowcount")) - 1;
  await page.emulateMedia({ media: "print", reducedMotion: "reduce" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  point(
    (await rows()) === all && !(await page.isVisible("header")) && !(await page.isVisible("#filter")),
    `print: all ${all} rows, no controls`,
    await rows(),
  );
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await openRows(page);
  point(
    (await page.evaluate(() => getComputedStyle(document.querySelector(".menu > summary")).transitionDuration)) ===
      "0s",
    "reduced motion: nothing moves by itself",
  );
  await page.emulateMedia({ media: "screen", reducedMotion: null });
}

export async function walk() {
  const page = await open();
  for (const part of [
    fromBuilds,
    inTable,
    inFunction,
    inGraph,
    inFlame,
    inCompare,
    brush,
    fleet,
    sampledBuild,
    numbers,
    names,
    unticked,
    paper,
  ])
    await part(page);
  await page.keyboard.press("?");
  point(await page.locator("#help").evaluate((d) => d.open), "? shows the keys");
  await page.keyboard.press("Escape");
  point(!(await page.locator("#help").evaluate((d) => d.open)), "and Escape puts them away");
  await page.context().close();
}
