// What the browser tests share: one Chromium, pages that report what goes wrong in them, TAP points.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

import { launch } from "./launch.mjs";

export const [modules, base, socket, profctl, shots] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await launch(modules);
let count = 0;
let failed = 0;
export const errors = [];

export function point(ok, name, detail = "") {
  count += 1;
  failed += ok ? 0 : 1;
  console.log(`${ok ? "ok" : "not ok"} ${count} - ${name}`);
  if (!ok && detail !== "")
    for (const line of String(typeof detail === "string" ? detail : JSON.stringify(detail, null, 1))
      .split("\n")
      .slice(0, 25))
      console.log(`  # ${line}`);
}

export async function finish() {
  point(errors.length === 0, "no script error, no blocked resource, no foreign host", errors);
  await browser.close();
  console.log(`1..${count}`);
  process.exit(failed ? 1 : 0);
}

export const get = async (path) => (await fetch(new URL(path, base))).json();
export const builds = (await get("api/v1/builds?limit=1000")).rows;
export const id = (name) => builds.find((b) => b.name.endsWith(`/${name}`)).build_id;

/** A page of its own context. Refusals that a test asks for are no errors. */
export async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.addInitScript(() => {
    globalThis.unanswered = 0; // requests that the page neither gave up nor has read the answer of
    const counted = (act) =>
      async function (...values) {
        globalThis.unanswered++;
        try {
          return await act.apply(this, values);
        } finally {
          setTimeout(() => globalThis.unanswered--); // once what waited for it has gone on
        }
      };
    globalThis.fetch = counted(globalThis.fetch);
    for (const read of ["json", "text"]) Response.prototype[read] = counted(Response.prototype[read]);
  });
  // Modules by themselves, which the daemon has as one bundle.
  const sources = new URL("../../daemon/web/", import.meta.url);
  await context.route(new URL("src/*.js", base).href, (route) =>
    route.fulfill({ path: fileURLToPath(new URL(basename(route.request().url()), sources)) }),
  );
  const page = await context.newPage();
  page.setDefaultTimeout(300000);
  page.on("pageerror", (e) => errors.push(e.message));
  page.on(
    "console",
    (m) =>
      m.type() === "error" &&
      !/status of [45]\d\d|ERR_CONNECTION|ERR_FAILED|ERR_INTERNET/.test(m.text()) &&
      errors.push(m.text()),
  );
  page.on(
    "request",
    (r) => !r.url().startsWith(base) && !r.url().startsWith("data:") && errors.push(`asks ${r.url()}`),
  );
  return page;
}

/** The view is drawn, and what it asked for beside has come. */
export async function ready(page) {
  await page.waitForFunction(() => {
    const main = document.querySelector("main");
    return main && !main.hasAttribute("aria-busy") && main.children.length > 0 && !main.querySelector("[role=status]");
  });
  for (let quiet = 0; quiet < 2; )
    quiet = await page.evaluate(
      (n) =>
        new Promise((resolve) =>
          requestAnimationFrame(() => setTimeout(() => resolve(globalThis.unanswered ? 0 : n + 1), 20)),
        ),
      quiet,
    );
}

export async function visit(page, query) {
  await page.goto(base + query);
  await ready(page);
}

/** Goes there inside the page that was visited, as a link does: a tenth of the work of loading it. */
export async function step(page, query) {
  await page.evaluate((there) => {
    history.pushState(null, "", there || "./");
    dispatchEvent(new PopStateEvent("popstate"));
  }, query);
  await ready(page);
}

export const text = (page, selector = "main") => page.locator(selector).first().textContent();

/** The address has come to rest at something. */
export const address = (page, name, wanted) =>
  page.waitForFunction(([n, w]) => (new URLSearchParams(location.search).get(n) ?? "") === w, [name, wanted]);

/** axe runs as a user's tool would: outside the page's policy. Without rules it looks for all; within: a selector. */
export async function check(page, name, rules, within) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate(
    ([runOnly, part]) =>
      globalThis.axe.run(part ?? document, {
        resultTypes: ["violations"],
        ...(runOnly ? { runOnly } : { rules: { "target-size": { enabled: true } } }),
      }),
    [rules, within],
  );
  point(
    violations.length === 0,
    `${name}: axe-core has no complaint`,
    violations
      .map(
        (v) =>
          `${v.id}: ${v.help}: ${v.nodes
            .slice(0, 3)
            .map((n) => n.html.slice(0, 160))
            .join(" | ")}`,
      )
      .join("\n"),
  );
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  point(wide <= 0, `${name}: the page does not scroll sideways`, wide);
  if (shots) await page.screenshot({ path: `${shots}/${name.replaceAll(/\W+/g, "-")}.png`, fullPage: true });
}

const LOOKS = [["light"], ["dark", ["color-contrast", "link-in-text-block"]]];

/** Each view [name, query], in light and dark, and on a phone: axe-core finds nothing, nothing scrolls sideways. The
 *  theme is a matter of style.css alone, and its colours do not depend on the width: a page that is drawn takes it, and
 *  only what depends on colours is checked again. Then more(page, name, viewport), if there is more to see. */
export async function inEveryLook(views, more = () => {}) {
  for (const viewport of [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ]) {
    const page = await open({ reducedMotion: "reduce", viewport }); // no transition from theme to theme
    await visit(page, "");
    for (const [name, query] of views) {
      await step(page, query);
      for (const [colorScheme, rules] of viewport.width > 1000 ? LOOKS : LOOKS.slice(0, 1)) {
        await page.emulateMedia({ colorScheme });
        await check(page, `${name}, ${colorScheme}, ${viewport.width} wide`, rules);
      }
      await more(page, name, viewport);
    }
    await page.context().close();
  }
}

/** Tab until the selector has the focus: whatever is there must be reachable so. */
export async function tabTo(page, selector, most = 80) {
  for (let i = 0; i < most; i++) {
    if (await page.evaluate((s) => document.activeElement.matches(s), selector)) return true;
    await page.keyboard.press("Tab");
  }
  return false;
}
