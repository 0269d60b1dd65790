// The start page: what changed in the newest build of a program, and the way to its comparison.
import { check, get, open, point, ready, visit } from "./page.mjs";

const ROW = "[role=grid] tbody tr[data-at]";
const CHANGE = "a.delta";
const { rows: builds } = await get("api/v1/builds?limit=1000");
const shop = builds
  .filter((b) => b.is_program && b.name.endsWith("/shop"))
  .sort((a, b) => Date.parse(b.first_seen) - Date.parse(a.first_seen));
const diff = await get(`api/v1/diff?a=${shop[1].build_id}&b=${shop[0].build_id}&metric=self`);
const [first] = diff.metrics[0].rows;

async function shown(page, name) {
  await visit(page, "");
  const link = page.locator(ROW, { hasText: "shop" }).locator(CHANGE).first();
  await link.waitFor();
  const said = (await link.textContent()).trim();
  const [, share] = /^▲ new: fresh ([\d.]+) %$/.exec(said) ?? [];
  const is = first.function === "fresh" && Math.abs(share / (100 * first.b) - 1) < 0.06;
  point(is, `${name}: what is new, and how much it takes`, [said, first]);
  const about = await link.getAttribute("title");
  point(/the newest build against the one before\. .*parse/.test(about), `${name}: in words, too`, about);
  const box = await link.boundingBox();
  const width = await page.evaluate(() => document.documentElement.clientWidth);
  point(box.x + box.width <= width && box.height >= 24, `${name}: it is in sight, and large enough`, box);
  await check(page, `${name} with changes`);
}

export async function watched() {
  for (const [colorScheme, viewport] of [
    ["light", { width: 1440, height: 900 }],
    ["dark", { width: 1280, height: 800 }],
  ]) {
    const page = await open({ colorScheme, viewport });
    await shown(page, `overview ${colorScheme} ${viewport.width}`);
    await page.locator(ROW, { hasText: "shop" }).locator(CHANGE).first().click();
    await ready(page);
    const asked = new URL(page.url()).searchParams;
    point(
      asked.get("against") === shop[0].build_id && asked.get("build") === shop[1].build_id,
      "it leads to the comparison of what was compared",
      page.url(),
    );
    const compared = await page.locator(ROW, { hasText: "parse" }).first().textContent();
    point(/larger share|slower/.test(compared), "which says the same", compared);
    await page.context().close();
  }
}
