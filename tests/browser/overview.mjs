// The start page: programs with service, version, share and trend; builds under their program; libraries folded.
import { builds, check, get, id, open, point, ready, visit } from "./page.mjs";

const ROW = "[role=grid] tbody tr[data-at]";
const base = (b) => b.name.replace(/^.*\//, "");
const programs = new Set(builds.filter((b) => b.is_program).map(base));
const libraries = builds.filter((b) => !b.is_program);

const names = (page) => page.locator(`${ROW} td:first-child .named`).allTextContents();
const row = (page, name) => page.locator(ROW, { has: page.locator(`td:first-child a:text-is("${name}")`) });

/** The texts of a row, by the titles of its columns. */
async function cells(page, name) {
  const titles = await page.locator("[role=grid] thead th").allTextContents();
  const texts = await row(page, name).first().locator("td").allTextContents();
  return Object.fromEntries(titles.map((t, i) => [t.replace(/ [↑↓]$/, ""), texts[i]]));
}

async function programRows(page) {
  await visit(page, "");
  await page.waitForFunction(() => document.querySelectorAll(".spark").length > 3);
  await ready(page);
  const shown = await names(page);
  point(shown.length === programs.size + 1, "overview: a row for each program, one for libraries", shown);
  point(/^Libraries/.test(shown.at(-1)), "overview: libraries are folded, and last", shown.at(-1));
  const calc = await cells(page, "calc");
  point(calc.Service === "calc" && calc.Version === "1.1 +1", "overview: service and versions of a program", calc);
  const sorter = await cells(page, "sorter");
  const titles = row(page, "sorter").locator("td span[title*='2.0']");
  point(sorter.Version === "2.0 +2" && /▸ 2$/.test(sorter.Program), "overview: the newest of its versions", sorter);
  const all = await titles.first().getAttribute("title");
  point(all === "2.0, 1.1, 1.0", "overview: all on hover, the newest one first", all);
  // A live process goes on counting: the share was between those of two answers.
  const own = builds.find((b) => b.build_id === id("calc")).seconds;
  const share = (list) => (100 * own) / list.reduce((sum, b) => sum + b.seconds, 0);
  const later = (await get("api/v1/builds?limit=1000")).rows;
  const [least, most, is] = [share(later), share(builds), parseFloat(calc["CPU share"])];
  point(is >= 0.95 * least - 0.006 && is <= 1.05 * most + 0.006, "overview: its share of all CPU time", [
    is,
    least,
    most,
  ]);
  const trend = await row(page, "calc").locator(".spark").getAttribute("aria-label");
  point(
    /over time: .*\d.*; appeared: 1\.0, 1\.1$/.test(trend),
    "overview: the load of the last day, with versions",
    trend,
  );
  const groups = (await get(`api/v1/builds/${id("calc")}/groups?by=service&step=1h`)).rows;
  point(calc.Hosts.endsWith(String(Math.max(...groups.map((g) => g.hosts)))), "overview: and its machines", calc);
}

/** The list scrolls only if the window has no place for another row. */
async function whole(page) {
  for (const height of [700, 900, 1400]) {
    await page.setViewportSize({ width: 1440, height });
    await visit(page, "");
    const [hidden, free] = await page.evaluate(() => {
      const list = document.querySelector("main .scroll.tall");
      const below = innerHeight - document.querySelector("footer").getBoundingClientRect().bottom;
      return [list.scrollHeight - list.clientHeight, below];
    });
    point(hidden <= 0 || free < 30, `overview: no row is hidden beside free height, ${height} high`, [hidden, free]);
  }
}

/** What is listed, without order and marks: those change while a live process counts. */
const listed = (list) =>
  list
    .map((name) => name.replace(" ≈", ""))
    .sort()
    .join();

async function folds(page) {
  await visit(page, "");
  const before = await names(page);
  await row(page, "sorter").locator("button").click();
  const after = await names(page);
  point(after.length === before.length + 2, "overview: the builds of a program stand below it", after);
  const ids = builds.filter((b) => base(b) === "sorter").map((b) => b.build_id.slice(0, 12));
  const at = after.findIndex((t) => t.startsWith("sorter"));
  const below = after.slice(at + 1, at + 3);
  point(
    ids.every((i) => below.some((t) => t.startsWith(i))),
    "overview: right below, by build-id",
    [ids, below],
  );
  await check(page, "overview with builds");
  await page.waitForFunction(() => /open=/.test(location.search));
  await page.reload();
  await ready(page);
  const again = await names(page);
  point(listed(again) === listed(after), "overview: a reload shows the same", [again, after]);
  await row(page, "sorter").first().locator("button").click();
  const folded = await names(page);
  point(listed(folded) === listed(before), "overview: and they fold again", [folded, before]);
  await page.keyboard.press("/");
  await page.keyboard.type(base(libraries[0]));
  point(
    (await names(page)).some((t) => t.startsWith(base(libraries[0]))),
    "overview: the filter finds a library",
    await names(page),
  );
}

/** By service, in a time range, with labels: the sums are those of that choice. */
async function chosen(page) {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 2200, height: 900 });
  await visit(page, "?split=service");
  const { Processes: told } = await cells(page, "parses"); // all of its time is in a library
  point(told === "1", "overview: a process counts once for its service, not for each library", told);
  const said = await page.locator("#status").textContent();
  const hint = await page.locator("#cut").textContent();
  point(/^(\d+) of \1 values of service$/.test(said) && !hint, "overview: no value is hidden", [said, hint]);
  await page.setViewportSize(size);
  await visit(page, "?split=service");
  const calc = await cells(page, "calc");
  point(/^calc/.test(calc.Service) && calc["CPU time"] !== "", "overview: a row for each service", calc);
  await row(page, "calc").first().locator("a").first().click();
  await page.waitForFunction(() => /view=functions/.test(location.search));
  const url = new URL(page.url()).searchParams;
  const match = url.getAll("match").join();
  point(match === 'service="calc"', "overview: it opens the functions of that service", page.url());
  await ready(page);
  const line = await page.locator(".headline").textContent();
  const short = (text) => Number.parseFloat(text);
  point(Math.abs(short(line) / short(calc["CPU time"]) - 1) < 0.1, "overview: and the sum there is that of the row", [
    line,
    calc,
  ]);
  const [name, self] = await page.locator("[role=grid] tbody tr[data-at]").first().locator("td").allTextContents();
  await page.locator("[role=grid] tbody tr[data-at] a").first().click();
  await page.waitForSelector(".pane .arcs");
  const together = await page.locator(".pane .arcs tbody tr").first().locator("td, th").allTextContents();
  point(together[0] === "Together" && together[1] === self, "functions: the pane says the sum of the row", [
    name,
    self,
    together,
  ]);
  await visit(page, `?match=${encodeURIComponent('version="1.0"')}&since=now-1d`);
  const named = await names(page);
  point(
    named.some((t) => t.startsWith("calc")) && !named.some((t) => t.startsWith("sampled")),
    "overview: a label and a time leave out programs without them",
    named,
  );
  await check(page, "overview of a label");
}

export async function overview() {
  const page = await open({ viewport: { width: 2000, height: 900 } }); // with space for every column
  for (const part of [programRows, whole, folds, chosen]) await part(page);
  await page.context().close();
}
