import type { EventStore } from "eventstore-lite";
import { LogDiverged } from "eventstore-lite/testing";
import type { Event, Recorded } from "../../../events/event-types-and-codec.ts";
import type { Recipient } from "../../../events/outreach.ts";
import type { HeartbeatTime } from "../../../src/log/instance-heartbeats.ts";
import { noticeCopy, recordRestore } from "../../../src/log/notice-and-record-restore.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import type { StorePlace } from "../../../src/log/store-backends.ts";
import type { EncryptedLog } from "../../../src/privacy/encrypted-log.ts";
import { SILENT } from "../../harness/in-process/temporary-log.ts";
import { createSimulatedNetwork, OWN, type SimulatedNetwork } from "../../harness/in-process/social-network.ts";
import { createCampaigns } from "./campaign-rules.ts";
import { createClockwork, createPick, type Clockwork } from "./step-scheduler.ts";
import { createGrant, type Grant } from "./simulated-oauth-grant.ts";
import { startInstance, type Instance } from "./instance.ts";
import type { Log } from "./log-with-copies.ts";
import { idOfHandle, personId, rowsOf, socialUser, type Kind, type Setting } from "./initial-state.ts";
import { createWitness, type Noted, type Witness } from "./record-appends-and-send-requests.ts";

export const METADATA = { caller: "model" };

/**
 * Simulated world of a generated history: one log, one network, clocks that may be wrong, and the service's processes
 * that share them.
 */
export interface House {
  readonly setting: Setting;
  readonly clockwork: Clockwork;
  readonly network: SimulatedNetwork;
  readonly grant: Grant;
  /**
   * Present store of the simulated log, wrapped so that `witness` observes each append. After a copy, such as a
   * restored backup, has replaced the log, this is the store of that copy.
   */
  readonly store: EventStore<Event>;
  readonly log: EncryptedLog;
  readonly witness: Witness;
  /** Returns the processes that have not ended, including paused ones. */
  instances(): readonly Instance[];
  /** Starts a process. Each second one opens its own connection to the log. */
  start(): Promise<Instance>;
  /** Ends all processes at once. */
  killAll(): void;
  /** Returns the time of the log's clock, ms since the epoch. */
  clock(): number;
  /**
   * Returns the time of a machine whose clock was moved only together with all other clocks, ms since the epoch. If one
   * process owns the log, this is the log's clock.
   */
  machineClock(): number;
  /** Moves all clocks. */
  jump(ms: number): void;
  /** Moves the clock of the log's server alone. If one process owns the log there is no server, so all clocks move. */
  jumpOfServer(ms: number): void;
  /** Times at which the log's clock was moved, in ms by the network's clock. */
  readonly clockMoves: readonly number[];
  /** Makes all clocks agree again. */
  setClocksRight(): void;
  append(newEvents: readonly NewEvent[]): Promise<void>;
  /** Kind of each person who was put on the list of recipients, in the order of import. */
  readonly people: readonly Kind[];
  /** Creates people of these kinds at the network and imports them as recipients. */
  list(kinds: readonly Kind[]): Promise<void>;
  events(from: number): Promise<Recorded[]>;
  /** Present value of QUOTA_TIMEZONE. Processes read it only at their start, so all of them end before it changes. */
  timezone: string;
  /** All values that QUOTA_TIMEZONE had in this history. */
  readonly timezones: Set<string>;
  /** Position of the log's last event at the beginning of the history. Every copy of the log contains it. */
  readonly begun: number;
  backUp(): Promise<void>;
  /**
   * Clock and wait for the check that no other instance lives. While the check waits, living instances send heartbeats.
   */
  readonly heartbeatTime: HeartbeatTime;
  /**
   * Replaces the log by an older copy. Ends all processes first; with `isBeside` they continue and keep the lost log
   * open. Returns false if no copy exists.
   */
  replaceLog(by: Copy, isBeside?: boolean): Promise<boolean>;
  readonly replaced: readonly Replacement[];
  /**
   * Counts of restores while instances used the log: `refused` because an instance lived; `ended` counts paused
   * instances that ended because their log was replaced.
   */
  readonly besides: { refused: number; ended: number };
  /** Ids of the runs that a request wrongly joined, because its caller had asked for another campaign. */
  readonly wrongJoins: string[];
  /** Ids of the runs that an instance started although it could know that its clock was wrong. */
  readonly wrongStarts: string[];
  /**
   * Times of failed requests, in ms by the network's clock. `stopped`: the network said that the whole account may not
   * send.
   */
  readonly troubles: { readonly at: number; readonly what: "failed" | "stopped" }[];
  /**
   * Ids of the people who got no message because the network refused it for their own state, such as closed messages.
   */
  readonly refused: Set<string>;
  /** Number of pages of the inbox and of sources that were read since the last end of a run. */
  pagesRead: number;
  /** Lower-case handle that passed from one person to another -> id of its new holder. */
  readonly heirs: Map<string, string>;
  /** Ids of all people who ever took over another's handle, even if they later gave it up. */
  readonly everHeirs: Set<string>;
  /** Ids of erased people. */
  readonly forgotten: Set<string>;
  /**
   * Lower-case handle by which the log knew an erased person -> time of the erasure. A later event that has only this
   * handle may be erased too, although it may mean another person.
   */
  readonly forgottenHandles: Map<string, number>;
  /** Data of events that an erasure treated as those of the erased person. */
  readonly takenForTheirs: Set<object>;
  /** Keyed hash on a suppression list -> the id or handle that it hashes. */
  readonly hashed: Map<string, Recipient>;
}

/**
 * Source of an older log: a backup to restore, files copied at the time of the newest backup, or an export up to a
 * position.
 */
export type Copy = "backup" | "files" | { readonly exportOf: number };

/** A replacement of the log by a copy. `head` is the position of the copy's last event. */
export interface Replacement {
  /** Time in ms, by the network's clock, at which the copy replaced the log. */
  readonly at: number;
  /**
   * Time in ms that the service's clock showed when the log was replaced. It differs from `at` if the simulation has
   * set that clock wrong.
   */
  readonly ownTime: number;
  readonly head: number;
  readonly by: Copy;
}

export interface Observer {
  onFate(what: "die" | "pause", point: string): void;
}

export async function openHouse(setting: Setting, log: Log, observer: Observer): Promise<House> {
  const clockwork = createClockwork(setting.start, createPick(setting.seed));
  let offset = 0;
  let machineOffset = 0;
  const clockMoves: number[] = [];
  const clock = (): number => clockwork.now() + offset;
  log.useClock(clock);
  const network = createSimulatedNetwork(clockwork.now);
  network.pageMax = setting.pageMax;
  const grant = createGrant(clockwork.now, (ms) => ms + offset);
  const heirs = new Map<string, string>();
  const witness = createWitness({
    now: clockwork.now,
    clock,
    accepted: network.accepted,
    answerMs: setting.answerMs,
    holderOf: ({ id, username = "" }: Recipient) => id ?? heirs.get(username.toLowerCase()) ?? idOfHandle(username),
  });
  let store = await witness.attend(log.store, []);
  let backup: readonly Noted[] = [];
  let ids = 0;
  let begun = 0;
  const makeId = (): string => `id-${(ids += 1)}`;
  const instances: Instance[] = [];
  const people: Kind[] = [];
  const replaced: Replacement[] = [];

  const house: House = {
    setting,
    clockwork,
    network,
    grant,
    get store() {
      return store;
    },
    get log() {
      return log.store;
    },
    witness,
    instances: () => instances.filter(({ process }) => !process.isDead()),
    async start() {
      const isSecond = instances.length % 2 === 1;
      const opened = isSecond ? log.second : log.store;
      const own = isSecond ? witness.beside(log.second) : store;
      const { epoch } = opened;
      const isReplaced = (): boolean => log.store.epoch !== epoch;
      const deps = {
        store: fenced(own, isReplaced),
        isReplaced,
        keyring: opened.keyring,
        makeId,
        onFate: observer.onFate,
      };
      const instance = await startInstance(house, deps);
      instances.push(instance);
      return instance;
    },
    killAll() {
      for (const { process } of house.instances()) process.die();
    },
    clock,
    machineClock: () => clockwork.now() + machineOffset,
    clockMoves,
    jump: (ms) => {
      machineOffset += ms;
      offset += ms;
      clockMoves.push(clockwork.now());
    },
    jumpOfServer(ms) {
      if (setting.isOwned) return house.jump(ms);
      offset += ms;
      clockMoves.push(clockwork.now());
    },
    setClocksRight() {
      house.jumpOfServer(setting.isOwned ? 0 : machineOffset - offset);
      for (const { moveClock, aheadMs } of house.instances()) moveClock(-aheadMs());
    },
    async append(newEvents) {
      const stream = newEvents[0]?.type.startsWith("Account") === true ? STREAMS.account : STREAMS.outreach;
      await createEventLog(store, makeId).append(stream, newEvents, METADATA);
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
    events: async (from) => (await Array.fromAsync(store.read({ from }))).map(witness.asAppended),
    timezone: setting.timezone,
    timezones: new Set([setting.timezone]),
    get begun() {
      return begun;
    },
    heartbeatTime: {
      elapsedMs: clockwork.now,
      async sleep(ms) {
        await clockwork.pass(ms);
        for (const { process, beat } of house.instances()) if (!process.isPaused()) await beat();
      },
    },
    async replaceLog(by, isBeside = false) {
      if (!isBeside) house.killAll();
      // After a restore of a log in a file, the operator must declare it; for a log on a server, the starting process
      // notices it.
      const begin = (place: StorePlace): Promise<void> =>
        setting.isOwned
          ? place.beginEpoch("operator", "model")
          : noticeCopy(place, makeId(), SILENT, house.heartbeatTime);
      if (typeof by === "object") await log.importUpTo(by.exportOf);
      else if (!(await (by === "backup" ? log.restore({ isBeside }) : log.putBack(begin, { isBeside })))) return false;
      store = await witness.attend(log.store, typeof by === "object" ? witness.notes() : backup);
      await recordRestore(createEventLog(store, makeId), SILENT);
      replaced.push({ at: clockwork.now(), ownTime: clock(), head: witness.head(), by });
      return true;
    },
    async backUp() {
      await log.backUp();
      backup = witness.notes();
    },
    besides: { refused: 0, ended: 0 },
    wrongJoins: [],
    wrongStarts: [],
    troubles: [],
    refused: new Set(),
    pagesRead: 0,
    replaced,
    heirs,
    everHeirs: new Set(),
    forgottenHandles: new Map(),
    takenForTheirs: new Set(),
    forgotten: new Set(),
    hashed: new Map(),
  };
  await authorize(house);
  await house.append(createCampaigns());
  await house.list(setting.people);
  begun = witness.head();
  return house;
}

/**
 * Wraps a store that was opened on a server's log. Once another log has replaced that one, appends and leases fail as
 * in the real store.
 */
function fenced(store: EventStore<Event>, isReplaced: () => boolean): EventStore<Event> {
  const admit = (): void => {
    if (isReplaced()) throw new LogDiverged("another log is in its place");
  };
  return {
    ...store,
    async append(...args) {
      admit();
      return store.append(...args);
    },
    confirm: async (head) => (isReplaced() ? "replaced" : store.confirm(head)),
    leases: {
      ...store.leases,
      async acquire(...args) {
        admit();
        return store.leases.acquire(...args);
      },
      async release(lease) {
        admit();
        return store.leases.release(lease);
      },
    },
  };
}

/** A second account. It shares its mailbox with the first, so each account finds the other's messages in it. */
export const SECOND = { id: "2", username: "others", name: "Others" };

/** Simulates that the operator authorizes an account, for the first time or again. */
export async function authorize({ grant, append, clock }: House, user = OWN): Promise<void> {
  await grant.authorize();
  const expires_at = new Date(clock()).toISOString();
  await append([{ type: "AccountAuthorized", data: { user, scopes: ["dm.write"], expires_at } }]);
}
