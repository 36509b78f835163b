// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { quarterAt } from "../../projections/count-by-quarter-hour.ts";
import { noClicks } from "../../projections/clicks-suspected-as-networks-own.ts";
import { DAY_MS } from "../../projections/parse-log-times.ts";
import { noMessages } from "../../projections/message-totals.ts";
import { PAGES } from "../../src/console/document.tsx";
import type { NewEvent } from "../../src/log/event-log.ts";
import { createMixedLife } from "../harness/in-process/write-busy-service-log.ts";
import { openConsole, pageAt } from "./open-console.ts";

/** Limit of a page's HTML before compression, in bytes. A proxy may compress it, but a phone parses all of it. */
const PAGE_BYTES_MAX = 200_000;

/** Number of rounds of events that fill the log. Each round has about fifty events. */
const ROUNDS = 60;

/** Number of days with clicks and messages. A chart shows 90 days, and compares them with the 90 days before. */
const DAYS = 180;

test("no page is larger than 200 KB with a large log in its lists and charts", async () => {
  const harness = await openConsole();
  const append = (stream: string, newEvents: readonly NewEvent[]) => harness.append(stream, ...newEvents);
  await createMixedLife(harness.store, append, 1_000)(ROUNDS);
  await harness.projector.until((await harness.store.head()).position);
  // Sets the counts of a year with a hundred million events, which would take hours to append.
  const [{ quarters: messages }, { quarters: clicks }] = [
    harness.projector.state("timeline"),
    harness.projector.state("suspected"),
  ];
  for (let day = DAYS; day > 0; day--) {
    const at = harness.now - day * DAY_MS;
    Object.assign(quarterAt(messages, at, noMessages), { sent: 1_234 + day, skipped: 321, failed: 123 });
    Object.assign(quarterAt(clicks, at, noClicks), { clicks: 345_678 + day, suspected: 54_321, bots: 43_210 });
  }
  const menu = PAGES.map(({ path }) => path);
  const sizes = new Map<string, number>();
  for (const path of [...menu, "/?range=90d", "/links?range=90d", "/activity?show=everything", "/runs"]) {
    const asOf = new URLSearchParams({ as_of: harness.projector.time ?? "" });
    for (const one of [path, `${path}${path.includes("?") ? "&" : "?"}${asOf}`]) {
      sizes.set(one, Buffer.byteLength(await pageAt(harness, one)));
    }
  }
  expect([...sizes].filter(([, bytes]) => bytes > PAGE_BYTES_MAX)).toEqual([]);
  expect(sizes.get("/?range=90d")).toBeLessThan(PAGE_BYTES_MAX / 2);
  // These pages must be large, so that the check of the sizes proves something.
  for (const path of ["/?range=90d", "/activity?show=everything"])
    expect(sizes.get(path)).toBeGreaterThan(PAGE_BYTES_MAX / 4);
});
