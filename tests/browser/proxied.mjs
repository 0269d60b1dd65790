// The dashboard through a proxy with TLS. node proxied.mjs MODULES BASE-URL BUILD USER PASSWORD SCREENSHOT|"";
// without a user the password is a bearer token. Prints what came as JSON.
import { launch } from "./launch.mjs";

const [modules, base, build, username, password, shot] = process.argv.slice(2);
const browser = await launch(modules);
const context = await browser.newContext({
  viewport: { width: 1280, height: 900 },
  ignoreHTTPSErrors: true,
  ...(username
    ? { httpCredentials: { username, password } }
    : { extraHTTPHeaders: { Authorization: `Bearer ${password}` } }),
});
const page = await context.newPage();
page.setDefaultTimeout(240000);
const errors = [];
const statuses = {};
page.on("pageerror", (e) => errors.push(e.message));
page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
page.on("response", (r) => {
  statuses[r.status()] = (statuses[r.status()] || 0) + 1;
});
let text = "";
for (const [query, wanted] of [
  ["", "1 of 1 program"],
  [`?build=${build}`, "4 of 4 functions"],
]) {
  await page.goto(base + query);
  await page.waitForFunction((t) => document.body.innerText.includes(t), wanted).catch((e) => errors.push(e.message));
  text += await page.evaluate(() => document.body.innerText);
}
const protocol = await page.evaluate(() => performance.getEntriesByType("navigation")[0].nextHopProtocol);
if (shot) await page.screenshot({ path: shot });
console.log(JSON.stringify({ errors, statuses, protocol, text }));
await browser.close();
