/** The browser harness: a real browser against a service that is a real process. */
import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContext } from "playwright-core";
import { temporaryFolder } from "./temporary.ts";

/** Debian's Chromium, or the one that CHROMIUM names. */
const EXECUTABLE = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Disables background traffic, which would leave the machine. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** False if no browser is installed; these tests are then skipped. */
export const hasBrowser = existsSync(EXECUTABLE);

const LAUNCH = { executablePath: EXECUTABLE, headless: true, args: ARGS };

/** Opens a separate browser with an empty profile. */
export function openBrowser(): Promise<BrowserContext> {
  return chromium.launchPersistentContext(temporaryFolder().path, LAUNCH);
}

/** A browser for several people at once, each with separate settings. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch(LAUNCH);
}
