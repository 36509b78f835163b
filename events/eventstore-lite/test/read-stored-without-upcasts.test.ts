import { expect, test } from "bun:test";
import { openSqliteStore, type Codec, type NewEvent } from "eventstore-lite";
import { newEvent, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { identityCodec } from "../src/codec.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Test codec that refuses the types of the log's events, like the codec of a program that does not know them. */
const strict: Codec<NewEvent> = {
  ...identityCodec<NewEvent>(),
  decode() {
    throw new Error("unknown type");
  },
};

test("stored events are read without the codec's upcasts and checks", async () => {
  const file = newLogPath();
  await using writer = await openSqliteStore({ file });
  await writer.append("a", [newEvent("Old", { n: 1 }), newEvent("New", [null])]);
  await using reader = await openSqliteStore({ file, codec: strict });
  expect(await refusalOf(take(reader.read()))).toMatchObject({ message: "unknown type" });
  expect(await take(reader.readStored())).toStrictEqual(await take(writer.read()));
  expect(await take(reader.readStored({ types: ["New"] }))).toMatchObject([{ position: 2, data: [null] }]);
});
