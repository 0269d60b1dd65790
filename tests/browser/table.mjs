// The table of functions and the pane beside it: numbers stay in sight, the clicked row is the marked one, keys,
// columns.
import { address, builds, check, get, id, open, point, ready, step, visit } from "./page.mjs";

const calc = id("calc");
const ROW = "[role=grid] tbody tr[data-at]";
const MARKED = `${ROW}.active td:first-child a`;

/** Long names give way: every number of the columns that are shown is inside the table's box. */
async function wide(page) {
  const hostile = builds.find((b) => b.name.endsWith("/hostile")).build_id;
  const first = (await get(`api/v1/builds/${id("shapes")}/report?limit=1`)).functions[0].address;
  await visit(page, "");
  for (const [name, query] of [
    ["wide names", `?build=${id("shapes")}`],
    ["wide names and a pane", `?build=${id("shapes")}&fn=${first}`],
    ["hostile names", `?build=${hostile}`],
    ["overview", ""],
    ["functions", "?view=functions"],
    ["live", "?view=processes"],
    ["compare", `?build=${calc}&view=compare&against=${id("shapes")}`],
  ]) {
    await step(page, query);
    const cut = await page.locator("td.n").evaluateAll((cells) => {
      const out = (cell) => {
        if (cell.textContent === "" || cell.clientWidth === 0) return false;
        const box = cell.closest(".scroll, .arcs-box").getBoundingClientRect();
        const words = document.createRange();
        words.selectNodeContents(cell);
        const { left, right } = words.getBoundingClientRect();
        const own = cell.getBoundingClientRect();
        return right > box.right + 1 || left < own.left || right > own.right + 1;
      };
      return cells.filter(out).map((c) => c.textContent);
    });
    point(cut.length === 0, `${name}: no number is cut or out of sight`, cut.slice(0, 9));
  }
  await visit(page, `?build=${calc}`);
  const over = await page.locator(`${ROW} .share`).evaluateAll((all) => {
    const meter = (s) => parseFloat(getComputedStyle(s, "::after").width);
    const end = (s) => {
      const words = document.createRange();
      words.selectNodeContents(s);
      return words.getBoundingClientRect().right;
    };
    return all.filter((s) => !(meter(s) > 0) || end(s) > s.getBoundingClientRect().right - meter(s)).length;
  });
  point(over === 0, "bars stand beside the digits", over);
}

/** The report that theme.js asks for before the page's code is there is the one that the table shows. */
async function once(page) {
  const asked = [];
  const listen = (request) => request.url().includes("limit=0") && asked.push(request.url());
  page.on("request", listen);
  for (const more of ["", `&since=now-1d&match=${encodeURIComponent('version=~"1.*"')}&time=calls`])
    await visit(page, `?build=${calc}${more}`);
  page.off("request", listen);
  point(asked.length === 2, "table: the report is asked for once", asked);
}

async function marked(page) {
  await visit(page, `?build=${calc}`);
  for (const name of ["parse_term", "make_expression"]) {
    await page.locator(`${ROW} td:first-child a`, { hasText: name }).click();
    await ready(page);
    const shown = [await page.locator(MARKED).textContent(), await page.locator(".pane h2").textContent()];
    point(
      shown.every((t) => t === name),
      `${name}: the name that was clicked is the marked row`,
      shown,
    );
  }
  const callee = page.locator(".butterfly > :nth-child(2) tbody a").first();
  const name = await callee.textContent();
  await callee.click();
  await ready(page);
  point((await page.locator(MARKED).textContent()) === name, "and so is the row of a callee", name);
}

async function keys(page) {
  await visit(page, `?build=${calc}`);
  const all = await page.locator(ROW).count();
  await page.keyboard.press("/");
  await page.keyboard.type("parse");
  await address(page, "q", "parse");
  const found = await page.locator(ROW).count();
  await page.keyboard.press("Escape");
  await address(page, "q", "");
  const back = [await page.inputValue("#filter"), await page.locator(ROW).count()];
  point(found < all && back.join() === `,${all}`, "Escape empties the filter, and all rows are back", [
    found,
    all,
    back,
  ]);
  await page.keyboard.press("Escape");
  point(await page.evaluate(() => document.activeElement.matches("[role=grid]")), "and leaves it when it is empty");
  await page.keyboard.press("/");
  await page.keyboard.type("parse_n");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".pane dl");
  await ready(page);
  point((await page.locator(".pane h2").textContent()) === "parse_number", "/, a name and Enter open the function");
  await page.locator("[role=grid]").focus();
  await page.keyboard.press("Escape");
  await address(page, "fn", "");
  point(!(await page.locator(".pane").isVisible()), "Escape closes it");
}

async function columns(page) {
  const heads = () => page.locator("[role=grid] thead button").allTextContents();
  await visit(page, `?build=${calc}`);
  const before = await heads();
  await page.locator("#columns").press("Enter");
  await check(page, "choice of columns");
  await page.locator("#col-percent").uncheck();
  await page.locator("#col-build").uncheck();
  const after = await heads();
  const gone = before.filter((t) => !after.includes(t));
  point(gone.join() === "Total %,In", "columns are chosen", after);
  await page.waitForFunction(() => {
    const cols = (new URLSearchParams(location.search).get("cols") ?? "build").split(",");
    return !cols.includes("percent") && !cols.includes("build");
  });
  await page.reload();
  await ready(page);
  point((await heads()).join() === after.join(), "and a reload shows the same", await heads());
}

/** Calls of a callee in each call of its caller, on both sides of a function. */
async function perCall(page) {
  const report = await get(`api/v1/builds/${calc}/report?limit=0`);
  const uncalled = new Set(report.functions.filter((g) => g.calls === 0).map((g) => g.name));
  const f = report.functions.find((g) => g.callees.length > 1 && g.callers.some((a) => uncalled.has(a.name)));
  await visit(page, `?build=${calc}&fn=${f.address}`);
  const cells = (side) =>
    page
      .locator(`.butterfly > :nth-child(${side}) tbody tr`)
      .evaluateAll((rows) =>
        rows.map((r) => [
          r.cells[0].querySelector("a")?.textContent,
          Number(r.cells[2].textContent.replaceAll(",", "")),
        ]),
      );
  const sums = new Map(report.functions.map((g) => [g.name, g.calls + g.self_calls]));
  const right = (rows, arcs, per) =>
    arcs.every((a) => rows.some(([name, n]) => name === a.name && Math.abs(n - per(a)) <= 0.006 + n * 0.006));
  const callees = await cells(2);
  point(
    right(callees, f.callees, (a) => a.calls / (f.calls + f.self_calls)),
    "callees: calls in each call",
    callees,
  );
  const shown = await page.locator(".pane").textContent();
  point(!/Infinity|NaN|undefined/.test(shown), "what cannot be divided is left out", shown);
  const callers = await cells(1);
  const named = f.callers.filter((a) => sums.get(a.name) > 0);
  point(
    right(callers, named, (a) => a.calls / sums.get(a.name)),
    "callers: calls in each call of theirs",
    callers,
  );
}

/** Measured or by calls: the total is that of the choice, with its interval. */
async function measured(page) {
  if (!builds.some((b) => b.name.endsWith("/counted"))) return; // there is no collector
  const report = await get(`api/v1/builds/${id("counted")}/report?limit=0`);
  const heads = async () =>
    (await page.locator("[role=grid] thead th").allTextContents()).map((t) => t.replace(/ [↑↓]$/, ""));
  await visit(page, `?build=${report.build_id}&sort=total`);
  point((await heads()).includes("Total, 95 % interval"), "table: measured times have intervals", await heads());
  const about = await page.locator(`${ROW} td span[title*=stack]`).first().getAttribute("title");
  point(/\d stacks?; by calls/.test(about), "table: and say from how many stacks", about);
  const f = report.functions.find((g) => g.name === "callee");
  await visit(page, `?build=${report.build_id}&fn=${f.address}&of=${f.build_id === report.build_id ? "" : f.build_id}`);
  const pane = await page.locator(".pane").textContent();
  point(/Total, measured/.test(pane) && /stacks?/.test(pane), "pane: the total is measured", pane);
  const each = await page
    .locator(".butterfly > :nth-child(1) tbody tr", { hasText: "huge" })
    .locator("td")
    .allTextContents();
  point(/^\d.*[nµm]?s$/.test(each.at(-1)), "pane: a call from each caller has its measured time", each);
  const bare = page.locator(ROW, { hasText: "_start" }).first();
  point(
    (await bare.textContent()).includes("–"),
    "table: calls that were not counted are no 0",
    await bare.textContent(),
  );
  const calls = page.locator("#times");
  await calls.selectOption("calls");
  await address(page, "time", "calls");
  await ready(page);
  point(!(await heads()).includes("Total, 95 % interval"), "table: times by calls have none", await heads());
  point(
    /divided among its callers/.test(await page.locator(".pane").textContent()),
    "pane: says that they are divided",
  );
}

/** Each value of a label has a column: self time in percent of its own. */
async function split(page) {
  await visit(page, `?build=${calc}`);
  await page.locator("#split").selectOption("version");
  await address(page, "split", "version");
  await ready(page);
  const heads = await page.locator("[role=grid] thead th").allTextContents();
  const at = heads.indexOf("1.0");
  point(
    at > 0 && heads.includes("1.1") && heads.some((t) => t.startsWith("Calls")),
    "split: columns for each value",
    heads,
  );
  const part = await get(`api/v1/builds/${calc}/report?limit=0&match=${encodeURIComponent('version="1.0"')}`);
  const rows = await page
    .locator(ROW)
    .evaluateAll((all, k) => all.map((r) => [r.cells[0].querySelector("a").textContent, r.cells[k].textContent]), at);
  const own = (name) => (100 * (part.functions.find((f) => f.name === name)?.self_seconds ?? 0)) / part.totals.seconds;
  const wrong = rows.filter(([name, text]) => Math.abs(parseFloat(text) - own(name)) > 0.06 * own(name) + 0.01);
  point(rows.length > 5 && wrong.length === 0, "split: with its own share of self time", wrong);
}

/** A column that is chosen: calls in each call of the callers. */
async function perCaller(page) {
  const report = await get(`api/v1/builds/${calc}/report?limit=0`);
  const sums = new Map(report.functions.map((g) => [g.name, g.calls + g.self_calls]));
  await visit(page, `?build=${calc}`);
  await page.locator("#columns").press("Enter");
  await page.locator("#col-percaller").check();
  const at = (await page.locator("[role=grid] thead th").allTextContents()).indexOf("Calls/caller");
  const rows = await page
    .locator(ROW)
    .evaluateAll((all, k) => all.map((r) => [r.cells[0].querySelector("a").textContent, r.cells[k].textContent]), at);
  const wrong = rows.filter(([name, text]) => {
    const f = report.functions.find((g) => g.name === name);
    const callers = new Set(f.callers.filter((r) => r.calls > 0 && r.name !== name).map((r) => r.name));
    const calls = [...callers].reduce((sum, caller) => sum + (sums.get(caller) ?? 0), 0);
    const wanted = calls > 0 ? f.calls / calls : Number.NaN;
    const shown = parseFloat(text.replaceAll(",", "").replace("<", ""));
    return calls > 0 ? !(Math.abs(shown - wanted) <= 0.006 * Math.max(1, wanted)) : text !== "";
  });
  point(at > 0 && rows.length > 5 && wrong.length === 0, "table: calls in each call of the callers", wrong);
}

/** A time of a sampled call is not known; functions of programs that count their calls have one. */
async function sampled(page) {
  await visit(page, "?view=functions");
  const titles = await page.locator("[role=grid] thead th").allTextContents();
  const [calls, each] = ["Calls", "Self/call"].map((title) => titles.indexOf(title));
  const rows = await page
    .locator("[role=grid] tbody tr[data-at]")
    .evaluateAll((all, at) => all.map((tr) => at.map((i) => tr.children[i].textContent)), [calls, each]);
  const marked = rows.filter(([text]) => text.startsWith("~"));
  const [counted, known] = [rows.filter(([text]) => /^[1-9]/.test(text)), rows.filter(([, time]) => /\d/.test(time))];
  const timed = marked.filter(([, time]) => /\d/.test(time));
  point(
    each > 0 && marked.length > 0 && timed.length === 0 && counted.length > 0 && known.length > 0,
    "functions: no time per sampled call, and no mark on calls that were counted",
    [titles, rows],
  );
}

async function phone() {
  const page = await open({ viewport: { width: 390, height: 844 } });
  await visit(page, `?build=${id("shapes")}`);
  await page.locator(`${ROW} td:first-child a`).nth(2).click();
  await page.waitForSelector(".pane dl");
  await ready(page);
  const top = await page.locator(".pane").evaluate((p) => p.getBoundingClientRect().top);
  point(top >= -2 && top < 200, "phone: a function that is opened is in sight", top);
  await page.locator("#pane-close").click();
  await address(page, "fn", "");
  await ready(page);
  const row = await page.locator(`${ROW}.active`).evaluate((r) => r.getBoundingClientRect().top);
  point(row > 0 && row < 844, "phone: and after it is closed, its row is", row);
  await page.context().close();
}

export async function table() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  const parts = [wide, once, marked, keys, columns, perCall, perCaller, measured, split, sampled];
  for (const part of parts) await part(page);
  await page.context().close();
  await phone();
}
