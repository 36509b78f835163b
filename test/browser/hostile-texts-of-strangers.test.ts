// These tests operate pages in a browser.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { overhangOf, violationsInState } from "../harness/accessibility.ts";
import { hasBrowser, launchBrowser } from "../harness/browser.ts";
import { operatorOf, type Operator } from "../harness/browser-operator.ts";
import {
  authorize,
  BEARER,
  exported,
  openInstallation,
  TOKEN,
  type Installation,
  type Running,
} from "../harness/process.ts";

/** Control characters that reverse the text direction, and close bidirectional isolates around the text. */
const TURNED = "\u2069\u2069\u202e";

const MARKUP = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  `"><svg onload=alert(1)>`,
  "' autofocus onfocus='alert(1)",
  "</bdi></p></li></main><iframe src=https://evil.example></iframe>",
  `${TURNED}<style>*{display:none}</style>`,
  "javascript:alert(1)",
  "&lt;b&gt; {{name}}",
].join(" ");

/** Part near the beginning of every hostile text. A page contains it even if it cuts the text's end. */
const TRACE = "alert(1)";

/**
 * Builds a hostile text of the allowed length: all markup that could make a browser act, and a word too long for any
 * line.
 */
function hostile(length: number): string {
  return MARKUP.padEnd(length, "x").slice(0, length);
}

const CODE = hostile(128);

describe.skipIf(!hasBrowser)("hostile texts of strangers do no harm", () => {
  let installation: Installation;
  let service: Running;
  let browser: Browser;
  let operator: Operator;

  beforeAll(async () => {
    installation = await openInstallation();
    const { sandbox } = installation;
    expect((await installation.command("recipients", "import", peopleFile("ada_builds"))).out).toStartWith("1 added");
    service = await installation.serve({ MESSAGE_TEMPLATE: "{{name}}, {{note}}: https://go.example/welcome" });
    await authorize(service, sandbox);
    await service.post("/social/run", undefined, { ...BEARER, prefer: "wait=300" });
    expect(sandbox.x.messages.total).toBe(1);
    const original_url = `https://shop.example/${hostile(4_000)}`;
    const click = { event: "click", original_url, user_agent: hostile(1_024) };
    for (const domain of ["go.example", hostile(253)]) {
      const clicked = await service.post("/api/tracking/event", { ...click, domain, short_code: CODE }, BEARER);
      expect(clicked.status).toBe(202);
    }
    sandbox.faults.add({ network: "slack", kind: "channel_archived" });
    for (let letter = 0; letter < 2; letter++) await service.post("/api/notify", { message: hostile(4_000) }, BEARER);
    browser = await launchBrowser();
    operator = await operatorOf(browser, "by mouse", { viewport: { width: 360, height: 800 } });
    await operator.page.goto(service.url);
    await operator.fill("Token", TOKEN);
    await operator.press("Sign in");
    // The browser itself reports an answer of 401 as an error of the page.
    expect(operator.wrong.splice(0)).toEqual([expect.stringContaining("401")]);
  });
  afterAll(async () => {
    await browser?.close();
    await installation?.[Symbol.asyncDispose]();
  });

  /** Writes a recipients file with hostile texts: one valid row, and one row that the import refuses. */
  function peopleFile(username: string): string {
    const person = { username, basis: "opt_in", name: hostile(1_000), note: hostile(1_000) };
    return installation.file("people.json", JSON.stringify([person, { username: hostile(4_000) }]));
  }

  /** Fails if the open page executed a hostile text, or became unreadable by it. */
  async function expectHarmless(at: string): Promise<void> {
    const { page, wrong } = operator;
    expect([at, (await page.content()).includes(TRACE)]).toEqual([at, true]);
    expect([at, await overhangOf(page)]).toEqual([at, 0]);
    const foreign = "iframe, img, main script, main style, svg[onload], [onerror], [onfocus]";
    expect([at, await page.locator(foreign).count()]).toEqual([at, 0]);
    expect([at, ...(await violationsInState(page))]).toEqual([at]);
    expect([at, ...wrong]).toEqual([at]);
  }

  test("in the preview and the report of an import, and in a dry run", async () => {
    const { page } = operator;
    await page.goto(`${service.url}/people`);
    await operator.importFile(peopleFile("grace_codes"), () => expectHarmless("the preview"));
    await operator.sees("1 added, 0 updated, 1 refused.");
    await expectHarmless("the report");
    await page.goto(service.url);
    await operator.press("Dry run");
    await operator.sees("1 person would get a message");
    await expectHarmless("the dry run");
  });

  test("in dead letters and in the reason of a discard", async () => {
    const { page } = operator;
    await page.goto(`${service.url}/deliveries`);
    await operator.sees(page.locator("input[name=source]"));
    await expectHarmless("two dead letters");
    await page.locator("input[name=source]").first().check();
    await operator.press("Discard…");
    await operator.fill("Reason", hostile(500));
    await operator.press("Discard 1");
    await operator.sees("1 dispatch was discarded.");
    await expectHarmless("one dead letter");
  });

  test("on each page that shows them", async () => {
    const { page } = operator;
    const events = await exported(installation);
    const hostileOnes = events.filter(({ data }) => JSON.stringify(data).includes(TRACE));
    const byType = Map.groupBy(hostileOnes, ({ type }) => type);
    expect([...byType.keys()].sort()).toEqual([
      "DirectMessageAttempted",
      "DispatchDiscarded",
      "LinkClicked",
      "NotificationRequested",
      "RecipientAdded",
    ]);
    const encoded = encodeURIComponent(hostile(100));
    const lists = ["/", "/people", "/links", "/deliveries", "/activity"].flatMap((path) => [
      path,
      `${path}?as_of=${events.length}`,
    ]);
    const links = ["go.example", hostile(253)].map(
      (domain) => `/links/${encodeURIComponent(domain)}/${encodeURIComponent(CODE)}`,
    );
    const asked = [
      `/people?search=${encoded}`,
      `/people/${encoded}`,
      `/find?q=${encoded}`,
      `/activity?stream=${encoded}`,
    ];
    const ofEvents = [...byType.values()].map(([event]) => `/activity/${event?.position}`);
    const person = ["/people/@ada_builds", `/people/@ada_builds?as_of=${events.length}`];
    for (const path of [...lists, ...links, ...asked, ...ofEvents, ...person]) {
      const answer = await page.goto(service.url + path);
      // The browser logs an answer of 404 as its own error.
      if (answer?.status() === 404) expect(operator.wrong.splice(0)).toEqual([expect.stringContaining("404")]);
      await expectHarmless(path);
    }
  });
});
