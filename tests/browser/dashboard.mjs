// The dashboard in a headless Chromium: every view with real data, by keyboard alone, and axe-core finds nothing.
// node dashboard.mjs MODULES BASE-URL [SCREENSHOT-FOLDER]; prints TAP.
import { createRequire } from "node:module";

const [modules, base, shots] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");
let count = 0;
let failed = 0;

function point(ok, name, detail = "") {
  count += 1;
  failed += ok ? 0 : 1;
  console.log(`${ok ? "ok" : "not ok"} ${count} - ${name}`);
  if (!ok && detail !== "") for (const line of String(typeof detail === "string" ? detail : JSON.stringify(detail, null, 1)).split("\n").slice(0, 25)) console.log(`  # ${line}`);
}

const get = async (path) => (await fetch(new URL(path, base))).json();
const builds = (await get("api/v1/builds?limit=1000")).rows;
const id = (name) => builds.find((b) => b.name.endsWith(`/${name}`)).build_id;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });
const errors = [];

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.on("pageerror", (e) => errors.push(e.message));
  page.on("console", (m) => m.type() === "error" && !/404|400/.test(m.text()) && errors.push(m.text()));
  page.on("request", (r) => !r.url().startsWith(base) && !r.url().startsWith("data:") && errors.push(`asks ${r.url()}`));
  return page;
}

async function visit(page, query) {
  await page.goto(base + query);
  await page.waitForFunction(() => !document.querySelector("main [role=status]") && document.querySelector("main")?.children.length > 0);
  await page.waitForLoadState("networkidle");
}

/** axe runs as a user's tool would: outside the page's policy. */
async function check(page, name) {
  await page.evaluate(require("node:fs").readFileSync(axe, "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  point(violations.length === 0, `${name}: axe-core has no complaint`, violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" | ")}`).join("\n"));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  point(wide <= 0, `${name}: the page does not scroll sideways`, wide);
  if (shots) await page.screenshot({ path: `${shots}/${name.replaceAll(/\W+/g, "-")}.png` });
}

const views = [
  ["builds", ""],
  ["table", `?build=${id("calc")}`],
  ["function in a cycle", `?build=${id("calc")}&fn=ADDRESS`],
  ["graph", `?build=${id("calc")}&view=graph`],
  ["flame", `?build=${id("calc")}&view=flame`],
  ["compare", `?build=${id("calc")}&view=compare&against=${id("shapes")}`],
];
const calc = await get(`api/v1/builds/${id("calc")}/report?limit=0`);
const member = calc.functions.find((f) => f.cycle === 1);

for (const [theme, viewport] of [["light", { width: 1280, height: 900 }], ["dark", { width: 1280, height: 900 }], ["light", { width: 390, height: 844 }]]) {
  const page = await open({ colorScheme: theme, viewport });
  for (const [name, query] of views) {
    await visit(page, query.replace("ADDRESS", member.address));
    await check(page, `${name}, ${theme}, ${viewport.width} wide`);
  }
  await page.context().close();
}

const page = await open();
await visit(page, "");
point((await page.locator("table[role=grid] tbody tr[data-at]").count()) === builds.length, "builds: every build has a row");

// By keyboard alone: builds → filter → open → function → cycle → graph → flame → compare → back.
await page.keyboard.press("/");
await page.keyboard.type("calc");
await page.keyboard.press("Escape");
point((await page.locator("tbody tr[data-at]").count()) === 1, "keyboard: / filters builds");
for (let i = 0; i < 30 && (await page.evaluate(() => document.activeElement.getAttribute("role"))) !== "grid"; i++) await page.keyboard.press("Tab");
await page.keyboard.press("Enter");
await page.waitForSelector("text=functions");
point(new URL(page.url()).searchParams.get("build") === id("calc"), "keyboard: Enter opens the build, and the address says so", page.url());
await page.waitForSelector("table[role=grid] tbody tr[data-at]");
const self = new Map(calc.functions.map((f) => [f.name, f.self]));
const shown = await page.locator("table[role=grid] tbody tr[data-at] td:first-child a").allTextContents();
point(shown.length === self.size && shown.every((name, i) => self.has(name) && (i === 0 || self.get(shown[i - 1]) >= self.get(name))), "table: the report's functions, by self time", shown);
for (let i = 0; i < 40 && (await page.evaluate(() => document.activeElement.getAttribute("role"))) !== "grid"; i++) await page.keyboard.press("Tab");
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
await page.waitForSelector(".pane dl");
const second = await page.locator("tr.active td:first-child a").first().textContent();
point((await page.locator(".pane h2").textContent()) === second, "keyboard: the second row's function is opened", second);

await visit(page, `?build=${id("calc")}&fn=${member.address}`);
const arcs = await page.locator(".butterfly tbody tr").allTextContents();
point(member.callers.every((r) => arcs.some((t) => t.includes(r.name) && t.includes(r.calls.toLocaleString("en")))) && member.callees.every((r) => arcs.some((t) => t.includes(r.name) && t.includes(r.calls.toLocaleString("en")))), "butterfly: every caller and callee with its exact calls", arcs);
await page.locator("details.cycle summary").press("Enter");
const members = await page.locator("details.cycle table").first().locator("tbody tr").count();
point(members === calc.cycles[0].members.length, "cycle: opens in place and shows its members", members);
await page.locator(".butterfly tbody a").first().click();
await page.waitForLoadState("networkidle");
point(new URL(page.url()).searchParams.get("fn") !== member.address, "butterfly: a caller is one step away", page.url());
await page.goBack();
await page.waitForLoadState("networkidle");
point(new URL(page.url()).searchParams.get("fn") === member.address, "the browser's Back goes back");

await page.keyboard.press("2");
await page.waitForSelector("svg.graph .node");
const nodes = await page.locator("svg.graph .node").count();
await page.locator("svg.graph .node.cycle").first().press("Enter");
await page.waitForFunction((n) => document.querySelectorAll("svg.graph .node").length !== n, nodes);
point((await page.locator("svg.graph .node").count()) === nodes - 1 + calc.cycles[0].member_count || (await page.locator("svg.graph .node").count()) > nodes, "graph: the cycle opens in place");
const before = await page.locator("svg.graph").getAttribute("viewBox");
await page.locator("svg.graph").press("+");
point((await page.locator("svg.graph").getAttribute("viewBox")) !== before, "graph: + zooms");
await page.locator("main details summary").press("Enter");
const edges = await page.locator("main details tbody tr").count();
point(edges > 0, `graph: the table has the same ${edges} arcs`);

await page.keyboard.press("3");
await page.waitForSelector("svg.flame .box");
point(/Synthetic/.test(await page.locator("main").textContent()), "flame: says that it is derived");
await page.locator("svg.flame .box").first().focus();
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
point((await page.locator("svg.flame .above").count()) > 0 && new URL(page.url()).searchParams.get("zoom") !== null, "flame: arrows move, Enter zooms, the address remembers", page.url());
await page.keyboard.press("Escape");
point((await page.locator("svg.flame .above").count()) === 0, "flame: Escape goes back to the whole");

await visit(page, `?build=${id("calc")}&view=compare&against=${id("calc")}`);
const deltas = await page.locator("tbody .delta").allTextContents();
point(deltas.length > 0 && deltas.every((t) => t === "=" || t === ""), "compare: a build differs nowhere from itself", deltas);
await page.keyboard.press("?");
point(await page.locator("#help").evaluate((d) => d.open), "? shows the keys");
await page.keyboard.press("Escape");

await visit(page, "?build=ffffffffffffffff");
point(/no build|not/i.test(await page.locator("main").textContent()), "an unknown build is said to be unknown", await page.locator("main").textContent());
await visit(page, `?build=${id("calc")}&since=yesterdayish`);
point(/yesterdayish/.test(await page.locator("main").textContent()), "a bad time is named", await page.locator("main").textContent());
const hostile = builds.find((b) => b.name.endsWith("/hostile"));
if (hostile) {
  for (const view of ["report", "graph", "flame"]) await visit(page, `?build=${hostile.build_id}&view=${view}`);
  await visit(page, `?build=${hostile.build_id}`);
  const text = await page.locator("main").textContent();
  point(text.includes("</script><img src=x>") && (await page.locator("main img, main script").count()) === 0, "names that are markup are shown as text", text.slice(0, 400));
}
point(errors.length === 0, "no script error, no blocked resource, no foreign host", errors);
await browser.close();
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
