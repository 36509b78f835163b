// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { VISIT_PAUSE_MS } from "../../../src/http/access/last-visit.ts";
import { ask, openApp, type AppHarness } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";

const LINK = /<a href="\/activity\?show=news&amp;from=(\d+)">What happened since you were here<\/a>/;

/** Simulated browser that keeps one cookie and opens pages. */
function openBrowser(harness: AppHarness) {
  let cookie = "";
  return async (path: string): Promise<string | undefined> => {
    await harness.projector.until((await harness.store.head()).position);
    const answer = await ask(harness.app, path, { headers: { cookie } });
    cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? cookie;
    return LINK.exec(await answer.text())?.[1];
  };
}

test("during a visit, the overview links to the events since the last visit", async () => {
  await using harness = await openApp({ tokens: false });
  const open = openBrowser(harness);
  const add = (username: string) => harness.append("outreach", addedOf({ username }));
  await add("ada");
  expect(await open("/")).toBeUndefined();
  await add("bob");
  harness.now += VISIT_PAUSE_MS;
  expect(await open("/")).toBeUndefined();
  await add("cyd");
  harness.now += VISIT_PAUSE_MS + 1;
  expect(await open("/")).toBe("3");
  // While the browser keeps opening pages, its visit goes on: the time of the last visit stays the same on every page,
  // even if events are appended.
  await add("dan");
  harness.now += VISIT_PAUSE_MS;
  await open("/people");
  harness.now += VISIT_PAUSE_MS;
  expect(await open("/")).toBe("3");
  harness.now += VISIT_PAUSE_MS + 1;
  expect(await open("/")).toBeUndefined();
  await add("eve");
  harness.now += VISIT_PAUSE_MS + 1;
  expect(await open("/")).toBe("5");
  expect(await openBrowser(harness)("/")).toBeUndefined();
});
