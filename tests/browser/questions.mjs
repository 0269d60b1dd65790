// Questions that people have, answered from the start page in at most three clicks each.
import { get, open, point, ready, text, visit } from "./page.mjs";

const MOST = 3;
let page;

/** Follows the clicks from the start page; each is a selector, with a text that the place must contain; or that of a
 *  menu, with the option that is chosen. */
async function ask(name, clicks, answered) {
  await visit(page, "");
  for (const [selector, hasText, option] of clicks) {
    const place = page.locator(selector, hasText ? { hasText } : {}).first();
    if (option) await place.selectOption(option);
    else await place.click();
    await ready(page);
  }
  const [ok, detail] = await answered(page);
  point(ok && clicks.length <= MOST, `${name} (${clicks.length} clicks)`, detail);
}

const GRID = "[role=grid] tbody";
const shop = [`${GRID} a`, /^shop$/];
const calc = [`${GRID} a`, /^calc$/];
const tab = (title) => ["nav a", title];

const says = (pattern, selector) => async (page) => {
  const shown = await text(page, selector);
  return [pattern.test(shown), shown];
};

export async function questions() {
  page = await open({ viewport: { width: 1440, height: 900 } });
  await ask(
    "1. which function got slower between 1.2 and 1.3, and is it real",
    [[`${GRID} a[aria-label*="shop: the newest build against"]`], ["#metric", "", "time-per-call"]],
    async (page) => {
      const row = await page.locator(`${GRID} tr`, { hasText: "parse" }).first().textContent();
      return [/▲ slower/.test(row) && /\+\d+ % to \+\d+ %/.test(row), row];
    },
  );
  await ask(
    "2. who calls a function most, and how often per call of the caller",
    [shop, [`${GRID} a`, /^step$/]],
    async (page) => {
      const callees = await page.locator(".pane .butterfly table").last().textContent();
      return [/render/.test(callees) && /per call/.test(callees) && /3/.test(callees), callees];
    },
  );
  await ask("3. which functions are never called", [shop, tab("Never called")], says(/retired/));
  await ask(
    "4. what did db3 do in the last hour against the others",
    [shop, tab("Compare"), [".offers li:has-text('db3') a", "last hour"]],
    async (page) => {
      const shown = await text(page, ".answer");
      const query = new URL(page.url()).searchParams;
      return [query.get("since") === "now-1h" && query.get("bmatch") === 'host="db3"' && shown.length > 10, shown];
    },
  );
  await ask(
    "5. which cycle is hottest, who is in it, which call would break it",
    [calc, tab("Cycles")],
    async (page) => {
      const [shown, status] = [await text(page), await text(page, "#status")];
      const cycle = /Cycle 1.* of the time.*To break it, remove this call: parse_factor → parse_expression.*Member/s;
      // What the table said of its rows is not said of the cycles.
      return [cycle.test(shown) && /parse_term/.test(shown) && status === "", [shown, status]];
    },
  );
  await ask("6. which line of this function", [shop, [`${GRID} a`, /^parse$/], tab("Code")], async (page) => {
    const said = await text(page, ".answer");
    const shell = await page.locator("main button", { hasText: "Copy command" }).getAttribute("title");
    return [/Most time is at shop\.c:\d+: /.test(said) && /^profctl annotate \w+ parse$/.test(shell), [said, shell]];
  });
  await ask("7. share exactly this view", [shop, ["#more"], ["button", "Copy link"]], async (page) => {
    const shared = await page.evaluate(() => document.querySelector("dialog textarea")?.value ?? "");
    const said = await text(page, "#status");
    return [shared === page.url() || /Link copied/.test(said), [shared, said]];
  });
  await ask("8. open it in KCachegrind, speedscope, pprof", [shop, ["#more"]], async (page) => {
    const links = await page.locator(".panel a").allTextContents();
    return [["callgrind", "speedscope", "pprof"].every((f) => links.includes(f)), links];
  });
  await ask(
    "9. what does counting cost this service",
    [[`${GRID} a`, /^sampled$/], ["#origin summary"]],
    says(/Overhead: 4\.8 % of the ticks/, "#question"),
  );
  const hosts = (await get("api/v1/hosts")).rows;
  await ask("10. which hosts are late or silent", [tab("Hosts")], async (page) => {
    const rows = await page.locator(`${GRID} tr[data-at]`).allTextContents();
    const states = ["silent", "late", "up to date"];
    return [rows.length === hosts.length && states.every((s, i) => rows[i].includes(s)), rows];
  });
  await page.context().close();
}
