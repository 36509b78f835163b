import { TypeCompiler, type TypeCheck } from "@sinclair/typebox/compiler";
import { Type, type TObject } from "@sinclair/typebox";
import {
  andThen,
  type Awaitable,
  type Codec,
  type EventStore,
  type Folded as FoldedOf,
  type NewEvent,
  type Recorded as Stored,
} from "eventstore-lite";
import * as access from "./authentication-keys-and-data-reads.ts";
import * as account from "./account.ts";
import * as campaign from "./campaign.ts";
import { createCiphertexts } from "./encrypt-personal-members.ts";
import * as delivery from "./delivery.ts";
import { InvalidEvent, type EventMeta, type EventOf, type EventSpec } from "./define-event.ts";
import * as idempotency from "./answered-request.ts";
import * as restores from "./backup-restore-archive-and-log-repair.ts";
import * as outreach from "./outreach.ts";
import * as personal from "./erasure.ts";
import * as projection from "./rebuilds-and-what-if.ts";
import { ciphertextOf, type Opened } from "./divide-and-encrypt-personal-data.ts";
import { type HiddenOf, type PersonalSpec, type Encryptor, ENCRYPTED } from "./declare-personal-members.ts";
import * as tracking from "./clicks-links-conversions.ts";
import * as verification from "./log-verified-event.ts";
import * as webhook from "./webhook-subscriptions.ts";

/** Definitions of all event types. A new type is added here and nowhere else. */
export const eventSpecs = [
  account.AccountAuthorized,
  account.TokenRefreshed,
  account.TokenRefreshFailed,
  account.AccountUnlinked,
  outreach.RecipientAdded,
  outreach.ConsentRecorded,
  outreach.RecipientSuppressed,
  outreach.RecipientHeld,
  outreach.RecipientReleased,
  outreach.RecipientRetryAllowed,
  outreach.DirectMessageReceived,
  outreach.DirectMessagesSeen,
  outreach.SignalStreamChanged,
  outreach.SignalsReceived,
  outreach.InboxRead,
  outreach.SourceRead,
  outreach.RunStarted,
  outreach.RunPaused,
  outreach.RunStopRequested,
  outreach.RecipientRequested,
  outreach.DirectMessageAttempted,
  outreach.DirectMessageSent,
  outreach.DirectMessageSkipped,
  outreach.DirectMessageFailed,
  outreach.DirectMessageInDoubt,
  outreach.DirectMessageLeft,
  outreach.MessagesLookedUp,
  outreach.RecipientNotReached,
  outreach.RunFinished,
  outreach.RunAbandoned,
  outreach.RunRefused,
  outreach.DryRunRecipientListed,
  outreach.DryRunFinished,
  campaign.CampaignCreated,
  campaign.CampaignChanged,
  campaign.CampaignEnded,
  tracking.LinkClicked,
  tracking.LinkAdded,
  tracking.PersonalLinkClicked,
  tracking.ConversionRecorded,
  tracking.ConversionReversed,
  delivery.NotificationRequested,
  delivery.MessageRequested,
  delivery.ChannelTestRequested,
  delivery.DispatchRetryRequested,
  delivery.DispatchClaimed,
  delivery.DispatchSucceeded,
  delivery.DispatchFailed,
  delivery.DispatchSkipped,
  delivery.DispatchInDoubt,
  delivery.DispatchAbandoned,
  delivery.DispatchDiscarded,
  delivery.DispatchSettled,
  delivery.DispatchLost,
  delivery.CircuitOpened,
  delivery.CircuitClosed,
  delivery.ChannelSuspended,
  delivery.ChannelResumed,
  webhook.WebhookSubscribed,
  webhook.WebhookUnsubscribed,
  idempotency.RequestAnswered,
  projection.ProjectionRebuilt,
  projection.WhatIfAsked,
  restores.LogRestored,
  restores.LogLossAccepted,
  restores.LogTimeCorrected,
  restores.BackupMade,
  restores.EventsArchived,
  restores.BackupRehearsed,
  verification.LogVerified,
  access.AuthenticationsFailed,
  access.TokenUsed,
  access.KeyRotated,
  access.PersonalDataRead,
  personal.PersonForgotten,
  personal.PersonalDataExpired,
  personal.PersonalKeysLost,
] as const;

type Spec = (typeof eventSpecs)[number];

/** The union of all events; `type` distinguishes them. */
export type Event = EventOf<Spec>;

/** Event store that holds reachlog's events. */
export type LogStore = EventStore<Event>;
export type EventType = Event["type"];
export type DataOf<T extends EventType> = Extract<Event, { type: T }>["data"];

/** An event as the log holds it: with position, stream, version, time and hash. */
export type Recorded<T extends EventType = EventType> = Stored<Extract<Event, { type: T }>>;

/** Event as projections see it: without the encrypted members that no fold needs. */
export type Folded<T extends EventType = EventType> = Extract<FoldedEvent, { type: T }>;

/**
 * The type and the data of an event, without the encrypted members that folds do not see. Every way of reading an event
 * returns at least these.
 */
export type EventLike<T extends EventType = EventType> = Extract<ReadBy<Spec>, { type: T }>;

type FoldedEvent = FoldedBy<Spec>;
type FoldedBy<One> = One extends EventSpec ? Omit<FoldedOf<EventOf<One>>, "type" | "data"> & ReadBy<One> : never;
type ReadBy<One> =
  One extends EventSpec<infer T>
    ? { readonly type: T; readonly data: Omit<EventOf<One>["data"], HiddenOf<One>> }
    : never;

/** Makes an event of the current schema version. */
export function makeEvent<T extends EventType>(
  type: T,
  id: string,
  data: DataOf<T>,
  meta: Omit<EventMeta, "schema" | "erased">,
): Extract<Event, { type: T }> {
  const spec = byType.get(type);
  if (spec === undefined) throw new InvalidEvent(`unknown event type ${type}`);
  return { id, type, data, meta: { ...meta, schema: spec.version } } as unknown as Extract<Event, { type: T }>;
}

/** Definition of an event type, with the compiled checks of its schema. */
interface Checked extends EventSpec, PersonalSpec {
  readonly check: () => TypeCheck<TObject>;
  /**
   * Checks data for folds. Accepts additional members, because looking for them would cost more than all other checks.
   */
  readonly checkFolded: () => TypeCheck<TObject>;
  /** Checks data whose personal members are still encrypted, for folds. Accepts additional members. */
  readonly checkClosed: () => TypeCheck<TObject>;
  /**
   * JSON text with which an event's metadata ends if its schema version is the current one. A fold checks only this
   * text, because parsing the metadata takes longer.
   */
  readonly metaEnd: string;
}

const UNKNOWN_TYPE =
  "this version of reachlog has no such event; a log of another version is opened by that version only";

/**
 * Codec of events that can also decrypt stored events without upcasting or checking them. All results are in the order
 * of the events.
 */
export interface EncryptingCodec<E extends NewEvent> extends Codec<E> {
  open(stored: readonly Stored<NewEvent>[]): Awaitable<readonly Opened[]>;
}

/**
 * Builds the codec of a set of event types: checks and encrypts on write; decrypts, upcasts and checks on read. Without
 * an encryptor it writes everything in the clear, and reads encrypted data as erased.
 */
export function createCodec<E extends NewEvent>(
  known: ReadonlyMap<string, Checked>,
  encryptor?: Encryptor,
): EncryptingCodec<E> {
  const ciphertexts = createCiphertexts((type) => known.get(type)?.personal, encryptor);
  const specOf = (type: string, position?: number): Checked => {
    const spec = known.get(type);
    if (spec === undefined) throw new InvalidEvent(`${type} ${where(position)}: ${UNKNOWN_TYPE}`);
    return spec;
  };
  return {
    encode(events, isChecked) {
      for (const { type, data, meta } of events) {
        const spec = specOf(type);
        if (schemaOf(type, meta) !== spec.version) throw new InvalidEvent(`${type} is not of version ${spec.version}`);
        if (isChecked !== true) ensure(spec, spec.check(), data);
      }
      return ciphertexts.close(events);
    },
    decode(chunk) {
      const specs = chunk.map(({ type, position }) => specOf(type, position));
      for (const { type } of chunk) ciphertexts.dropDeletedAt(type);
      return andThen(ciphertexts.open(chunk), (opened) =>
        chunk.map((stored, at) => lifted(specs[at]!, stored, opened[at]!) as unknown as Stored<E>),
      );
    },
    recall(event, { position, stream, version, time, hash }) {
      const { id, type, data, meta } = event;
      ciphertexts.dropDeletedAt(type);
      if (!ciphertexts.isOpen(event)) return undefined;
      return { id, type, data, meta, position, stream, version, time, hash } as unknown as Stored<E>;
    },
    revision: ciphertexts.deletions,
    decodeData(chunk) {
      const data: unknown[] = [];
      const closed: { readonly at: number; readonly version: number }[] = [];
      for (const [at, stored] of chunk.entries()) {
        const { type, meta, position } = stored;
        const spec = specOf(type, position);
        const version = meta.endsWith(spec.metaEnd) ? spec.version : schemaOf(type, JSON.parse(meta), position);
        ciphertexts.dropDeletedAt(type);
        data.push(stored.data);
        if (spec.personal === undefined || ciphertextOf(stored.data) === undefined) {
          data[at] = lift(spec, spec.checkFolded(), stored.data, version, position);
        } else if (spec.personal.inFolds || version !== spec.version) closed.push({ at, version });
        else ensure(spec, spec.checkClosed(), stored.data, position);
      }
      if (closed.length === 0) return data;
      const opened = ciphertexts.open(closed.map(({ at }) => ({ ...chunk[at]!, id: undefined })));
      return andThen(opened, (parts) => {
        for (const [index, { at, version }] of closed.entries()) {
          const { type, position } = chunk[at]!;
          const spec = specOf(type, position);
          data[at] = lift(spec, spec.checkFolded(), parts[index]!.data, version, position);
        }
        return data;
      });
    },
    open: (chunk) => ciphertexts.open(chunk),
  };
}

function lift(spec: Checked, check: TypeCheck<TObject>, data: unknown, version: number, position: number): unknown {
  const current = version === spec.version ? data : upcast(spec, data, version, position);
  ensure(spec, check, current, position);
  return current;
}

function lifted(spec: Checked, stored: Stored<NewEvent>, { data: opened, erased }: Opened): Stored<NewEvent> {
  const version = schemaOf(stored.type, stored.meta, stored.position);
  const data = lift(spec, spec.check(), opened, version, stored.position);
  if (version === spec.version && data === stored.data) return stored;
  const meta = { ...(stored.meta as EventMeta), schema: spec.version, ...(erased ? { erased } : {}) };
  return { ...stored, data, meta };
}

/** Adds compiled checks to the event types of `list`. Throws if an older schema version has no upcast. */
export function compileSpecs(list: readonly (EventSpec & PersonalSpec)[]): ReadonlyMap<string, Checked> {
  return new Map(
    list.map((spec) => {
      for (let version = 1; version < spec.version; version++) {
        if (spec.upcasts[version] === undefined) throw new Error(`${spec.type} has no upcast from version ${version}`);
      }
      const metaEnd = `"schema":${spec.version}}`;
      const checks = {
        check: compiledOnce(() => spec.data),
        checkFolded: compiledOnce(() => withMore(spec.data) as TObject),
        checkClosed: compiledOnce(() => withMore(closedOf(spec)) as TObject),
      };
      return [spec.type, { ...spec, ...checks, metaEnd }] as const;
    }),
  );
}

/**
 * Returns a function that compiles the schema on its first call and then reuses it: compiling the schemas of all event
 * types takes longer than most commands.
 */
function compiledOnce(schema: () => TObject): () => TypeCheck<TObject> {
  let compiled: TypeCheck<TObject> | undefined;
  return () => (compiled ??= TypeCompiler.Compile(schema()));
}

/** Returns a copy of the schema that allows additional members in objects on every level. */
function withMore(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(withMore);
  const { additionalProperties: _, ...copy } = schema as Record<string, unknown>;
  for (const [key, inner] of Object.entries(copy)) copy[key] = withMore(inner);
  return copy;
}

/** Returns the schema of an event type's data while its personal members are encrypted. */
function closedOf({ data, personal: encrypted }: EventSpec & PersonalSpec): TObject {
  if (encrypted === undefined) return data;
  const shown = Object.entries(data.properties).filter(([member]) => !encrypted.members.includes(member));
  return Type.Object({ ...Object.fromEntries(shown), [ENCRYPTED]: Type.String() });
}

const byType = compileSpecs(eventSpecs);

/** All event types, in the order of the catalog. */
export const EVENT_TYPES: readonly EventType[] = eventSpecs.map(({ type }) => type);

/** Codec of all event types without encryption keys, for tests and benchmarks. */
export const codec: EncryptingCodec<Event> = createCodec<Event>(byType);

/** Creates the codec of all event types that encrypts personal data. */
export function encryptingCodec(encryptor: Encryptor): EncryptingCodec<Event> {
  return createCodec<Event>(byType, encryptor);
}

/** Event types that have encrypted members. */
export const ENCRYPTED_TYPES: readonly EventType[] = [...byType.values()].flatMap(({ type, personal: encrypted }) =>
  encrypted === undefined ? [] : [type as EventType],
);

/** Says in an error message where the event is. An event that is about to be written has no position. */
function where(position: number | undefined): string {
  return position === undefined ? "written" : `at ${position}`;
}

function schemaOf(type: string, meta: unknown, position?: number): number {
  const { schema } = meta as { schema?: unknown };
  if (typeof schema !== "number") throw new InvalidEvent(`${type} ${where(position)}: it has no schema version`);
  return schema;
}

function upcast(spec: EventSpec, data: unknown, from: number, position: number): unknown {
  if (from > spec.version) {
    throw new InvalidEvent(`${spec.type} ${where(position)}: version ${from} was written by a newer reachlog`);
  }
  let lifted = data;
  for (let version = from; version < spec.version; version++) {
    const step = spec.upcasts[version];
    if (step === undefined) throw new InvalidEvent(`${spec.type} has no upcast from version ${version}`);
    lifted = step(lifted);
  }
  return lifted;
}

function ensure({ type }: Checked, check: TypeCheck<TObject>, data: unknown, position?: number): void {
  if (check.Check(data)) return;
  const fault = check.Errors(data).First();
  // The error's text leaves out the value, which may be personal.
  throw new InvalidEvent(
    `${type} ${where(position)}: ${fault?.path ?? ""} ${fault?.message ?? "does not fit its schema"}`,
  );
}
