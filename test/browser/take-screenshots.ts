/**
 * Takes the screenshots of README and documents from a demo: `bun run pictures [FOLDER]`. With a folder, it instead
 * takes one there of every console page of the busy demo, light and dark, at a desktop's and a phone's width.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { launchBrowser } from "../harness/browser.ts";
import { startDemo, type Demo } from "../harness/demo.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const PICTURES = join(import.meta.dirname, "../../docs/pictures");

/** Name of each picture in the documents -> the console page that it shows. */
const PAGES_OF_DOCUMENTS: Readonly<Record<string, string>> = {
  overview: "/",
  activity: "/activity",
  person: "/people/@grace_codes",
};

/** Name of each picture of the busy demo -> the console page that it shows. */
const PAGES: Readonly<Record<string, string>> = {
  overview: "/",
  "overview-past": "/?as_of=1000",
  activity: "/activity",
  event: "/activity/1",
  people: "/people",
  person: "/people/@ada_ships",
  attention: "/attention",
  campaigns: "/campaigns",
  campaign: "/campaigns/default",
  runs: "/runs",
  run: "/find?q=run+36",
  links: "/links",
  link: "/links/go.example/guide",
  deliveries: "/deliveries",
  results: "/results",
  "results-7-days": "/results?days=7",
  "what-if": "/what-if",
  find: "/find?q=winter",
  setup: "/setup",
};

const SCHEMES = ["light", "dark"] as const;
const DESKTOP = { width: 1_280, height: 800 };
/** Sizes of the pictures of all pages. */
const DEVICES = { 1440: { width: 1_440, height: 900 }, 390: { width: 390, height: 844 } };

/**
 * WebP quality of the pictures in the repository. A picture has a third of a PNG's bytes, without a visible difference.
 */
const WEBP_QUALITY = 80;

const AGENTS = [
  "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile/15E148 Safari/604.1",
  "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
];
const CLICKS = 60;

const [folder] = process.argv.slice(2);
using files = temporaryFolder();
const isOfAll = folder !== undefined;
await using demo = await startDemo(files.path, ["--keep", files.path, ...(isOfAll ? ["--busy"] : [])]);
const browser = await launchBrowser();
try {
  if (isOfAll) await takeAll(browser, demo, folder);
  else {
    await authorize(browser, demo);
    await takeDryRun(browser, demo);
    await letSomethingHappen(demo);
    await takeDocumentPictures(browser, demo);
  }
} finally {
  await browser.close();
}

function tokenOf({ printed }: Demo): string {
  return /^token +(\S+)/m.exec(printed)?.[1] ?? "";
}

async function authorize(opened: Browser, running: Demo): Promise<void> {
  const page = await (await opened.newContext()).newPage();
  await page.goto(`${running.url}/social/auth`);
  await page.getByRole("button", { name: "Authorize app" }).click();
  await page.waitForURL(`${running.url}/**`);
  await page.context().close();
}

/** Runs outreach, clicks its links and verifies the log. */
async function letSomethingHappen(running: Demo): Promise<void> {
  const ran = await fetch(`${running.url}/social/run`, { method: "POST", headers: { prefer: "wait=300" } });
  if (ran.status !== 200) throw new Error(`the run was answered with ${ran.status}`);
  for (let click = 0; click < CLICKS; click++) await post(running, click);
  const verifying = await fetch(`${running.url}/api/audit/verify`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokenOf(running)}` },
  });
  if (verifying.status !== 202) throw new Error(`the verification was answered with ${verifying.status}`);
}

async function post({ url }: Demo, click: number): Promise<void> {
  const answer = await fetch(`${url}/api/tracking/event`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      event: "click",
      domain: "go.example",
      short_code: click % 3 === 0 ? "spring" : "welcome",
      original_url: "https://shop.example/",
      ip: `203.0.113.${click % 40}`,
      user_agent: AGENTS[click % AGENTS.length],
    }),
  });
  if (answer.status !== 202) throw new Error(`a click was answered with ${answer.status}`);
}

async function signIn(opened: Browser, running: Demo, options: Parameters<Browser["newContext"]>[0]): Promise<Page> {
  const page = await (await opened.newContext({ ...options, reducedMotion: "reduce" })).newPage();
  await page.goto(running.url);
  await page.fill("input[name=token]", tokenOf(running));
  await page.click("button");
  await page.waitForSelector("main[data-position]");
  return page;
}

/** Takes the picture of a dry run. This comes before the real run, after which no recipient is left to list. */
async function takeDryRun(opened: Browser, running: Demo): Promise<void> {
  for (const colorScheme of SCHEMES) {
    const page = await signIn(opened, running, { colorScheme, viewport: DESKTOP });
    await page.getByRole("button", { name: "Dry run" }).click();
    await page.getByRole("heading", { name: "Dry run" }).waitFor();
    await takePicture(page, `dry-run-${colorScheme}`);
    await page.context().close();
  }
}

async function takeDocumentPictures(opened: Browser, running: Demo): Promise<void> {
  for (const colorScheme of SCHEMES) {
    const page = await signIn(opened, running, { colorScheme, viewport: DESKTOP });
    for (const [name, path] of Object.entries(PAGES_OF_DOCUMENTS)) {
      await page.goto(running.url + path);
      await takePicture(page, `${name}-${colorScheme}`);
    }
    await page.context().close();
  }
}

async function takePicture(page: Page, name: string): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send("Page.captureScreenshot", { format: "webp", quality: WEBP_QUALITY });
  mkdirSync(PICTURES, { recursive: true });
  writeFileSync(join(PICTURES, `${name}.webp`), Buffer.from(data, "base64"));
}

async function takeAll(opened: Browser, running: Demo, into: string): Promise<void> {
  mkdirSync(into, { recursive: true });
  for (const colorScheme of SCHEMES) {
    for (const [device, viewport] of Object.entries(DEVICES)) {
      const page = await signIn(opened, running, { colorScheme, viewport });
      for (const [name, path] of Object.entries(PAGES)) {
        await page.goto(running.url + path);
        await page.screenshot({ path: join(into, `${name}-${device}-${colorScheme}.png`), fullPage: true });
      }
      await page.context().close();
    }
  }
}
