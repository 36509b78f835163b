// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { startSandbox, type Sandbox } from "../../../sandbox/sandbox.ts";
import { signalChat, signalRead } from "../../../sandbox/x/activity-subscriptions-and-stream.ts";
import { isWhole } from "../../harness/case-count.ts";
import { personId } from "../../sandbox/call-simulated-x.ts";
import { createPick } from "../model/step-scheduler.ts";
import { eventually, openSignals, type SignalWorld } from "./signal-harness.ts";

const HISTORIES = Number(process.env["FAULT_HISTORIES"] ?? (isWhole ? 1_000 : 20));
const SEED = Number(process.env["FAULT_SEED"] ?? Math.ceil(Math.random() * 1_000_000));

const HANDLES = [
  "ada_builds",
  "grace_codes",
  "linus_k",
  "mina_designs",
  "tomas_r",
  "yuki_dev",
  "omar_writes",
  "sara_sells",
];
const ACTS = ["stop", "stop", "hello", "read", "chat", "kill"] as const;
const DAMAGES = [undefined, undefined, undefined, "repeat", "reorder", "drop", "cut", "disconnect"] as const;

/** Maximum number of acts of people after each message of the run. */
const ACTS_MAX = 3;

/** Maximum time, in ms, between people's acts and the moment when the run goes on. */
const SPREAD_MS_MAX = 30;

type Pick = ReturnType<typeof createPick>;
type Counts = Record<(typeof ACTS)[number] | "sent" | "live" | "read later", number>;

test(`no message follows a recorded opt-out, and no event is doubled, in ${HISTORIES} runs with a broken stream`, async () => {
  console.log(`seed ${SEED} (FAULT_SEED=${SEED} chooses the same acts)`);
  await using sandbox = await startSandbox({ x: { dmLimit: 1_000, dmReadLimit: 10_000, keepAliveMs: 20 } });
  const pick = createPick(SEED);
  const counts: Counts = { stop: 0, hello: 0, read: 0, chat: 0, kill: 0, sent: 0, live: 0, "read later": 0 };
  const latencies: number[] = [];
  for (let history = 0; history < HISTORIES; history++) {
    sandbox.reset();
    await live(sandbox, pick, counts, latencies);
  }
  latencies.sort((one, other) => one - other);
  const median = latencies[Math.floor(latencies.length / 2)] ?? NaN;
  console.log(
    `runs with a broken stream ${HISTORIES}: ${JSON.stringify(counts)}, stop word to suppression ${median.toFixed(0)} ms median, ${latencies.at(-1)?.toFixed(0)} ms at most`,
  );
  expect(counts.live).toBeGreaterThan(0);
});

/**
 * Simulates one run. People act while it sends, the stream of signals has faults, and the instance that follows the
 * stream dies.
 */
async function live(sandbox: Sandbox, pick: Pick, counts: Counts, latencies: number[]): Promise<void> {
  await using world = await openSignals(sandbox, ...HANDLES);
  let followed = await world.follow();
  await eventually(async () => (await world.events("InboxRead")).length > 0);
  const runner = await world.start({ credentials: followed.context.credentials });
  const { network } = runner.context;
  const { sendDm } = network;
  /** Messages that the run sent, each with the position up to which it had read the log. */
  const sends: { id: string; seen: number }[] = [];
  /**
   * Times in ms at which people wrote a stop word while the test let the stream of signals announce it without a fault,
   * by the id of the sender.
   */
  const signalled = new Map<string, number>();
  const stopped = new Set<string>();

  const act = async (): Promise<void> => {
    const id = personId(sandbox, HANDLES[pick(HANDLES.length)]!);
    const kind = ACTS[pick(ACTS.length)]!;
    const damage = DAMAGES[pick(DAMAGES.length)];
    counts[kind]++;
    if (kind === "kill") {
      followed.die();
      for (const connection of sandbox.x.activity.connections) connection.end("cut");
      followed = await world.follow();
      return;
    }
    sandbox.faults.clear();
    if (damage !== undefined) sandbox.faults.add({ network: "x", kind: `stream_${damage}`, count: 1 });
    if (kind === "read") signalRead(sandbox.x, id, world.own.id);
    if (kind === "chat") signalChat(sandbox.x, id, world.own.id);
    if (kind !== "stop" && kind !== "hello") return;
    const { activity } = sandbox.x;
    if (kind === "stop" && damage === undefined && activity.connections.size > 0 && !stopped.has(id)) {
      signalled.set(id, performance.now());
    }
    if (kind === "stop") stopped.add(id);
    world.write(sandbox.x.people.get(id)!.username, kind === "stop" ? "Stop" : "hello");
  };

  using _watching = {
    [Symbol.dispose]: runner.projector.listen(({ type, data }) => {
      if (type !== "RecipientSuppressed" || !("recipient" in data)) return;
      const at = signalled.get((data as { recipient: { id: string } }).recipient.id);
      if (at !== undefined && "via" in data) latencies.push(performance.now() - at);
    }),
  };
  network.sendDm = async (token, id, text) => {
    sends.push({ id, seen: runner.projector.position });
    const sent = await sendDm(token, id, text);
    for (let acts = pick(ACTS_MAX + 1); acts > 0; acts--) await act();
    // In half of the cases the run waits, so that signals may arrive before its next message.
    if (pick(2) === 0) await Bun.sleep(pick(SPREAD_MS_MAX));
    return sent;
  };
  await runner.run();
  sandbox.faults.clear();
  // A last run without network faults finds in the inbox all messages that the network's stream of signals did not
  // announce.
  await runner.run();
  counts.sent += sends.length;
  await check(world, sends, stopped, counts);
  for (const id of sandbox.x.accepted.values()) expect(id).toBe(1);
  const billed = sandbox.x.activity.signals.kept.filter(({ type }) => type !== "dm.read");
  const charged = (await world.events("SignalsReceived")).reduce((sum, { data }) => sum + data.messages, 0);
  expect(charged).toBeLessThanOrEqual(billed.length);
}

async function check(
  world: SignalWorld,
  sends: readonly { id: string; seen: number }[],
  stopped: ReadonlySet<string>,
  counts: Counts,
): Promise<void> {
  const suppressed = await world.events("RecipientSuppressed");
  const held = await world.events("RecipientHeld");
  for (const { position, data } of [...suppressed, ...held]) {
    const late = sends.filter(({ id, seen }) => id === data.recipient?.id && seen >= position);
    expect(late).toEqual([]);
  }
  expect(new Set(suppressed.map(({ data }) => data.recipient?.id))).toEqual(new Set(stopped));
  for (const { data } of suppressed) counts[data.via === "stream" ? "live" : "read later"]++;
  const doubled = [
    twice(suppressed, ({ data }) => data.recipient?.id),
    twice(held, ({ data }) => data.message_id),
    twice(await world.events("DirectMessageReceived"), ({ data }) => data.message_id),
    twice(await world.events("DirectMessagesSeen"), ({ data }) => data.recipient.id),
  ].flat();
  expect(doubled).toEqual([]);
}

/** Returns each name that more than one of the events has. */
function twice<Event extends Recorded>(events: readonly Event[], name: (event: Event) => string | undefined) {
  return [...Map.groupBy(events, name)].filter(([, all]) => all.length > 1).map(([id]) => id);
}
