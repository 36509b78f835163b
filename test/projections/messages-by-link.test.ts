// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { fold } from "../../projections/projection.ts";
import { COUNTED_LINKS_MAX } from "../../projections/drop-oldest-links.ts";
import { NEWEST_MAX, referrers } from "../../projections/messages-by-link.ts";
import { linksIn } from "../../projections/link-keys-and-text-links.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given } from "../harness/in-process/number-and-fold-events.ts";
import { histories } from "./generate-history.ts";

const OF = { run_id: "r", recipient: { id: "101", username: "ann" } };

function attempted(attempt_id: string, links: readonly string[], variant = "A", template = "t1"): NewEvent {
  const data = { attempt_id, ...OF, text: "Hi", variant, template, links: [...links], day: "2026-11-20" };
  return { type: "DirectMessageAttempted", data };
}

function sent(attempt_id: string): NewEvent {
  return { type: "DirectMessageSent", data: { attempt_id, ...OF, message_id: "m", settled_by: "answer" } };
}

function failed(attempt_id: string): NewEvent {
  const outcome = { reason: "rejected", detail: "", frees_quota: true, retry: false } as const;
  return { type: "DirectMessageFailed", data: { attempt_id, ...OF, ...outcome } };
}

test("a link has its number of messages, its variants and its newest attempts", () => {
  const { links, open } = given(referrers, [
    attempted("a1", ["go.example/x"]),
    sent("a1"),
    attempted("a2", ["go.example/x", "go.example/y"], "B"),
    sent("a2"),
    attempted("a3", ["go.example/x"], "A", "t2"),
    sent("a3"),
  ]);
  expect(links.get("go.example/x")).toMatchObject({
    messages: 3,
    variants: [
      { template: "t1", variant: "A", messages: 1 },
      { template: "t1", variant: "B", messages: 1 },
      { template: "t2", variant: "A", messages: 1 },
    ],
    newest: [1, 3, 5],
  });
  expect(links.get("go.example/y")).toMatchObject({ messages: 1, newest: [3] });
  expect(open.size).toBe(0);
});

test("only sent messages count, including those that were in doubt first", () => {
  const doubt: NewEvent = { type: "DirectMessageInDoubt", data: { attempt_id: "a2", ...OF, detail: "" } };
  const before = [attempted("a1", ["x.example/1"]), failed("a1"), attempted("a2", ["x.example/1"]), doubt];
  expect(given(referrers, before).links.size).toBe(0);
  expect(given(referrers, [...before, sent("a2"), sent("a2")]).links.get("x.example/1")?.messages).toBe(1);
});

test("a link counts all its messages but keeps only the newest attempts", () => {
  const many = Array.from({ length: NEWEST_MAX + 7 }, (_, at) => [
    attempted(`a${at}`, ["x.example/1"]),
    sent(`a${at}`),
  ]);
  const link = given(referrers, many.flat()).links.get("x.example/1");
  expect(link?.messages).toBe(NEWEST_MAX + 7);
  expect(link?.newest).toEqual(Array.from({ length: NEWEST_MAX }, (_, at) => 2 * (at + 7) + 1));
});

test("beyond the limit the links sent longest ago are dropped", () => {
  const many = Array.from({ length: COUNTED_LINKS_MAX + 1 }, (_, at) => [
    attempted(`a${at}`, [`x.example/${at}`]),
    sent(`a${at}`),
  ]);
  const { links } = given(referrers, many.flat());
  expect(links.size).toBeLessThanOrEqual(COUNTED_LINKS_MAX);
  expect(links.has("x.example/0")).toBe(false);
  expect(links.has(`x.example/${COUNTED_LINKS_MAX}`)).toBe(true);
});

test("in any history, each link counts the messages sent with it", () => {
  let found = 0;
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const { links } = fold(referrers, referrers.initial(), events);
      const expected = new Map<string, number>();
      const settled = new Set<string>();
      for (const event of events) {
        if (event.type !== "DirectMessageSent" && event.type !== "DirectMessageFailed") continue;
        const { attempt_id } = event.data;
        const made = events.find(
          ({ type, data, position }) =>
            type === "DirectMessageAttempted" && data.attempt_id === attempt_id && position < event.position,
        );
        if (made?.type !== "DirectMessageAttempted" || settled.has(attempt_id)) continue;
        settled.add(attempt_id);
        if (event.type === "DirectMessageFailed") continue;
        for (const link of made.data.links ?? linksIn(made.data.text))
          expected.set(link, (expected.get(link) ?? 0) + 1);
      }
      expect(new Map([...links].map(([link, { messages }]) => [link, messages]))).toEqual(expected);
      found += expected.size;
    }),
    { numRuns: 300 },
  );
  expect(found).toBeGreaterThan(20);
});
