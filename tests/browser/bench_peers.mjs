// The same profile in the dashboard, in speedscope and in the web interface of pprof: first paint, content and
// interactions in a headless Chromium. node bench_peers.mjs MODULES ROUNDS PROFD-URL SPEEDSCOPE-URL PPROF-URL
// Prints one line of JSON: {what: {profd, speedscope, pprof}}, milliseconds, medians. null: it has no such thing.
import { createRequire } from "node:module";
import { act, median, painted, shown } from "./timing.mjs";

const [modules, rounds, profd, speedscope, pprof] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const { rows } = await (await fetch(new URL("api/v1/builds", profd))).json();
const build = rows.find((r) => r.name.includes("stacks20000")).build_id;
const times = {};
const put = (what, who, ms) => ((times[what] ??= {})[who] ??= []).push(ms);

const PAINT = "first paint";
const TABLE = "content of the table of functions";
const FLAME = "content of the flame graph";
const SORT = "interaction: sort the table by another column";
const SCROLL = "interaction: scroll the table to its middle";
const OPEN = "interaction: open a function in the table";

const visit = (page, url) => page.goto(url, { waitUntil: "commit", timeout: 60000 });
const click = (page, selector) => act(page, (_, wanted) => document.querySelector(wanted).click(), selector);
const scroll = (page, selector) =>
  act(
    page,
    (_, wanted) => {
      const box = document.querySelector(wanted);
      box.scrollTop = box.scrollHeight / 2;
    },
    selector,
  );

async function ofProfd(page) {
  await visit(page, `${profd}?build=${build}`);
  put(TABLE, "profd", await shown(page, "tbody tr[data-at]"));
  put(PAINT, "profd", await painted(page));
  await page.waitForLoadState("networkidle");
  put(SORT, "profd", await click(page, "thead th:nth-child(1) button"));
  put(SCROLL, "profd", await scroll(page, ".scroll"));
  put(
    OPEN,
    "profd",
    await act(page, () => {
      document
        .querySelector("[role=grid]")
        .dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
      return new Promise((resolve) => {
        const look = () => (document.querySelector(".pane dl") ? resolve() : requestAnimationFrame(look));
        look();
      });
    }),
  );
  await visit(page, `${profd}?build=${build}&view=flame`);
  put(FLAME, "profd", await shown(page, "svg.flame .box"));
}

/** It draws the flame graph on a canvas of its own below the toolbar; the sandwich has the table. */
async function ofSpeedscope(page) {
  await visit(page, `${speedscope}#profileURL=${encodeURIComponent("profile.json")}`);
  const canvas = () =>
    page.evaluate(
      () =>
        new Promise((resolve) => {
          const look = () =>
            /Left Heavy/.test(document.body.textContent) && !/Loading/.test(document.body.textContent)
              ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
              : requestAnimationFrame(look);
          look();
        }),
    );
  put(FLAME, "speedscope", await canvas());
  put(PAINT, "speedscope", await painted(page));
  await page.waitForTimeout(500);
  const before = await page.evaluate(() => performance.now());
  await page.keyboard.press("3"); // its sandwich view
  await shown(page, "table tr td");
  put(TABLE, "speedscope", (await page.evaluate(() => performance.now())) - before + times[FLAME].speedscope.at(-1));
  put(
    SORT,
    "speedscope",
    await act(page, () => {
      const title = [...document.querySelectorAll("thead th")].at(-1);
      for (const kind of ["mousedown", "click"]) title.dispatchEvent(new MouseEvent(kind, { bubbles: true }));
    }),
  );
  put(
    SCROLL,
    "speedscope",
    await act(page, () => {
      const box = [...document.querySelectorAll("div")].find(
        (d) =>
          d.scrollHeight > 2 * d.clientHeight && getComputedStyle(d).overflowY !== "visible" && d.clientHeight > 100,
      );
      box.scrollTop = box.scrollHeight / 2;
    }),
  );
  put(OPEN, "speedscope", await click(page, "table > tr:nth-child(3)"));
}

async function ofPprof(page) {
  await visit(page, `${pprof}top`);
  put(TABLE, "pprof", await shown(page, "#rows tr td"));
  put(PAINT, "pprof", await painted(page));
  put(SORT, "pprof", await click(page, "#namehdr"));
  put(SCROLL, "pprof", await act(page, () => scrollTo(0, document.documentElement.scrollHeight / 2)));
  put(OPEN, "pprof", await click(page, "#rows tr:nth-child(2) td"));
  await visit(page, `${pprof}flamegraph`);
  put(FLAME, "pprof", await shown(page, "svg g[name], svg g.d3-flame-graph-frame, .boxtext, svg rect"));
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
for (let n = 0; n < Number(rounds); n++) {
  for (const [who, one] of [
    [profd, ofProfd],
    [speedscope, ofSpeedscope],
    [pprof, ofPprof],
  ]) {
    if (!who) continue;
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, bypassCSP: true });
    const page = await context.newPage();
    page.setDefaultTimeout(60000);
    await one(page);
    await context.close();
  }
}
await browser.close();
const medians = (one) => Object.fromEntries(Object.entries(one).map(([who, list]) => [who, median(list)]));
console.log(JSON.stringify(Object.fromEntries(Object.entries(times).map(([what, one]) => [what, medians(one)]))));
