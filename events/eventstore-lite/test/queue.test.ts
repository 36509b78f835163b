import { expect, test } from "bun:test";
import { newEvent, refusalOf } from "../src/contract/events.ts";
import { AppendInDoubt, StoreClosed } from "../src/errors.ts";
import { DEFAULT_LIMITS, type Limits } from "../src/limits.ts";
import { identityCodec } from "../src/recorded.ts";
import { APPENDED, type BatchReply, decodeBatch, type Request } from "../src/writer/messages.ts";
import { prepareAppend } from "../src/writer/prepare.ts";
import { createQueue } from "../src/writer/queue.ts";

/** A queue whose writer thread is played by the test. */
function createTestQueue(limits: Partial<Limits> = {}) {
  const sent: Request[] = [];
  const queue = createQueue({
    limits: { ...DEFAULT_LIMITS, ...limits },
    clock: () => 0,
    send: (request) => sent.push(request),
    isFollowed: () => false,
    onDurable: () => undefined,
  });
  const append = (count = 1) => {
    const events = Array.from({ length: count }, () => newEvent());
    return queue.append(prepareAppend("a", events, {}, identityCodec(), DEFAULT_LIMITS));
  };
  return { queue, append, sent };
}

/** Events in each append of a batch. */
function counts(request: Request | undefined): number[] {
  return decodeBatch(request as string).appends.map(({ count }) => count);
}

function allAppended(request: Request | undefined): BatchReply {
  const { appends } = decodeBatch(request as string);
  return { kind: "batch", timeMs: 0, hashes: "", verdicts: appends.flatMap(() => [APPENDED, 1, 1, 1]) };
}

test("appends of the same moment are one batch, and what comes while two are under way is the next", async () => {
  const { queue, append, sent } = createTestQueue();
  const settled: Promise<unknown>[] = [append(), append()];
  await Promise.resolve();
  settled.push(append());
  await Promise.resolve();
  settled.push(append(), append(), append());
  await Promise.resolve();
  expect(sent.map(counts)).toEqual([[1, 1], [1]]);

  queue.onReply(allAppended(sent[0]));
  expect(sent.map(counts)).toEqual([[1, 1], [1], [1, 1, 1]]);
  queue.onReply(allAppended(sent[1]));
  queue.onReply(allAppended(sent[2]));
  expect(await Promise.all(settled)).toHaveLength(6);
});

test("a batch has a largest size, which only a single append may exceed", async () => {
  const { append, sent } = createTestQueue({ batchEvents: 10 });
  const waiting = [append(6), append(4), append(1), append(30), append(1)];
  await Promise.resolve();
  expect(sent.map(counts)).toEqual([[6, 4], [1]]);
  expect(waiting).toHaveLength(5);
});

test("when the thread dies, what was sent is in doubt and what was not is closed", async () => {
  const { queue, append, sent } = createTestQueue({ batchEvents: 1 });
  const outcomes = [append(), append(), append()].map(refusalOf);
  await Promise.resolve();
  expect(sent).toHaveLength(2);
  queue.onCrash(new Error("the thread died"));
  const [first, second, third] = await Promise.all(outcomes);
  expect(first).toBeInstanceOf(AppendInDoubt);
  expect(second).toBe(first);
  expect(third).toBeInstanceOf(StoreClosed);
  expect(await queue.failed).toBe(first as Error);
  expect(await refusalOf(append())).toBeInstanceOf(StoreClosed);
  await queue.close();
});
