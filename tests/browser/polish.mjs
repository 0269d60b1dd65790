// Light and dark by choice, times of the reader's clock, the interface as a page.
import { builds, get, id, open, point, ready, text, visit } from "./page.mjs";

const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

async function themes() {
  const page = await open({ colorScheme: "light" });
  await visit(page, "");
  const light = await ground(page);
  const seen = [];
  for (let i = 0; i < 3; i++) {
    await page.locator("#theme").press("Enter");
    seen.push(await ground(page));
  }
  point(seen[0] === light && seen[1] !== light && seen[2] === light, "theme: light, dark, as the system", [
    light,
    seen,
  ]);
  await page.locator("#theme").press("Enter");
  await page.locator("#theme").press("Enter");
  const dark = await ground(page);
  await page.reload();
  await ready(page);
  point((await ground(page)) === dark && dark !== light, "theme: a reload keeps the choice", dark);
  await page.emulateMedia({ media: "print" });
  point((await ground(page)) === "rgb(255, 255, 255)", "theme: paper is white", await ground(page));
  await page.context().close();
}

async function times() {
  const page = await open({ timezoneId: "Asia/Tokyo" });
  await visit(page, `?build=${id("calc")}`);
  const title = await page.locator("#headline span[title*=UTC]").getAttribute("title");
  const last = new Date(builds.find((b) => b.build_id === id("calc")).last_seen);
  const wanted = (zone) => last.toLocaleTimeString("en-GB", { timeZone: zone });
  const all = [wanted("Asia/Tokyo"), wanted("UTC")].every((t) => title.includes(t)) && title.includes("GMT+9");
  point(all, "times: the reader's clock, and UTC on hover", title);
  const [, hour] = /(\d\d:\d\d):/.exec(wanted("Asia/Tokyo"));
  point((await text(page, "#headline")).includes(hour), "times: the short form is the reader's", hour);
  await page.context().close();
}

async function page() {
  const shown = await open();
  await visit(shown, "");
  await shown.locator("footer a", { hasText: /^API$/ }).press("Enter");
  await shown.waitForSelector(".interface summary");
  await ready(shown);
  const { paths } = await get("openapi.json");
  const listed = await shown.locator(".interface summary code").allTextContents();
  const line = (path, method) => (method === "get" ? path : `${method.toUpperCase()} ${path}`);
  const wanted = Object.entries(paths).flatMap(([path, of]) => Object.keys(of).map((method) => line(path, method)));
  point(listed.join() === wanted.join(), "interface: every path has a line", listed);
  await shown.locator(".interface summary", { hasText: "/report" }).first().press("Enter");
  const row = await shown.locator(".interface details[open] tr", { hasText: "static" }).first().textContent();
  point(/yes/.test(row) && /machine code/.test(row), "interface: and its parameters, with values and meanings", row);
  await shown.locator(".interface summary", { hasText: "/series" }).first().press("Enter");
  const fields = await shown.locator(".interface details[open] tr", { hasText: /^rows\.self_secondsnumber/ });
  const said = await fields.allTextContents();
  point(
    said.length === 1 && /in the function itself/.test(said[0]),
    "interface: and the fields of its answer",
    said,
  );
  await shown.context().close();
}

/** What the first picture needs is asked for at once: one bundle, and each answer once. */
async function asked() {
  const shown = await open();
  await visit(shown, `?build=${id("calc")}`);
  const loaded = await shown.evaluate(() => performance.getEntriesByType("resource").map((r) => r.name));
  const scripts = loaded.map((name) => /[^/]*\.js$/.exec(name)?.[0]).filter(Boolean);
  point(scripts.sort().join() === "app.js,theme.js", "all modules are one file", scripts);
  const urls = loaded.filter((name) => name.includes("/report?"));
  const twice = urls.filter((name, i) => urls.indexOf(name) !== i);
  point(urls.length > 0 && twice.length === 0, "and nothing is asked for twice", urls);
  await shown.context().close();
}

export async function polish() {
  for (const part of [themes, times, page, asked]) await part();
}
