import type { Snapshots } from "eventstore-lite";
import { createTokens } from "../../../src/account/tokens.ts";
import type { OAuth } from "../../../src/account/oauth.ts";
import type { Recipient } from "../../../events/outreach.ts";
import type { MakeId } from "../../../src/platform/clock.ts";
import { createEventLog, type EventMetadata } from "../../../src/log/event-log.ts";
import { SocialError, type SocialNetwork } from "../../../src/networks/network.ts";
import { X_PRICES } from "../../../src/networks/x.ts";
import { createRunner, type Runner } from "../../../src/outreach/runner.ts";
import { requestStop } from "../../../src/outreach/stop-run.ts";
import {
  againSource,
  followersSource,
  inboundSource,
  lastSource,
  listSource,
} from "../../../src/outreach/sources/sources.ts";
import { createStopWords } from "../../../src/outreach/stop-words.ts";
import { erasing } from "../../../src/privacy/apply-erasures.ts";
import type { Keyring } from "../../../src/privacy/keyring.ts";
import { startProjector, type Projector } from "../../../src/projector/projector.ts";
import { RULES } from "../../harness/memory/outreach.ts";
import type { House } from "./house.ts";
import { createProcess, type Process, type ProcessDeps } from "./process.ts";
import { SILENT } from "../../harness/memory/log.ts";

export const SETTLE_MS = 60_000;

/** Short, so that an hour's wait is longer than a run may take. */
export const RUN_MAX_MS = 600_000;

/** One process of the service. */
export interface Instance {
  readonly process: Process;
  readonly runner: Runner;
  readonly projector: Projector;
  /** Somebody asks it to stop the run in progress, wherever that is made. */
  requestStop(metadata: EventMetadata): Promise<unknown>;
}

interface InstanceDeps extends Pick<ProcessDeps, "store" | "onFate"> {
  readonly keyring: Keyring;
  readonly makeId: MakeId;
}

export async function startInstance(house: House, deps: InstanceDeps): Promise<Instance> {
  const { clockwork, setting, witness, grant, clock } = house;
  const { store, keyring, makeId, onFate } = deps;
  // What a process held of the keys before is gone with it.
  keyring.refresh();
  const isForgotten = (who: Recipient): boolean => keyring.isForgotten(who);
  const process = createProcess({ clockwork, store: witness.refusing(store), head: witness.head, onFate });
  // A start reads the log in one go; what it may die of there is another test's matter.
  // The clockwork does not wait for snapshots, so that there are none.
  const followed = { ...store, subscribeBatches: process.store.subscribeBatches, snapshots: NO_SNAPSHOTS };
  const projector = await startProjector(followed, { logger: SILENT, erase: erasing(keyring) });
  const eventLog = createEventLog(process.store, makeId);
  const holder = makeId();
  const common = { eventLog, projector, clock, sleep: process.sleep, holder, logger: SILENT, announce: async () => {} };
  const oauth = {
    refresh: (token: string) => process.call("refresh", () => grant.oauth.refresh(token)),
  } as OAuth;
  const credentials = createTokens({ ...common, vault: grant.vault, oauth });
  const list = [againSource(), listSource(), inboundSource()];
  const others = setting.followers ? [followersSource(), lastSource()] : [lastSource()];
  const runner = createRunner({
    ...common,
    network: witness.watch(process, projector, guarded(house)),
    credentials,
    sources: [...list, ...others],
    rules: { ...RULES, dailyLimit: setting.dailyLimit, requireConsent: !setting.followers, isForgotten },
    prices: X_PRICES,
    isOptOut: createStopWords(["stop"]),
    random: () => 0.5,
    timezone: house.timezone,
    runMaxMs: RUN_MAX_MS,
    settleMs: SETTLE_MS,
    spacingMs: setting.spacingMs,
    makeId,
  });
  const deciding = { ...common, random: () => 0.5 };
  return { process, runner, projector, requestStop: (metadata) => requestStop(deciding, undefined, metadata) };
}

const NO_SNAPSHOTS: Snapshots = {
  load: async () => undefined,
  save: async () => {},
  list: async () => [],
  remove: async () => {},
};

/** More pages than any history has people and messages for. */
export const PAGES_MAX = 1_000;

/**
 * The network as it treats a token that it does not (or no longer) take, and what went wrong at it. Its times are given by
 * our clock, as by the port.
 */
function guarded(house: House): SocialNetwork {
  const { network, grant, clock, clockwork, troubles } = house;
  const fail = (what: "failed" | "stopped"): void => void troubles.push({ at: clockwork.now(), what });
  const read =
    <Args extends unknown[], T>(ask: (token: string, ...args: Args) => Promise<T>) =>
    async (token: string, ...args: Args): Promise<T> => {
      try {
        if (!grant.accepts(token)) throw new SocialError("unauthorized", "invalid token");
        return await ask(token, ...args);
      } catch (fault) {
        if (fault instanceof SocialError && fault.retryAt === undefined) fail("failed");
        throw fault;
      }
    };
  /** What reads without end gets one here: the ledger finds that it had none. */
  const readPage = <Args extends unknown[], T>(ask: (token: string, ...args: Args) => Promise<T>) =>
    read(async (...args: [string, ...Args]) => {
      house.pagesRead += 1;
      // The service gives up a list that goes round in circles, as one that it cannot read.
      if (network.cursors !== "onward") for (const what of ["failed", "failed"] as const) fail(what);
      if (house.pagesRead > PAGES_MAX) throw new SocialError("rejected", "enough");
      return ask(...args);
    });
  return {
    network: network.network,
    me: read(network.me),
    usersById: read(network.usersById),
    usersByUsername: read(network.usersByUsername),
    followers: readPage(network.followers),
    listMembers: readPage(network.listMembers),
    searchAuthors: readPage(network.searchAuthors),
    conversation: read(network.conversation),
    inbox: readPage(network.inbox),
    async sendDm(token, recipientId, text) {
      if (!grant.accepts(token)) return { outcome: "unauthorized", rate: undefined };
      const result = await network.sendDm(token, recipientId, text);
      if (result.outcome === "stopped") fail("stopped");
      if (result.outcome === "not_permitted" || result.outcome === "recipient_closed") house.refused.add(recipientId);
      // A send that did not come about counts for two reads: it is not tried again.
      if (result.outcome === "unreachable") for (const what of ["failed", "failed"] as const) fail(what);
      if (result.outcome !== "rate_limited") return result;
      return { ...result, retryAt: result.retryAt + clock() - clockwork.now() };
    },
  };
}
