// The browser of the tests.
import { createRequire } from "node:module";

/** Chromium by playwright-core of the folder modules, with a new profile, that talks to nobody but the page's host;
 *  --no-sandbox lets it run as root. */
export const launch = (modules) =>
  createRequire(`${modules}/`)("playwright-core").chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
