// The address is the whole state: a reload, Back and Forward show each view as it was. What is copied is what is shown.
import { execFileSync } from "node:child_process";
import { address, base, builds, get, id, open, point, profctl, ready, socket, text, visit } from "./page.mjs";

/** All that can be seen of a view, as text: what is shown, how it is sorted, filtered, chosen, open and placed. */
const seen = (page) =>
  page.evaluate(() => {
    // A live process goes on counting: sums and shares of all programs grow meanwhile.
    const grows = document.title.startsWith("Overview") ? /^\d+ programs, .*$|\d+(\.\d+)? %/gm : /$^/g;
    const all = (selector, what) => [...document.querySelectorAll(selector)].map(what);
    return JSON.stringify({
      title: document.title,
      main: document
        .querySelector("main")
        .innerText.replace(grows, "")
        .replace(/(\d+ (second|minute)s? ago|\bnow\b|this minute)/g, ""),
      fields: all("input, select", (f) => [f.id, f.type === "checkbox" ? f.checked : f.value]),
      open: all("details", (d) => d.open),
      active: all("tr.active", (r) => r.getAttribute("aria-rowindex")),
      pictures: all("svg[viewBox]", (s) => s.getAttribute("viewBox")),
      places: all(".scroll.tall", (s) => Math.round(s.scrollTop / 30)),
    });
  });

const calc = await get(`api/v1/builds/${id("calc")}/report?limit=0`);
const member = calc.functions.find((f) => f.cycle === 1);
const first = Date.parse(builds.find((b) => b.build_id === id("calc")).first_seen);
const hour = (n) => new Date((Math.floor(first / 3600e3) + n) * 3600e3).toISOString();

const tree = await get(`api/v1/builds/${id("calc")}/report?format=tree`);
const { address: root, build_id: of } = tree.frames[tree.frame[0]];
const flamePath = encodeURIComponent(`${root.slice(2)}@${of.slice(0, 4)}`);
const places = [
  ["builds", "?q=programs%2F&sort=name&dir=desc&row=1"],
  ["functions", `?view=functions&q=a&sort=calls&row=2&match=${encodeURIComponent('service="calc"')}`],
  ["table", `?build=${id("calc")}&q=e&sort=calls&dir=asc&row=3&open=load&since=${hour(-3)}&until=${hour(30)}`],
  ["function", `?build=${id("calc")}&fn=${member.address}&open=cycle,series&step=1h&static=1&scope=build`],
  ["graph", `?build=${id("calc")}&view=graph&zoom=1&at=100.0,50.0,600.0&nodes=20&open=arcs`],
  ["flame", `?build=${id("calc")}&view=flame&zoom=${flamePath}&q=main`],
  ["call tree", `?build=${id("calc")}&view=tree&zoom=${flamePath}&q=main`],
  ["leaves first", `?build=${id("calc")}&view=flame&mode=leaves&q=main`],
  [
    "compare",
    `?build=${id("calc")}&view=compare&against=${id("shapes")}&metric=self&sort=share&q=m&bsince=${hour(-3)}`,
  ],
];

async function reloads(page) {
  const was = [];
  for (const [name, query] of places) {
    await visit(page, query);
    was.push(await seen(page));
    await page.reload();
    await ready(page);
    const now = await seen(page);
    point(now === was.at(-1), `${name}: a reload shows the same`, [was.at(-1), now].join("\n"));
  }
  for (const [direction, go, list] of [
    [
      "Back",
      () => page.goBack(),
      places
        .map((_, i) => i)
        .slice(0, -1)
        .reverse(),
    ],
    ["Forward", () => page.goForward(), places.map((_, i) => i).slice(1)],
  ]) {
    const wrong = [];
    for (const i of list) {
      await go();
      await ready(page);
      const now = await seen(page);
      if (now !== was[i]) wrong.push(places[i][0], was[i], now);
    }
    point(wrong.length === 0, `${direction} shows each as it was`, wrong.join("\n"));
  }
}

/** The same inside the page, without loading it anew: steps, then the browser's Back. */
async function steps(page) {
  await visit(page, `?build=${id("calc")}`);
  await page.locator("thead button", { hasText: "Calls" }).click();
  await page.keyboard.press("/");
  await page.keyboard.type("e");
  await address(page, "q", "e");
  const filtered = await seen(page);
  await page.locator("[role=grid] tbody a").first().click();
  await ready(page);
  await page.keyboard.press("5");
  await ready(page);
  await page.goBack();
  await ready(page);
  point((await page.locator(".pane dl").count()) === 1, "Back from another view: the function is still open");
  await page.goBack();
  await ready(page);
  point(
    (await page.inputValue("#filter")) === "e" && JSON.parse(await seen(page)).main === JSON.parse(filtered).main,
    "Back again: filter and order are as they were",
    [filtered, await seen(page)].join("\n"),
  );
}

async function copies() {
  const page = await open({ permissions: ["clipboard-read", "clipboard-write"] });
  const match = 'round="1"';
  await visit(page, `?build=${id("calc")}&match=${encodeURIComponent(match)}&until=${hour(30)}&scope=program&static=1`);
  await page.locator("#more").press("Enter");
  const copied = async (name) => {
    await page.locator("button", { hasText: name }).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /copied/.test(document.getElementById("status").textContent));
    await page.evaluate(() => (document.getElementById("status").textContent = ""));
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const link = await copied("Copy link");
  point(link === page.url(), "copied link: the address", link);
  const command = await copied("Copy profctl command");
  const env = { ...process.env, PROFD_SOCKET: socket };
  const shell = (line) => execFileSync("/bin/sh", ["-c", line], { env, encoding: "utf8" });
  const told = JSON.parse(shell(`${command.replace(/^profctl/, profctl)} --json`));
  const question = new URLSearchParams([
    ["match", match],
    ["until", hour(30)],
    ["scope", "program"],
    ["static", "1"],
    ["limit", "0"],
  ]);
  const shown = await get(`api/v1/builds/${id("calc")}/report?${question}`);
  point(
    told.functions.length > 5 &&
      JSON.stringify(told.functions) === JSON.stringify(shown.functions) &&
      told.totals.calls < calc.totals.calls,
    `copied command: it runs, and says the same: ${command}`,
    told,
  );
  const listing = await copied("Copy gprof text");
  const own = shell(`${command.replace(/^profctl/, profctl).replace(" --static", "")} -f gprof`);
  point(
    listing.trim() === own.trim() && /granularity/.test(listing),
    "copied gprof text: the listing of the same selection",
    listing.slice(0, 300),
  );
  const json = JSON.parse(await copied("Copy JSON"));
  point(JSON.stringify(json.functions) === JSON.stringify(shown.functions), "copied JSON: the report");
  const there = await page.locator("a", { hasText: /^JSON$/ }).getAttribute("href");
  point(JSON.stringify((await get(there)).functions) === JSON.stringify(shown.functions), "and as a link", there);
  const other = await open();
  await other.goto(link);
  await ready(other);
  point((await text(other)) === (await text(page)), "the link shows a colleague the same", link.slice(base.length));
  await other.context().close();
  await page.context().close();
}

export async function remember() {
  const page = await open();
  await reloads(page);
  await steps(page);
  await page.context().close();
  await copies();
}
