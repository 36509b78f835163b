// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { PROJECTION_NAMES } from "../../../projections/all.ts";
import { forgetPerson } from "../../../src/privacy/forget-person-or-address.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { findNamed } from "../../../src/recipients/resolve-recipient.ts";
import { METADATA } from "../../harness/in-process/temporary-log.ts";
import { click, openConsole, pageAt, person, rowsOf, textsAt } from "../open-console.ts";

const RUN = "0193a000-0000-7000-8000-0000000000aa";
const ADA = { id: "1001", username: "ada" };

/**
 * Events of the log, from position 1 on: a recipient is added, gets a message (2 and 3), and is skipped (4). No
 * projection folds the event at 5.
 */
const LIFE: readonly NewEvent[] = [
  person("ada", "opt_in", "Ada Byron"),
  {
    type: "DirectMessageAttempted",
    data: { attempt_id: "a", run_id: RUN, recipient: ADA, text: "Hi", variant: "A", day: "2026-11-20" },
  },
  {
    type: "DirectMessageSent",
    data: { attempt_id: "a", run_id: RUN, recipient: ADA, message_id: "m", settled_by: "answer" },
  },
  { type: "DirectMessageSkipped", data: { run_id: RUN, recipient: ADA, reason: "already_contacted" } },
  { type: "WhatIfAsked", data: { rules: [], position: 1 } },
];

async function openLife() {
  const harness = await openConsole();
  await harness.append("outreach", ...LIFE);
  return harness;
}

/** Returns the choices in the page's list of projections; an arrow marks the selected one. */
function optionsOf(page: string): readonly string[] {
  const form = page.slice(
    page.indexOf('<select name="projection"'),
    page.indexOf("</select>", page.indexOf('name="projection"')),
  );
  return [...form.matchAll(/<option([^>]*)>([^<]*)/g)].map(([, more, text]) =>
    more?.includes("selected") === true ? `→ ${text}` : (text ?? ""),
  );
}

describe("the change of a projection by an event", () => {
  test("is shown for the first changed projection, and the select marks all that fold the event", async () => {
    const harness = await openLife();
    const page = await pageAt(harness, "/activity/3");
    expect(await rowsOf(page)).toContain("sent | 0 | 1");
    const marked = optionsOf(page).filter((option) => option.includes("reads this event)"));
    expect(marked.slice(0, 2)).toEqual(["→ stats (reads this event)", "timeline (reads this event)"]);
    expect(marked).toContain("contacts (reads this event)");
    expect(marked).not.toContain("clicks (reads this event)");
    expect(page).toContain('<form class="filter" action="/activity/3" method="get">');
    expect(optionsOf(page)).toHaveLength(PROJECTION_NAMES.length + 1);
  });

  test("is shown for the projection in the address, with both states if they are short", async () => {
    const harness = await openLife();
    const page = await pageAt(harness, "/activity/4?projection=stats");
    expect(await rowsOf(page)).toContain("skipped | 0 | 1");
    const [before, after] = (await textsAt(page, "section[aria-labelledby=changes] pre")).map(
      ({ text }) => JSON.parse(text) as unknown,
    );
    expect([before, after]).toEqual([
      { sent: 1, skipped: 0, failed: 0, contacted: 0 },
      { sent: 1, skipped: 1, failed: 0, contacted: 1 },
    ]);
    expect(page).toContain('href="/activity/3?projection=stats"');
    expect(page).toContain('href="/activity/5?projection=stats"');
  });

  test("is empty for a projection that does not fold the event", async () => {
    const harness = await openLife();
    expect(await pageAt(harness, "/activity/3?projection=visits")).toContain(
      "The state of visits is the same before and after it.",
    );
    const last = await pageAt(harness, "/activity/5");
    expect(last).toContain("It changed the state of no projection.");
    expect(optionsOf(last).filter((option) => option.includes("→"))).toEqual([]);
    expect(await rowsOf(await pageAt(harness, "/activity/3?projection=unknown"))).toContain("sent | 0 | 1");
  });

  test("is the same as of a later moment, and its links keep the moment", async () => {
    const harness = await openLife();
    const page = await pageAt(harness, "/activity/3?projection=stats&as_of=4");
    expect(await rowsOf(page)).toContain("sent | 0 | 1");
    expect(page).toContain('href="/activity/4?projection=stats&amp;as_of=4">One event forward');
    expect(await pageAt(harness, "/activity/3?as_of=3")).not.toContain("One event forward");
  });

  test("contains the event's recipient only, until the recipient is erased", async () => {
    const harness = await openLife();
    await harness.append("outreach", person("bea", "opt_in", "Bea"));
    const about = ["/activity/1?projection=contacts", "/activity/2?projection=contacts"];
    for (const path of about) expect((await rowsOf(await pageAt(harness, path))).join()).toContain("people.@ada");
    const later = await pageAt(harness, "/activity/6?projection=contacts");
    expect(later.includes("Bea")).toBe(true);
    expect(later.includes("Ada Byron")).toBe(false);
    const signal = new AbortController().signal;
    await forgetPerson(harness.deps, (contacts) => findNamed(contacts, "ada"), { metadata: METADATA, signal });
    for (const path of about) {
      const gone = await pageAt(harness, path);
      expect(gone.includes("The state of contacts is the same before and after it.")).toBe(true);
      expect(/@ada|Ada Byron|\b1001\b/.test(gone)).toBe(false);
    }
  });

  test("is announced while its states are not ready, and the rest of the page is shown", async () => {
    const harness = await openConsole({ past: { at: async () => undefined } });
    await harness.append("outreach", ...LIFE);
    const page = await pageAt(harness, "/activity/3");
    expect(page).toContain("The log is being read up to this event.");
    expect(page).toContain("<h2>Data</h2>");
  });

  test("is whole for a value of 700 characters", async () => {
    const harness = await openConsole();
    await harness.append("outreach", person("eve", "opt_in", "x".repeat(700)));
    expect(await pageAt(harness, "/activity/1?projection=contacts")).toMatch(/<code>[^<]*x{700}[^<…]*<\/code>/);
  });

  test("is shortened for very long values, and escaped", async () => {
    const harness = await openConsole();
    await harness.append("outreach", person("eve", "opt_in", `<b>${"🙂".repeat(2_000)}`));
    const page = await pageAt(harness, "/activity/1?projection=contacts");
    const row = (await rowsOf(page)).find((text) => text.includes("<b>") || text.includes("&lt;b>")) ?? "";
    expect(row).toContain("…");
    expect(row.length).toBeLessThan(4_200);
    expect(page).not.toContain("<b>🙂");
    await harness.append("links", click("c".repeat(900)));
    const [where = ""] = (await rowsOf(await pageAt(harness, "/activity/2?projection=clicks")))
      .filter((text) => text.startsWith("links."))
      .map((text) => text.split(" | ")[0] ?? "");
    expect(where).toBe(`links.go.example/${"c".repeat(300 - "links.go.example/".length)}…`);
  });
});
