/** The browser harness: a real browser against a service that is a real process. */
import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContext } from "playwright-core";
import { temporaryFolder } from "./temporary-folder.ts";

/** Paths of Debian's Chromium: first the one without windows, which takes half the processor time. */
const INSTALLED = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** Path of the browser: the one that CHROMIUM names, or the first installed one. */
const EXECUTABLE = process.env["CHROMIUM"] ?? INSTALLED.find((path) => existsSync(path)) ?? "";

/**
 * Arguments of the browser. They set its language, because a browser without windows has another default, and keep all
 * its traffic on this machine.
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

/** Longest wait for a page, field or text, in ms. It only stops tests that hang: pages take long on a slow machine. */
const WAIT_MS_MAX = 300_000;

/** Starts a separate browser with an empty profile. */
export async function openBrowser(): Promise<BrowserContext> {
  const context = await chromium.launchPersistentContext(temporaryFolder().path, LAUNCH);
  context.setDefaultTimeout(WAIT_MS_MAX);
  return context;
}

/** Starts a browser for several people at once, each with separate cookies and settings. */
export async function launchBrowser(): Promise<Browser> {
  const browser = await chromium.launch({ ...LAUNCH, timeout: WAIT_MS_MAX });
  return browser.on("context", (context) => context.setDefaultTimeout(WAIT_MS_MAX));
}
