import { parseFault } from "../faults.ts";
import { NETWORKS, type Network } from "../network-origins-and-refusals.ts";
import type { Recorded } from "../record-received.ts";
import { membersOf } from "../read-request.ts";
import type { ControlledWorld } from "../world.ts";
import { signalChat, signalRead } from "../x/activity-subscriptions-and-stream.ts";
import { deliver } from "../x/messages.ts";
import type { Person } from "../x/people.ts";
import { findById, findByUsername, type XState } from "../x/state.ts";
import { revokeAll } from "../x/tokens.ts";

/** Thrown if a request to the sandbox's control API is invalid. The message says why. */
export class Misuse extends Error {
  override readonly name = "Misuse";
}

/**
 * Performs one action of the sandbox's control API, by which tests and the demo steer the imitated networks, and
 * returns its result. Throws {@link Misuse}.
 */
type Action = (sandbox: ControlledWorld, body: unknown, query: URLSearchParams) => unknown;

export const ACTIONS: Readonly<Record<string, Action>> = {
  "GET /_sandbox/arrived": arrived,
  "GET /_sandbox/faults": ({ faults }) => faults.list(),
  "POST /_sandbox/faults": addFault,
  "POST /_sandbox/faults/clear": clearFaults,
  "POST /_sandbox/all-off": (sandbox) => sandbox.allOff(),
  "POST /_sandbox/inbound": receive,
  "POST /_sandbox/instances/kill": ({ instances }, body) => instances?.kill(urlIn(body)),
  "POST /_sandbox/instances/start": ({ instances }, body) => instances?.start(urlIn(body)),
  "POST /_sandbox/revoke": ({ x }) => revokeAll(x),
  "POST /_sandbox/signal": signal,
  "POST /_sandbox/reset": (sandbox) => sandbox.reset(),
};

interface Received {
  readonly messages: Recorded<unknown>;
}

/** Returns all that services sent to the networks: the counts are complete, the lists contain the newest entries. */
function arrived(sandbox: ControlledWorld) {
  const { tally, x, meta, openai, snap, slack, discord, googleChat, teams, telegram, line, whatsapp } = sandbox;
  const perRecipient = [...x.accepted.values()];
  const toJson = (network: Network, { messages: { total, kept } }: Received) => {
    return { ...tally[network], total, messages: kept };
  };
  return {
    x: {
      ...tally.x,
      total: x.messages.total,
      messages: x.messages.kept,
      accepted: perRecipient.reduce((sum, count) => sum + count, 0),
      billed: x.billed,
      recipients: perRecipient.length,
      most_per_recipient: most(perRecipient),
      accepted_by_recipient: Object.fromEntries(x.accepted),
      grants: x.grants.kept,
      refreshes_per_token_most: most(x.refreshUses.values()),
    },
    meta: { ...tally.meta, bodies: meta.requests.total, unique: meta.events.total, events: meta.events.kept },
    openai: { ...tally.openai, unique: openai.events.total, events: openai.events.kept },
    snap: { ...tally.snap, unique: snap.events.total, events: snap.events.kept },
    slack: toJson("slack", slack),
    discord: toJson("discord", discord),
    google_chat: toJson("google_chat", googleChat),
    teams: { ...toJson("teams", teams), failures: teams.failures.kept },
    telegram: toJson("telegram", telegram),
    line: toJson("line", line),
    whatsapp: toJson("whatsapp", whatsapp),
  };
}

function most(counts: Iterable<number>): number {
  let highest = 0;
  for (const count of counts) highest = Math.max(highest, count);
  return highest;
}

function addFault({ faults }: ControlledWorld, body: unknown): void {
  const fault = parseFault(body);
  if (fault === undefined) {
    throw new Misuse("a fault wants network and kind, and may have count, path, retryAfter, asDate");
  }
  faults.add(fault);
}

function clearFaults({ faults }: ControlledWorld, _body: unknown, query: URLSearchParams): void {
  const network = NETWORKS.find((name) => name === query.get("network"));
  const kind = query.get("kind") ?? undefined;
  faults.clear(network, kind);
  faults.release(network, kind);
}

/** Simulates that a person writes to another on X. The request is `{from, to, text}`, with people by id or handle. */
function receive({ x }: ControlledWorld, body: unknown): { id: string } {
  const { from, to, text } = membersOf(body);
  if (typeof text !== "string" || text === "") throw new Misuse("a message wants a text");
  return { id: deliver(x, personOf(x, from).id, personOf(x, to).id, text).id };
}

/**
 * Makes the simulated X signal that a person read messages (`kind` is `read`) or wrote in X Chat (`chat`). The request
 * is `{kind, from, to, last_read_id}`. With `last_read_id`, the id of the last read message, the signal has its older
 * form.
 */
function signal({ x }: ControlledWorld, body: unknown): void {
  const { kind, from, to, last_read_id: last } = membersOf(body);
  const [sender, receiver] = [personOf(x, from).id, personOf(x, to).id];
  if (kind === "chat") return signalChat(x, sender, receiver);
  if (kind !== "read") throw new Misuse("a signal is of the kind read or chat");
  signalRead(x, sender, receiver, typeof last === "string" && last !== "" ? last : undefined);
}

function personOf(x: XState, handleOrId: unknown): Person {
  const person =
    typeof handleOrId === "string" ? (findById(x, handleOrId) ?? findByUsername(x, handleOrId)) : undefined;
  if (person === undefined) throw new Misuse("from and to want ids or handles of people on X");
  return person;
}

function urlIn(body: unknown): string {
  const { url } = membersOf(body);
  if (typeof url !== "string") throw new Misuse("an instance is named by its url");
  return url;
}
