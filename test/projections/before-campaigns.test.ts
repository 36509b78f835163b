// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { answerAll, rewound } from "./answer-all-projections.ts";

/** Log that a version before campaigns wrote, with the answers of that version about the log at some positions. */
interface OldLog {
  readonly events: readonly Recorded[];
  readonly answers: readonly {
    readonly position: number;
    readonly answers: Readonly<Record<string, string>>;
    readonly rewound: string;
  }[];
}

const file = join(import.meta.dirname, "golden/before-campaigns.json.gz");
const logs = JSON.parse(gunzipSync(readFileSync(file)).toString()) as readonly OldLog[];

test("logs made before campaigns get the same answers about any past, byte for byte", async () => {
  expect(logs.length).toBeGreaterThan(3);
  for (const { events, answers } of logs) {
    for (const { position, answers: before } of answers) {
      expect(await answerAll(events.slice(0, position))).toEqual(before);
    }
  }
});

test("recipients of logs made before campaigns are put back as that version put them back", () => {
  for (const { events, answers } of logs) {
    for (const { position, rewound: before } of answers) expect(rewound(events, position)).toBe(before);
  }
});
