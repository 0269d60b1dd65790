// The toolbar: data stands high on the page, each menu opens and closes by keyboard, labels are completed.
import { address, builds, check, get, id, open, point, ready, step, visit } from "./page.mjs";

const calc = id("calc");
const wide = id("storefront-pricing-service");
const { functions: named } = await get(`api/v1/builds/${wide}/report?limit=0`);
const cached = named.find((f) => f.name.includes("find_or_insert")).address;
const DATA =
  "[role=grid] tbody tr[data-at], svg.graph .node, svg.flame .box, .treegrid tr[data-at], .one-cycle tbody tr, " +
  ".offers li, .compare + .answer, .tiles dd";
const VIEWS = [
  ["builds", ""],
  ["functions", "?view=functions"],
  ["live", "?view=processes"],
  ["table", `?build=${calc}`],
  ["graph", `?build=${calc}&view=graph`],
  ["flame", `?build=${calc}&view=flame`],
  ["sandwich", `?build=${calc}&view=flame&mode=sandwich`],
  ["call tree", `?build=${calc}&view=tree`],
  ["compare", `?build=${calc}&view=compare&against=${id("shapes")}`],
  ...["report", "graph", "flame", "tree", "never", "cycles", "code"].map((view) => [
    `${view} with wide names`,
    `?build=${wide}&view=${view}`,
  ]),
  ["sandwich with wide names", `?build=${wide}&view=flame&mode=sandwich`],
  ["code of a wide name", `?build=${wide}&view=code&fn=${cached}`],
  ["graph around a wide name", `?build=${wide}&view=graph&focus=${cached}`],
  ["compare with wide names", `?build=${wide}&view=compare&against=${calc}`],
];
const CUT = "main .scroll, main th, main td.n, main .arcs-box, main td > a.delta";
const NAMES = ", main [role=grid] .named > a"; // a phone may shorten them
const SIZES = [
  [{ width: 1440, height: 900 }, 260],
  [{ width: 390, height: 844 }, 300],
];

/** Where the first row or box of data begins. */
async function high() {
  const live = (await get("api/v1/processes")).rows.length > 0;
  for (const [viewport, most] of SIZES) {
    const page = await open({ viewport });
    await visit(page, "");
    for (const [name, query] of VIEWS.filter(([view]) => view !== "live" || live)) {
      await step(page, query);
      const tops = await page.locator(DATA).evaluateAll((all) => all.map((e) => e.getBoundingClientRect().top));
      const top = Math.min(...tops);
      point(top <= most, `${name}, ${viewport.width} wide: data begins above pixel ${most}`, top);
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      point(sideways <= 0, `${name}, ${viewport.width} wide: the page does not scroll sideways`, sideways);
    }
    await page.context().close();
  }
}

/** No table is wider than its place, and no title of a column, no name and no answer in it is cut. */
async function whole() {
  const page = await open({ viewport: { width: 1024, height: 768 } });
  await visit(page, "");
  const tables = VIEWS.filter(([name]) => /^(builds|functions|live|table|call tree|compare|report with.*)$/.test(name));
  const code = VIEWS.filter(([name]) => name === "code of a wide name");
  const counted = builds.find((b) => b.name.endsWith("/counted"))?.build_id; // none without the collector
  const report = counted && (await get(`api/v1/builds/${counted}/report?limit=0`));
  const callee = report?.functions.find((f) => f.name === "callee").address;
  const pane = callee ? [["a function's callers with measured times", `?build=${counted}&fn=${callee}`]] : [];
  for (const width of [390, 1024, 1440]) {
    await page.setViewportSize({ width, height: 768 });
    for (const [name, query] of width < 1000 ? tables.concat(code) : tables.concat(pane)) {
      await step(page, query);
      const cut = await page
        .locator(CUT + (width < 1000 ? "" : NAMES))
        .evaluateAll((all) =>
          all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent.slice(0, 60)),
        );
      point(cut.length === 0, `${name}, ${width} wide: no column, name or answer is cut`, cut);
    }
  }
  await page.context().close();
}

const isOpen = (page, menu) => page.locator(`details:has(> #${menu})`).evaluate((d) => d.open);

async function menus(page) {
  await visit(page, `?build=${calc}`);
  for (const menu of ["which", "time", "labels", "truth", "more"]) {
    await page.locator(`#${menu}`).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction((m) => document.querySelector(`details:has(> #${m})`).open, menu);
    await ready(page);
    const inside = await page.locator(`details:has(> #${menu}) .panel`).evaluate((p) => {
      const box = p.getBoundingClientRect();
      return box.left >= 0 && box.right <= innerWidth;
    });
    point(inside, `menu ${menu}: its panel is inside the window`);
    // What the panel covers in part is no target while it is open.
    await check(page, `menu ${menu}`, undefined, `details:has(> #${menu})`);
    await page.keyboard.press("Escape");
    const focused = await page.evaluate((m) => document.activeElement.id === m, menu);
    point(!(await isOpen(page, menu)) && focused, `menu ${menu}: Escape closes it and keeps the focus`);
  }
  await page.locator("#time").click();
  await page.locator("#labels").click();
  point(!(await isOpen(page, "time")) && (await isOpen(page, "labels")), "menus: opening one closes the other");
  await page.mouse.click(700, 700);
  point(!(await isOpen(page, "labels")), "menus: a click elsewhere closes them");
}

async function truth(page) {
  await visit(page, `?build=${calc}`);
  const { provenance } = await get(`api/v1/builds/${calc}/report?view=flat&limit=1`);
  const shown = await page.locator("#origin").textContent();
  const all = [...provenance.inexact_reasons, ...provenance.inexact_meanings];
  point(all.length > 1 && all.every((t) => shown.includes(t)), "truth: every reason with its meaning", shown);
}

async function labels(page) {
  await visit(page, `?build=${calc}`);
  await page.locator("#labels").focus();
  await page.keyboard.press("Enter");
  const offered = () => page.locator("#label-names option").evaluateAll((all) => all.map((o) => o.value));
  await page.waitForFunction(() => document.querySelector('#label-names option[value="service="]'));
  point((await offered()).includes("round="), "labels: names are offered", await offered());
  await page.fill("#match", "round=");
  await page.waitForFunction(() =>
    [...document.querySelectorAll("#label-names option")].some((o) => o.value === 'round="1"'),
  );
  point((await offered()).join() === 'round="0",round="1"', "labels: and after a name its values", await offered());
  await page.locator("#match").press("Escape");
  await page.locator("#labels").press("Enter");
  await page.locator("details.menu .presets a", { hasText: /^1$/ }).press("Enter");
  await address(page, "match", 'round="1"');
  await ready(page);
  const report = await get(`api/v1/builds/${calc}/report?limit=1&match=${encodeURIComponent('round="1"')}`);
  const shown = await page.locator("#headline").textContent();
  point(shown.includes(report.totals.calls.toLocaleString("en")), "labels: a value is a click away", shown);
  await page.locator(".chips button").press("Enter");
  await address(page, "match", "");
  point(true, "labels: and goes away by a click on its chip");
}

async function strip(page) {
  await visit(page, `?build=${calc}`);
  const box = await page.locator("#brush").boundingBox();
  await page.mouse.move(box.x + box.width - 2, box.y + box.height / 2);
  await page.waitForFunction(() => document.querySelector(".readout").textContent !== "");
  const shown = await page.locator(".readout").textContent();
  point(/\d\d:\d\d/.test(shown), "strip: the pointer reads a time and a load", shown);
  point((await page.locator(".ticks span").count()) > 0, "strip: times stand below it");
}

export async function toolbar() {
  await high();
  await whole();
  const page = await open();
  for (const part of [menus, truth, labels, strip]) await part(page);
  await page.context().close();
}
