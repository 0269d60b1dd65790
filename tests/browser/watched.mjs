// The start page where functions are watched: the verdict on the newest version, and the way to its comparison.
import { check, get, open, point, ready, text, visit } from "./page.mjs";

const ROW = "[role=grid] tbody tr[data-at]";
const VERDICT = "main a.delta";
const { rows } = await get("api/v1/verdicts");
const parse = rows.find((r) => r.function === "parse");

async function shown(page, name) {
  await visit(page, "");
  const link = page.locator(VERDICT);
  point((await link.count()) === 1, `${name}: only the watched program has a verdict`, await text(page));
  const place = await page
    .locator(`${ROW}, .changes span`)
    .filter({ has: page.locator("a.delta") })
    .textContent();
  point(/^shop/.test(place), `${name}: it stands with its program`, place);
  const said = (await link.textContent()).trim();
  point(said === `▲ +${Math.round(100 * parse.change)} % parse`, `${name}: the largest change`, [said, parse]);
  const about = await link.getAttribute("title");
  point(
    /^1\.3 after 1\.2\. parse, share, self: increased .* to .*; render, .*: decreased /.test(about),
    `${name}: all watched functions, with their intervals`,
    about,
  );
  const box = await link.boundingBox();
  const width = await page.evaluate(() => document.documentElement.clientWidth);
  point(box.x + box.width <= width && box.height >= 24, `${name}: it is in sight, and large enough`, box);
  await check(page, `${name} with verdicts`);
}

export async function watched() {
  for (const [colorScheme, viewport] of [
    ["light", { width: 1440, height: 900 }],
    ["dark", { width: 390, height: 844 }],
  ]) {
    const page = await open({ colorScheme, viewport });
    await shown(page, `overview ${colorScheme} ${viewport.width}`);
    await page.locator(VERDICT).click();
    await ready(page);
    const asked = new URL(page.url()).searchParams;
    point(
      asked.get("against") === parse.build_id_after &&
        asked.get("build") === parse.build_id_before &&
        asked.getAll("match").join() === 'service="shop",version="1.2"' &&
        asked.getAll("bmatch").join() === 'service="shop",version="1.3"',
      "a verdict leads to the comparison of what was compared",
      page.url(),
    );
    const compared = await page.locator(ROW, { hasText: "parse" }).first().textContent();
    point(/larger share/.test(compared), "which says the same", compared);
    await page.context().close();
  }
}
