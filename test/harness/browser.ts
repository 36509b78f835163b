/** The browser harness: a real browser against a service that is a real process. */
import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContext } from "playwright-core";
import { temporaryFolder } from "./temporary.ts";

/** Path of the browser: Debian's Chromium, or the one that CHROMIUM names. */
const EXECUTABLE = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Arguments of the browser that disable background traffic, which would leave the machine. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** True if a browser is installed; without one, its tests are skipped. */
export const hasBrowser = existsSync(EXECUTABLE);

const LAUNCH = { executablePath: EXECUTABLE, headless: true, args: ARGS };

/** Starts a separate browser with an empty profile. */
export function openBrowser(): Promise<BrowserContext> {
  return chromium.launchPersistentContext(temporaryFolder().path, LAUNCH);
}

/** Starts a browser for several people at once, each with separate cookies and settings. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch(LAUNCH);
}
