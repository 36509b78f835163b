import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../../events/catalog.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { createTokens } from "../../../src/account/tokens.ts";
import type { OAuth } from "../../../src/account/oauth.ts";
import { createJournal, STREAMS, type Fact } from "../../../src/journal.ts";
import type { Logger } from "../../../src/log.ts";
import { SocialError, type SocialNetwork } from "../../../src/networks/network.ts";
import { X_PRICES } from "../../../src/networks/x-prices.ts";
import { createRunner, type Runner } from "../../../src/outreach/runner.ts";
import { inboundSource } from "../../../src/outreach/sources/inbound.ts";
import { lastSource } from "../../../src/outreach/sources/again.ts";
import { listSource } from "../../../src/outreach/sources/list.ts";
import { createStopWords } from "../../../src/outreach/stop-words.ts";
import { startProjector, type Projector } from "../../../src/projector.ts";
import { createSimulatedNetwork, OWN, type SimulatedNetwork } from "../social-network.ts";
import { RULES } from "../world.ts";
import { createClockwork, createPick, type Clockwork } from "./clockwork.ts";
import { createGrant, type Grant } from "./grant.ts";
import type { Log } from "./logs.ts";
import { createProcess, type Process } from "./process.ts";
import { personId, socialUser, type Kind, type Setting } from "./setting.ts";
import { createWitness, type Witness } from "./witness.ts";

export const SETTLE_MS = 60_000;

/** Short, so that an hour's wait is longer than a run may take. */
export const RUN_MAX_MS = 600_000;

export const CAUSE = { caller: "model" };

/** One process of the service. */
export interface Instance {
  readonly process: Process;
  readonly runner: Runner;
  readonly projector: Projector;
}

/** One log, one network, one clock that may be wrong, and the processes that share them. */
export interface House {
  readonly setting: Setting;
  readonly clockwork: Clockwork;
  readonly network: SimulatedNetwork;
  readonly grant: Grant;
  readonly store: EventStore<Event>;
  readonly witness: Witness;
  /** Those that live, stopped ones too. */
  instances(): readonly Instance[];
  start(): Promise<Instance>;
  /** QUOTA_TIMEZONE of the processes that are started now. */
  timezone(): string;
  changeTimezone(timezone: string): void;
  /** What our machines take for the time, ms since the epoch. */
  clock(): number;
  jump(ms: number): void;
  append(facts: readonly Fact[]): Promise<void>;
  /** Everybody on the list, in the order of import. */
  readonly people: readonly Kind[];
  /** Puts more people on the list. */
  list(kinds: readonly Kind[]): Promise<void>;
  events(from: number): Promise<Recorded[]>;
}

export interface Observer {
  onFate(what: "die" | "pause", point: string): void;
}

export async function openHouse(setting: Setting, log: Log, observer: Observer): Promise<House> {
  const clockwork = createClockwork(setting.start, createPick(setting.seed));
  let offset = 0;
  let { timezone } = setting;
  const clock = (): number => clockwork.now() + offset;
  log.useClock(clock);
  const network = createSimulatedNetwork(clockwork.now);
  network.pageMax = setting.pageMax;
  const grant = createGrant(clockwork.now, (ms) => ms + offset);
  const witness = createWitness({ store: log.store, now: clockwork.now, clock, accepted: network.accepted });
  const { store } = witness;
  let ids = 0;
  const makeId = (): string => `id-${(ids += 1)}`;
  const journal = createJournal(store, makeId);
  const instances: Instance[] = [];
  const people: Kind[] = [];

  const house: House = {
    setting,
    clockwork,
    network,
    grant,
    store,
    witness,
    instances: () => instances.filter(({ process }) => !process.isDead()),
    async start() {
      const instance = await startInstance(house, makeId, observer);
      instances.push(instance);
      return instance;
    },
    timezone: () => timezone,
    changeTimezone: (changed) => {
      timezone = changed;
    },
    clock,
    jump: (ms) => {
      offset += ms;
    },
    async append(facts) {
      const stream = facts[0]?.type.startsWith("Account") === true ? STREAMS.account : STREAMS.outreach;
      await journal.append(stream, facts, CAUSE);
    },
    people,
    async list(kinds) {
      const rows = kinds.flatMap((kind) => {
        const id = personId(people.push(kind) - 1);
        const user = socialUser(kind, id);
        if (user !== undefined) network.people.set(id, user);
        return rowsOf(kind, id);
      });
      await house.append(rows);
    },
    events: (from) => Array.fromAsync(store.read({ from })),
  };
  await authorize(house);
  await house.list(setting.people);
  return house;
}

function rowsOf(kind: Kind, id: string): Fact[] {
  const basis = kind === "no_consent" ? "none" : "opt_in";
  const row = (recipient: Recipient): Fact => ({
    type: "RecipientAdded",
    data: { recipient, basis, fields: {}, source: "list" },
  });
  const byHandle = row({ username: `USER_${id}` });
  if (kind === "by_handle") return [byHandle];
  if (kind === "suppressed") {
    return [{ type: "RecipientSuppressed", data: { recipient: { id }, reason: "by_hand" } }, row({ id })];
  }
  return kind === "twice" ? [row({ id }), byHandle] : [row({ id })];
}

/** A person authorizes the account, for the first time or again. */
export async function authorize({ grant, append, clock }: House): Promise<void> {
  grant.authorize();
  const expires_at = new Date(clock()).toISOString();
  await append([{ type: "AccountAuthorized", data: { user: OWN, scopes: ["dm.write"], expires_at } }]);
}

async function startInstance(house: House, makeId: () => string, { onFate }: Observer): Promise<Instance> {
  const { clockwork, setting, witness, grant, clock } = house;
  const process = createProcess({ clockwork, store: witness.store, head: witness.head, onFate });
  // A start reads the log in one go; what it may die of there is another test's matter.
  const projector = await startProjector({ ...witness.store, subscribeBatches: process.store.subscribeBatches });
  const journal = createJournal(process.store, makeId);
  const holder = makeId();
  const common = { journal, projector, clock, sleep: process.sleep, holder, log: SILENT, announce: async () => {} };
  const oauth = {
    refresh: (token: string) => process.call("refresh", () => grant.oauth.refresh(token)),
  } as OAuth;
  const credentials = createTokens({ ...common, vault: grant.vault, oauth });
  const runner = createRunner({
    ...common,
    network: witness.watch(process, projector, guarded(house), setting.answerMs),
    credentials,
    sources: [listSource(() => projector.state("contacts")), inboundSource(), lastSource()],
    rules: { ...RULES, dailyLimit: setting.dailyLimit },
    prices: X_PRICES,
    isOptOut: createStopWords(["stop"]),
    random: () => 0.5,
    timezone: house.timezone(),
    runMaxMs: RUN_MAX_MS,
    settleMs: SETTLE_MS,
    spacingMs: setting.spacingMs,
    makeId,
  });
  return { process, runner, projector };
}

const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** The network as it treats a token that it does not (or no longer) take. Its times are told by our clock, as by the port. */
function guarded({ network, grant, clock, clockwork }: House): SocialNetwork {
  const admit = (token: string): void => {
    if (!grant.accepts(token)) throw new SocialError("unauthorized", "invalid token");
  };
  const read =
    <Args extends unknown[], T>(ask: (token: string, ...args: Args) => Promise<T>) =>
    async (token: string, ...args: Args): Promise<T> => {
      admit(token);
      return ask(token, ...args);
    };
  return {
    network: network.network,
    me: read(network.me),
    usersById: read(network.usersById),
    usersByUsername: read(network.usersByUsername),
    followers: read(network.followers),
    listMembers: read(network.listMembers),
    searchAuthors: read(network.searchAuthors),
    conversation: read(network.conversation),
    inbox: read(network.inbox),
    async sendDm(token, recipientId, text) {
      if (!grant.accepts(token)) return { outcome: "unauthorized", rate: undefined };
      const result = await network.sendDm(token, recipientId, text);
      if (result.outcome !== "rate_limited") return result;
      return { ...result, retryAt: result.retryAt + clock() - clockwork.now() };
    },
  };
}

/** The person's id; the model names everybody by the same scheme. */
export function idOf(who: Recipient): string {
  return who.id ?? (who.username ?? "").toLowerCase().replace("user_", "");
}
