/** The browser harness: a real browser against a service that is a real process. */
import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContext } from "playwright-core";
import { temporaryFolder } from "./temporary.ts";

/** Paths of Debian's Chromium: first the one without windows, which takes half the processor time. */
const INSTALLED = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** Path of the browser: the one that CHROMIUM names, or the first installed one. */
const EXECUTABLE = process.env["CHROMIUM"] ?? INSTALLED.find((path) => existsSync(path)) ?? "";

/**
 * Arguments of the browser. They set its language, which differs without windows, and keep all its traffic on this
 * machine.
 */
const ARGS = [
  "--accept-lang=en-US,en",
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
