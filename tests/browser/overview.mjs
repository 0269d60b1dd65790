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
  point(
    shown.length === programs.size + (libraries.length > 0),
    "overview: a row for each program, one for libraries",
    shown,
  );
  if (libraries.length > 0)
    point(/^Libraries/.test(shown.at(-1)), "overview: libraries are folded, and last", shown.at(-1));
  const calc = await cells(page, "calc");
  point(calc.Service === "calc" && calc.Version === "1.0, 1.1", "overview: service and versions of a program", calc);
  const sorter = await cells(page, "sorter");
  point(sorter.Version === "1.0, 1.1, 2.0" && /▸ 2$/.test(sorter.Program), "overview: those of all its builds", sorter);
  // A live process goes on counting: the share was between those of two answers.
  const own = builds.find((b) => b.build_id === id("calc")).seconds;
  const share = (list) => (100 * own) / list.reduce((sum, b) => sum + b.seconds, 0);
  const later = (await get("api/v1/builds?limit=1000")).rows;
  const [least, most, is] = [share(later), share(builds), parseFloat(calc["CPU share"])];
  point(is >= 0.994 * least - 0.006 && is <= 1.006 * most + 0.006, "overview: its share of all CPU time", [
    is,
    least,
    most,
  ]);
  const trend = await row(page, "calc").locator(".spark").getAttribute("aria-label");
  point(/last 24 hours: .*\d/.test(trend), "overview: and the load of the last day", trend);
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
const listed = (list) => list.map((name) => name.replace(" ≈", "")).sort().join();

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
  if (!libraries.length) return;
  await page.keyboard.press("/");
  await page.keyboard.type(base(libraries[0]));
  point(
    (await names(page)).some((t) => t.startsWith(base(libraries[0]))),
    "overview: the filter finds a library",
    await names(page),
  );
}

export async function overview() {
  const page = await open({ viewport: { width: 1440, height: 900 } });
  for (const part of [programRows, whole, folds]) await part(page);
  await page.context().close();
}
