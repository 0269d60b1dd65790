// What goes wrong is said in a way that helps; hostile names are text and nothing else.
import { readFileSync } from "node:fs";
import { address, base, builds, errors, get, id, open, point, ready, step, text, visit } from "./page.mjs";

async function refused(page) {
  await visit(page, "");
  for (const [name, query, wanted] of [
    ["an unknown build", "?build=ffffffffffffffff", /no build|not/i],
    ["a bad time", `?build=${id("calc")}&since=yesterdayish`, /yesterdayish/],
    [
      "a bad label pattern",
      `?build=${id("calc")}&match=${encodeURIComponent('service=~"("')}`,
      /service|pattern|regular/i,
    ],
    [
      "a bad label pattern in functions",
      `?view=functions&match=${encodeURIComponent('service=~"("')}`,
      /service|pattern|regular/i,
    ],
    ["an unknown dimension", `?build=${id("calc")}&dimension=apples`, /apples/],
    ["an unknown function", `?build=${id("calc")}&fn=0x1`, /0x1/],
  ]) {
    await step(page, query);
    const shown = await text(page);
    point(
      wanted.test(shown) && (await page.locator("main a, main button").count()) > 0,
      `${name}: named, and a way out`,
      shown,
    );
  }
  await visit(page, `?build=${id("calc")}&since=yesterdayish`);
  await page.locator("main a", { hasText: "remove all filters" }).press("Enter");
  await address(page, "since", "");
  await ready(page);
  point((await page.locator("[role=grid]").count()) === 1, "and the way out leads to the report");
  await visit(page, `?build=${id("calc")}&until=2001-01-01T00:00:00Z`);
  point(
    /No upload of this build has these labels in this time/.test(await text(page)),
    "an empty window: said, with a way to what there is",
    await text(page),
  );
  for (const view of ["graph", "flame", "tree"]) {
    await step(page, `?build=${id("calc")}&view=${view}&until=2001-01-01T00:00:00Z`);
    point(
      /No function|No upload|No sample has these labels/.test(await text(page)),
      `${view}: an empty window`,
      await text(page),
    );
  }
}

/** Answers that a real daemon gives seldom, with its own words: what the page makes of them. */
async function seldom(page) {
  for (const [status, title, wanted] of [
    [409, "Conflict", /More than one answer.*must be unique/],
    [413, "Content Too Large", /The result is too large.*shorter time/],
    [422, "Unprocessable Content", /The result is too large.*shorter time/],
    [503, "Service Unavailable", /is busy.*in a moment/],
    [401, "Unauthorized", /log in.*requires a token/],
    [500, "Internal Server Error", /failed to answer/],
  ]) {
    await page.route("**/report?*", (route) =>
      route.fulfill({
        status,
        contentType: "application/problem+json",
        body: JSON.stringify({
          type: "about:blank",
          title,
          status,
          detail: `the detail of ${status}, see \`profctl status\``,
          code: "x",
          retry: false,
        }),
      }),
    );
    await step(page, `?build=${id("shapes")}`);
    const shown = await text(page);
    point(
      !shown.includes(title) &&
        shown.includes(`The detail of ${status}, see profctl status`) &&
        wanted.test(shown) &&
        (await page.locator("main [role=alert]").count()) === 1,
      `${status}: its sentence, and advice`,
      shown,
    );
    await page.unroute("**/report?*");
  }
  await page.locator("button", { hasText: "Try again" }).press("Enter");
  await page.waitForSelector("[role=grid]");
  point(true, "Try again asks again");
  await visit(page, "?build=deadbeefdeadbeef");
  const none = await text(page);
  point(/^Nothing found/.test(none) && !/Not Found/.test(none), "404: words, not the phrase of HTTP", none);
  await visit(page, "?build=shop");
  const wrong = await text(page);
  point(/^This is no build-id.*from the list/.test(wrong), "422: a name instead of a build-id", wrong);
}

async function away(page) {
  await visit(page, "");
  await page.context().setOffline(true);
  await page.keyboard.press("f");
  await page.waitForSelector("text=The daemon does not answer");
  point(/profctl status/.test(await text(page)), "a daemon that is gone: said, with what to look at", await text(page));
  await page.context().setOffline(false);
  await page.locator("button", { hasText: "Try again" }).press("Enter");
  await page.waitForSelector("[role=grid]");
  point(true, "and when it is back, one key is enough");
}

async function hostile(page) {
  const build = builds.find((b) => b.name.endsWith("/hostile"));
  const labels = builds.find((b) => b.name.includes("<b>"));
  await page.exposeFunction("violated", (what) => errors.push(`policy: ${what}`));
  await page.addInitScript(() =>
    addEventListener("securitypolicyviolation", (e) => globalThis.violated(`${e.violatedDirective} ${e.blockedURI}`)),
  );
  const report = await get(`api/v1/builds/${build.build_id}/report?limit=0`);
  const pages = [
    ["builds", ""],
    ["functions", "?view=functions"],
    ["processes", "?view=processes"],
    ...["report", "graph", "flame", "tree"].map((view) => [
      view,
      `?build=${build.build_id}&view=${view}&open=arcs,load`,
    ]),
    ["compare", `?build=${build.build_id}&view=compare&against=${build.build_id}`],
    ...report.functions
      .slice(0, 12)
      .map((f) => [`function ${JSON.stringify(f.name)}`, `?build=${build.build_id}&fn=${f.address}&open=series`]),
    ...(labels ? [["hostile build name", `?build=${labels.build_id}`]] : []),
  ];
  const bad = [];
  await visit(page, "");
  for (const [name, query] of pages) {
    await step(page, query);
    const found = await page.evaluate(() => {
      const unseen =
        /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/;
      const words = [
        document.title,
        document.body.textContent,
        ...[...document.querySelectorAll("[title], [aria-label]")].flatMap((e) => [
          e.getAttribute("title") ?? "",
          e.getAttribute("aria-label") ?? "",
        ]),
      ];
      return {
        elements: document.querySelectorAll(
          "main img, main script, main b, main iframe, #question img, #question script, #question b",
        ).length,
        unseen: words.filter((w) => unseen.test(w)),
        done: globalThis.hacked,
      };
    });
    if (found.elements || found.unseen.length || found.done) bad.push(name, JSON.stringify(found));
  }
  point(
    bad.length === 0,
    `hostile names: ${pages.length} pages without element, script, control or turned text`,
    bad.join("\n"),
  );
  await visit(page, `?build=${build.build_id}`);
  const shown = await text(page);
  point(
    shown.includes("</script><img src=x>") && shown.includes("\\x1b]0;t"),
    "names that are markup or escapes are shown as text",
    shown.slice(0, 600),
  );
  point(
    (await page.locator("main h1, main td").filter({ hasText: "\\u{202e}" }).count()) >= 0 &&
      (!labels || /\\u\{202e\}/.test(await (await visit(page, ""), text(page)))),
    "a name that turns the direction of writing shows that it does",
  );
}

export async function trouble() {
  const page = await open();
  for (const part of [refused, seldom, away, hostile]) await part(page);
  await page.context().close();
}

/** Another daemon: without anything in it, and with a token. */
export async function guarded(url, tokenFile) {
  const page = await open();
  page.removeAllListeners("request");
  await page.goto(url);
  await ready(page);
  point(/requires a token/.test(await text(page)), "without the token: asked for", await text(page));
  await page.fill("#token", "wrong-wrong-wrong-wrong-wrong-wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector("text=not accepted");
  point(true, "a wrong token: said");
  const token = readFileSync(tokenFile, "utf8").trim();
  await page.fill("#token", token);
  await page.keyboard.press("Enter");
  await page.waitForSelector("text=No profiles stored yet");
  point(
    /profctl upload/.test(await text(page)),
    "the right one opens; an empty store says how to fill it",
    await text(page),
  );
  for (const [view, wanted] of [
    ["functions", /No upload/],
    ["processes", /No live process/],
  ]) {
    await page.goto(`${url}?view=${view}`);
    await ready(page);
    point(wanted.test(await text(page)), `an empty store: ${view}`, await text(page));
  }
  await page.goto("about:blank");
  await page.evaluate(() => 0);
  const other = await page.context().newPage();
  await other.goto(`${url}#t=${token}`);
  await other.waitForSelector("text=No profiles stored yet");
  point(!other.url().includes(token), "a token in the address is taken, and taken out of it");
  await page.context().close();
  point(base !== url, "it was another daemon");
}
