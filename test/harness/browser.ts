/** The browser harness: a real browser against a service that is a real process. */
import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContext } from "playwright-core";
import { temporaryFolder } from "./temporary.ts";

/** Debian's Chromium without windows, which needs half the processor time; then the one with windows. */
const INSTALLED = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** Path of the browser: the one that CHROMIUM names, or the first installed one. */
const EXECUTABLE = process.env["CHROMIUM"] ?? INSTALLED.find((path) => existsSync(path)) ?? "";

/** Arguments of the browser: its language, which differs without windows, and no traffic that leaves the machine. */
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

/** Without a time limit, because a busy machine may take minutes; the test's own limit ends a hanging browser. */
const LAUNCH = { executablePath: EXECUTABLE, headless: true, args: ARGS, timeout: 0 };

/** Starts a separate browser with an empty profile. */
export async function openBrowser(): Promise<BrowserContext> {
  const context = await chromium.launchPersistentContext(temporaryFolder().path, LAUNCH);
  context.setDefaultTimeout(0);
  return context;
}

/** Starts a browser for several people at once, each with separate cookies and settings. */
export async function launchBrowser(): Promise<Browser> {
  const browser = await chromium.launch(LAUNCH);
  browser.on("context", (context) => context.setDefaultTimeout(0));
  return browser;
}
