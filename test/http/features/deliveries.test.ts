// On the memory harness.
import { expect, test } from "bun:test";
import type { ChannelName } from "../../../events/channel.ts";
import { STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { openApp, post, problemIn, TOKEN } from "../../harness/memory/app.ts";
import { outcomeOf } from "../../harness/memory/outcomes.ts";
import { clickOf } from "../../harness/memory/new-events.ts";

const HOUR_MS = 3_600_000;

const disposed = disposedAfterEach();

const CLICK: NewEvent = clickOf({ channels: ["chat", "ads"] });

const gaveUp = (source: number, channel: ChannelName, more: object = {}): NewEvent =>
  outcomeOf("DispatchAbandoned", { source, channel, lane: "clicks", detail: "gone", refused: true, ...more });

/** Two dead letters of chat, and one of ads that may have arrived so long ago; the ids of what they are about. */
async function openWithLetters(agoMs = HOUR_MS) {
  const harness = disposed(await openApp());
  await harness.append(STREAMS.requests, CLICK, CLICK, CLICK);
  await harness.append(STREAMS.delivery("chat"), gaveUp(1, "chat"), gaveUp(2, "chat"));
  const doubtful_since = new Date(harness.now - agoMs).toISOString();
  await harness.append(STREAMS.delivery("ads"), gaveUp(3, "ads", { doubtful_since }));
  const ids = (await Array.fromAsync(harness.store.read({ to: 3 }))).map(({ id }) => id);
  const asked = async (path: string, body: object): Promise<unknown> => {
    const answer = await post(harness.app, `/api/deliveries/${path}`, body, { token: TOKEN });
    return answer.ok ? answer.json() : problemIn(answer);
  };
  const kinds = async () =>
    (await Array.fromAsync(harness.store.read({ from: 7 }))).map(({ type, meta }) => `${type} by ${meta.caller}`);
  return { harness, ids, asked, kinds };
}

const NONE_LEFT = { left: [], left_count: 0 };
const UNKNOWN = "01a1fd59-3b3a-7515-964c-67ff53c10ed1";

test("letters that are named are sent again, and whatever else is named is left with the reason", async () => {
  const { ids, asked, kinds } = await openWithLetters();
  const left = [{ event_id: UNKNOWN, channel: null, why: "no_dead_letter" }];
  expect(await asked("retry", { event_ids: [ids[0], UNKNOWN] })).toEqual({ done: 1, left, left_count: 1 });
  expect(await kinds()).toEqual(["DispatchRetryRequested by tests"]);
  expect(await asked("discard", { event_ids: [ids[0]], why: "over" })).toMatchObject({ done: 0, left_count: 1 });
  expect(await asked("discard", { all: true, channel: "chat", why: "over" })).toEqual({ done: 1, ...NONE_LEFT });
  expect(await asked("retry", { all: true })).toEqual({ done: 1, ...NONE_LEFT });
  expect(await asked("retry", { all: true })).toEqual({ done: 0, ...NONE_LEFT });
});

test("what may have arrived is sent again while the network knows it, and then only where doubles are accepted", async () => {
  const known = await openWithLetters(47 * HOUR_MS);
  expect(await known.asked("retry", { all: true, channel: "ads" })).toEqual({ done: 1, ...NONE_LEFT });
  const { ids, asked } = await openWithLetters(48 * HOUR_MS);
  const left = [{ event_id: ids[2], channel: "ads", why: "may_double" }];
  expect(await asked("retry", { all: true })).toEqual({ done: 2, left, left_count: 1 });
  expect(await asked("retry", { all: true, accept_doubles: true })).toEqual({ done: 1, ...NONE_LEFT });
});

test("letters of a suspended channel are left, and can be discarded; those given up later than named are not meant", async () => {
  const { harness, asked } = await openWithLetters();
  const data = { channel: "chat", network: "slack", detail: "gone", credential: "c" } as const;
  await harness.append(STREAMS.delivery("chat"), { type: "ChannelSuspended", data });
  expect(await asked("retry", { all: true, channel: "chat" })).toMatchObject({
    done: 0,
    left: [{ why: "suspended" }, { why: "suspended" }],
  });
  expect(await asked("discard", { all: true, until_position: 4, why: "over" })).toMatchObject({ done: 1 });
  expect(harness.projector.state("deliveries").chat.dead).toBe(1);
});

test.each([
  ["retry", {}],
  ["retry", { all: false }],
  ["retry", { all: true, event_ids: [UNKNOWN] }],
  ["retry", { event_ids: [] }],
  ["retry", { event_ids: ["x"] }],
  ["retry", { all: true, why: "over" }],
  ["retry", { all: true, channel: "fax" }],
  ["discard", { all: true }],
  ["discard", { all: true, why: "  " }],
  ["discard", { all: true, why: "x".repeat(501) }],
])("%s refuses %j, and decides nothing", async (path, body) => {
  const { asked, kinds } = await openWithLetters();
  expect(await asked(path, body)).toBe("422 invalid-request");
  expect(await kinds()).toEqual([]);
});
