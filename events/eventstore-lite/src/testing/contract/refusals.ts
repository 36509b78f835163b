import { InvalidAppend } from "../../errors.ts";
import type { NewEvent } from "../../event-store-interface.ts";
import { newEvent, refusalOf, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

/** Characters of an event that is just larger than any store has to take. */
const OVERSIZED_CHARS = 256 * 1024;
const OVERLONG_BATCH_EVENTS = 10_001;

const BAD_NAMES = {
  empty: "",
  "too long": "n".repeat(513),
  "with NUL": "a\0b",
  "with a line break": "a\nb",
  "ill-formed": "\ud800",
};
const CYCLE: { self?: unknown } = {};
CYCLE.self = CYCLE;

/** Contract tests of appends that can never be accepted. */
export function refusalContract({ describe, expect, open, test }: Runner): void {
  describe("append refuses", () => {
    const refused: Record<string, readonly [string, readonly NewEvent[]]> = {
      "no events": ["a", []],
      "too many events": ["a", Array.from({ length: OVERLONG_BATCH_EVENTS }, () => newEvent())],
      "an oversized event": ["a", [newEvent("T", "x".repeat(OVERSIZED_CHARS))]],
      "an event oversized in bytes, not in characters": ["a", [newEvent("T", "é".repeat(OVERSIZED_CHARS / 2))]],
      "data that is no JSON value": ["a", [{ ...newEvent(), data: undefined }]],
      "data that JSON cannot write": ["a", [newEvent("T", CYCLE)]],
      "a number that JSON cannot write": ["a", [newEvent("T", 1n)]],
    };
    for (const [what, name] of Object.entries(BAD_NAMES)) {
      refused[`an invalid stream name (${what})`] = [name, [newEvent()]];
      refused[`an invalid type (${what})`] = ["a", [newEvent(name)]];
      refused[`an invalid id (${what})`] = ["a", [{ ...newEvent(), id: name }]];
    }

    for (const [what, [stream, events]] of Object.entries(refused)) {
      test(`${what}, and appends nothing`, async () => {
        await using store = await open();
        const neighbour = store.append("b", [newEvent("Neighbour")]);
        expect(await refusalOf(store.append(stream, events))).toBeInstanceOf(InvalidAppend);
        await neighbour;
        expect((await take(store.read())).map((event) => event.type)).toEqual(["Neighbour"]);
      });
    }

    test("an invalid expected version", async () => {
      await using store = await open();
      for (const expected of [-1, 1.5, Number.NaN]) {
        expect(await refusalOf(store.append("a", [newEvent()], { expected }))).toBeInstanceOf(InvalidAppend);
      }
    });

    test("an invalid idempotency key", async () => {
      await using store = await open();
      for (const key of Object.values(BAD_NAMES)) {
        expect(await refusalOf(store.append("a", [newEvent()], { key }))).toBeInstanceOf(InvalidAppend);
      }
    });
  });
}
