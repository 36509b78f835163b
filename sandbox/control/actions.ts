import { parseFault } from "../faults.ts";
import { NETWORKS } from "../network.ts";
import { isRecord, membersOf } from "../request.ts";
import { channelsOf, type ControlledWorld } from "../world.ts";
import { deliver } from "../x/messages.ts";
import type { Person } from "../x/people.ts";
import { publish } from "../x/posts.ts";
import { findById, findByUsername, type XState } from "../x/state.ts";
import { revokeAll } from "../x/tokens.ts";

/** The control API rejects a request; the message says why. */
export class Misuse extends Error {
  override readonly name = "Misuse";
}

/** Performs one action and returns its result. Throws {@link Misuse}. */
type Action = (sandbox: ControlledWorld, body: unknown, query: URLSearchParams) => unknown;

export const ACTIONS: Readonly<Record<string, Action>> = {
  "GET /_sandbox/arrived": arrived,
  "GET /_sandbox/faults": ({ faults }) => faults.list(),
  "POST /_sandbox/faults": addFault,
  "DELETE /_sandbox/faults": clearFaults,
  "POST /_sandbox/faults/clear": clearFaults,
  "POST /_sandbox/all-off": (sandbox) => sandbox.allOff(),
  "POST /_sandbox/limits": setLimits,
  "POST /_sandbox/people": putPeople,
  "POST /_sandbox/inbound": receive,
  "POST /_sandbox/post": post,
  "POST /_sandbox/clock": moveClock,
  "POST /_sandbox/telegram/migrate": migrate,
  "POST /_sandbox/x/revoke": ({ x }) => revokeAll(x),
  "POST /_sandbox/instances/kill": ({ instances }, body) => instances?.kill(urlIn(body)),
  "POST /_sandbox/instances/start": ({ instances }, body) => instances?.start(urlIn(body)),
  "POST /_sandbox/reset": (sandbox) => sandbox.reset(),
};

/** Everything that arrived: counts are complete, lists contain the newest entries. */
function arrived(sandbox: ControlledWorld) {
  const { tally, x, meta, teams } = sandbox;
  const perRecipient = [...x.accepted.values()];
  const channels = channelsOf(sandbox).map(({ network, state: { messages } }) => {
    return [network, { ...tally[network], total: messages.total, messages: messages.kept }] as const;
  });
  const ofChannels = Object.fromEntries(channels);
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
    ...ofChannels,
    teams: { ...ofChannels["teams"], failures: teams.failures.kept },
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

/**
 * Accepts `{x: {dmLimit, ...}, slack: number, telegram: number, ...}`, all optional. Each network's state documents the
 * unit.
 */
function setLimits(sandbox: ControlledWorld, body: unknown): void {
  const { x } = sandbox;
  if (!isRecord(body)) throw new Misuse("limits want x, slack, telegram or another network");
  const limits = membersOf(body["x"]);
  const unknown = Object.keys(limits).find((name) => !Object.hasOwn(x.limits, name));
  if (unknown !== undefined) throw new Misuse(`X has no limit ${unknown}`);
  Object.assign(x.limits, limits);
  for (const { network, state } of channelsOf(sandbox)) {
    const limit = body[network];
    if (typeof limit === "number") state.limit = limit;
  }
}

/** Adds people, and replaces those with the same id. */
function putPeople({ x }: ControlledWorld, body: unknown): void {
  if (!Array.isArray(body) || !body.every(isPerson))
    throw new Misuse("people want a list of {id, username, name, ...}");
  for (const person of body) {
    // A person who starts to follow us becomes our newest follower.
    if (person.follows_you === true && x.people.get(person.id)?.follows_you !== true) x.people.delete(person.id);
    x.people.set(person.id, person);
  }
}

function isPerson(value: unknown): value is Person {
  if (!isRecord(value)) return false;
  const { id, username, name } = value;
  return /^\d{1,19}$/.test(String(id)) && /^\w{1,15}$/.test(String(username)) && typeof name === "string";
}

/** A person writes to another on X: `{from, to, text}`, by id or handle. */
function receive({ x }: ControlledWorld, body: unknown): { id: string } {
  const { from, to, text } = membersOf(body);
  if (typeof text !== "string" || text === "") throw new Misuse("a message wants a text");
  return { id: deliver(x, personOf(x, from).id, personOf(x, to).id, text).id };
}

/** A person posts: `{from, text}`, by id or handle. */
function post({ x }: ControlledWorld, body: unknown): { id: string } {
  const { from, text } = membersOf(body);
  if (typeof text !== "string" || text === "") throw new Misuse("a post wants a text");
  return { id: publish(x, personOf(x, from), text).id };
}

function personOf(x: XState, handleOrId: unknown): Person {
  const person =
    typeof handleOrId === "string" ? (findById(x, handleOrId) ?? findByUsername(x, handleOrId)) : undefined;
  if (person === undefined) throw new Misuse("from and to want ids or handles of people on X");
  return person;
}

/** Accepts `{advanceMs, speed}`, one or both. */
function moveClock({ clock }: ControlledWorld, body: unknown): { now: number } {
  const { advanceMs, speed } = membersOf(body);
  if (typeof speed === "number") clock.setSpeed(speed);
  if (typeof advanceMs === "number") clock.advance(advanceMs);
  return { now: clock.now() };
}

/** The Telegram group becomes a supergroup with the id `{to}`; null reverts that. */
function migrate({ telegram }: ControlledWorld, body: unknown): void {
  const { to } = membersOf(body);
  const isChat = typeof to === "string" && /^-?\d+$/.test(to);
  if (!isChat && to !== null) throw new Misuse("to wants a chat id, a text of digits, or null");
  telegram.migratedTo = to ?? undefined;
}

function urlIn(body: unknown): string {
  const { url } = membersOf(body);
  if (typeof url !== "string") throw new Misuse("an instance is named by its url");
  return url;
}
