import { expect, jest, test } from "bun:test";
import { newEvent, refusalOf } from "../src/testing/contract/make-events-and-collect-results.ts";
import { AppendInDoubt, InvalidAppend, StoreClosed, StoreOverloaded } from "../src/errors.ts";
import { DEFAULT_LIMITS, type Limits } from "../src/limits.ts";
import { identityCodec } from "../src/codec.ts";
import { APPENDED, type BatchReply, decodeBatch, type Piece, type Request } from "../src/append/writer-messages.ts";
import { prepareAppend, type PreparedAppend } from "../src/append/prepare-append.ts";
import { createQueue } from "../src/append/queue.ts";
import type { AppendOptions, Commit } from "../src/event-store-interface.ts";

/** Creates an append queue in which the test plays the writer thread. */
function createTestQueue(limits: Partial<Limits> = {}) {
  const sent: Request[] = [];
  const pieces: Piece[] = [];
  const commits: Commit[] = [];
  const queue = createQueue({
    limits: { ...DEFAULT_LIMITS, ...limits },
    clock: () => 0,
    send: (request) => sent.push(request),
    sendPiece: (piece) => pieces.push(piece),
    isFollowed: () => false,
    onDurable: () => undefined,
    onCommit: (commit) => commits.push(commit),
    findArchivedKey: async () => ({ kept: undefined, compared: 0 }),
  });
  /** Appends `count` test events through the queue; `last` is the data of the last one. */
  const append = (count = 1, last: unknown = {}, options: AppendOptions = {}) => {
    const events = Array.from({ length: count }, (_, index) => newEvent("Tested", index === count - 1 ? last : {}));
    return queue.append(
      prepareAppend("a", events, options, identityCodec(), DEFAULT_LIMITS, queue.startPieces) as PreparedAppend,
    );
  };
  return { queue, append, sent, pieces, commits };
}

/** Returns the number of events in each append of a request. */
function counts(request: Request | undefined): number[] {
  return decodeBatch(request as string).appends.map(({ count }) => count);
}

function allAppended(request: Request | undefined): BatchReply {
  const { appends } = decodeBatch(request as string);
  return {
    kind: "batch",
    timeMs: 0,
    hashes: "",
    verdicts: appends.flatMap(() => [APPENDED, 1, 1, 1]),
    refusals: [],
    commitMs: 1,
  };
}

test("concurrent appends form one batch, and later ones wait for the next batch", async () => {
  const { queue, append, sent } = createTestQueue();
  const settled: Promise<unknown>[] = [append(), append()];
  await Promise.resolve();
  settled.push(append(), append(), append());
  await Promise.resolve();
  expect(sent.map(counts)).toEqual([[1, 1]]);

  queue.onReply(allAppended(sent[0]));
  expect(sent.map(counts)).toEqual([
    [1, 1],
    [1, 1, 1],
  ]);
  queue.onReply(allAppended(sent[1]));
  expect(await Promise.all(settled)).toHaveLength(5);
});

test("each commit is reported with its number of events and its duration", async () => {
  const { queue, append, sent, commits } = createTestQueue();
  const settled = [append(2), append(3)];
  await Promise.resolve();
  queue.onReply({ ...allAppended(sent[0]), commitMs: 4 });
  await Promise.all(settled);
  expect(commits).toEqual([{ events: 5, ms: 4 }]);
});

test("a large batch is sent before the previous answer, and nothing more after it", async () => {
  const { queue, append, sent } = createTestQueue();
  const settled: Promise<unknown>[] = [append()];
  await Promise.resolve();
  settled.push(append(63));
  await Promise.resolve();
  expect(sent.map(counts)).toEqual([[1]]);
  settled.push(append());
  await Promise.resolve();
  settled.push(append(100));
  await Promise.resolve();
  expect(sent.map(counts)).toEqual([[1], [63, 1]]);

  for (let at = 0; at < 3; at += 1) queue.onReply(allAppended(sent[at]));
  expect(sent.map(counts)).toEqual([[1], [63, 1], [100]]);
  expect(await Promise.all(settled)).toHaveLength(4);
});

test("a batch has a limit of events, which only a single append may exceed", async () => {
  const { queue, append, sent } = createTestQueue({ batchEvents: 10 });
  const settled = [append(6), append(4), append(1), append(30), append(1)];
  await Promise.resolve();
  for (let at = 0; at < 4; at += 1) queue.onReply(allAppended(sent[at]));
  expect(sent.map(counts)).toEqual([[6, 4], [1], [30], [1]]);
  expect(await Promise.all(settled)).toHaveLength(5);
});

test("a batch has a limit of characters, which only a single append may exceed", async () => {
  const { queue, append, sent } = createTestQueue({ batchChars: 500 });
  const settled = [append(1), append(1), append(30), append(1)];
  await Promise.resolve();
  for (let at = 0; at < 3; at += 1) queue.onReply(allAppended(sent[at]));
  expect(sent.map(counts)).toEqual([[1, 1], [30], [1]]);
  expect(await Promise.all(settled)).toHaveLength(4);
});

test("a dead thread leaves sent appends in doubt and refuses the others as closed", async () => {
  const { queue, append, sent } = createTestQueue({ batchEvents: 64 });
  const outcomes = [append(64), append(64), append()].map(refusalOf);
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

test("closing waits for sent appends, even after a fault", async () => {
  const { queue, append, sent } = createTestQueue();
  const first = refusalOf(append());
  await Promise.resolve();
  const second = refusalOf(append(64));
  await Promise.resolve();
  const third = refusalOf(append());
  const closed = queue.close();
  queue.onReply({ kind: "fault", fault: "fatal", cause: "disk I/O error" });
  expect(await first).toBeInstanceOf(AppendInDoubt);
  expect(await third).toBeInstanceOf(StoreClosed);
  expect(sent).toHaveLength(2);
  queue.onReply({ kind: "fault", fault: "stopped", cause: "disk I/O error" });
  expect(sent.at(-1)).toEqual({ kind: "close" });
  expect(await second).toBeInstanceOf(StoreClosed);
  queue.onReply({ kind: "done" });
  await closed;
});

test("a queue over its limits can be closed, and a large snapshot blocks no append", async () => {
  const { queue, append, sent } = createTestQueue({ queuedEvents: 10, queuedChars: 100 });
  const large = append(20);
  const snapshot = { version: 1, position: 0, state: "x".repeat(1_000) };
  expect(await refusalOf(append())).toBeInstanceOf(StoreOverloaded);
  const closed = queue.close();
  await Promise.resolve();
  queue.onReply(allAppended(sent[0]));
  queue.onReply({ kind: "done" });
  await Promise.all([large, closed]);

  const next = createTestQueue({ queuedChars: 1_000 });
  const saved = next.queue.perform({ kind: "saveSnapshot", names: ["s"], snapshot });
  const appended = next.append();
  await Promise.resolve();
  next.queue.onReply({ kind: "done" });
  next.queue.onReply(allAppended(next.sent[1]));
  await Promise.all([saved, appended]);
});

test("a large append is sent in pieces during its preparation if the thread is idle", async () => {
  const { queue, append, sent, pieces } = createTestQueue();
  const first = append(3_000);
  expect(pieces.map((piece) => piece.kind === "piece" && piece.isLast)).toEqual([false, false, true]);
  const second = append(3_000);
  await Promise.resolve();
  expect(pieces).toHaveLength(3);
  expect(sent.map(counts)).toEqual([[3_000]]);
  queue.onReply({ ...allAppended(sent[0]), hashes: "" });
  queue.onReply(allAppended(sent[0]));
  expect(await Promise.all([first, second])).toHaveLength(2);
});

test("an append is not sent in pieces behind an earlier one or after closing", async () => {
  const { queue, append, sent, pieces } = createTestQueue();
  const settled = [append(), append(3_000)];
  await Promise.resolve();
  queue.onReply(allAppended(sent[0]));
  expect(sent.map(counts)).toEqual([[1], [3_000]]);
  queue.onReply(allAppended(sent[1]));
  await Promise.all(settled);

  const closed = queue.close();
  await Promise.resolve();
  queue.onReply({ kind: "done" });
  await closed;
  expect(await refusalOf(append(3_000))).toBeInstanceOf(StoreClosed);
  expect(pieces).toEqual([]);
});

test("the sent pieces of an unencodable append are abandoned before the next append", async () => {
  const { queue, append, sent, pieces } = createTestQueue();
  expect(() => append(2_000, { toJSON: () => 1n })).toThrow(InvalidAppend);
  expect(pieces.at(-1)).toEqual({ kind: "abandon" });
  const next = append(2_000);
  expect(pieces.filter(({ kind }) => kind === "piece")).toHaveLength(pieces.length - 1);
  await Promise.resolve();
  queue.onReply({ kind: "done" });
  queue.onReply(allAppended(sent[0]));
  await next;
});

test("sent pieces count against the limits until their append is settled", async () => {
  const { queue, append, sent, pieces } = createTestQueue({ queuedChars: 90_000 });
  const large = append(2_000);
  expect(await refusalOf(append())).toBeInstanceOf(StoreOverloaded);
  queue.onReply(allAppended((pieces[0] as Extract<Piece, { kind: "piece" }>).text));
  await large;
  const next = append();
  await Promise.resolve();
  queue.onReply(allAppended(sent[0]));
  await next;
});

test("the sent pieces of an append that exceeds the limits are abandoned", async () => {
  const { queue, append, sent, pieces } = createTestQueue({ queuedEvents: 10 });
  const meanwhile: Promise<unknown>[] = [];
  const toJSON = (): object => {
    meanwhile.push(append());
    return {};
  };
  const large = append(2_000, { toJSON });
  expect(await refusalOf(large)).toBeInstanceOf(StoreOverloaded);
  expect(pieces.at(-1)).toEqual({ kind: "abandon" });
  queue.onReply({ kind: "done" });
  queue.onReply(allAppended(sent[0]));
  await Promise.all(meanwhile);
});

test("a thread that dies in the middle of an append in pieces leaves it in doubt", async () => {
  const { queue, append } = createTestQueue();
  const outcome = refusalOf(append(2_000));
  queue.onCrash(new Error("the thread died"));
  expect(await outcome).toBeInstanceOf(AppendInDoubt);
});

test("during an outage an append that gives up is in doubt, and others wait", async () => {
  jest.useFakeTimers();
  try {
    const { queue, append, sent } = createTestQueue();
    const [impatient, patient] = [append(1, {}, { givesUpInDoubt: true }), append()];
    const refusal = refusalOf(impatient);
    await Promise.resolve();
    queue.onAway({ kind: "away", cause: "the server does not answer" });
    queue.onAway({ kind: "away", cause: undefined });
    jest.advanceTimersByTime(60_000);
    queue.onAway({ kind: "away", cause: "the server does not answer" });
    let isRefused = false;
    void refusal.then(() => (isRefused = true));
    jest.advanceTimersByTime(7_999);
    await Promise.resolve();
    expect(isRefused).toBe(false);
    jest.advanceTimersByTime(1);
    expect(await refusal).toBeInstanceOf(AppendInDoubt);
    queue.onAway({ kind: "away", cause: undefined });
    queue.onReply(allAppended(sent[0]));
    expect(await patient).toMatchObject({ first: 1 });
  } finally {
    jest.useRealTimers();
  }
});
