import type { Static, TObject, TProperties } from "@sinclair/typebox";
import type { EventStore } from "eventstore-lite";
import type { VNode } from "preact";
import type { Event, Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import type { ProjectionName, StateOf } from "../../projections/all.ts";
import type { HashesOf } from "../recipients/suppress.ts";
import type { Config } from "../config/config.ts";
import type { ConfigParts } from "../config/optional-parts.ts";
import type { SourcedToken } from "../config/tokens.ts";
import type { Circuit } from "../delivery/rate-limiter.ts";
import type { Instance } from "../log/instance-heartbeats.ts";
import type { VerificationProgress } from "../log/verifier.ts";
import { readRefusal, type DeclaredRefusals, type Operation } from "../platform/operation.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { Disclosed } from "../privacy/read-audit.ts";
import type { LogReader } from "../projector/log-reader.ts";
import type { PastStates } from "../projector/past-states.ts";

/** The context of an operation that a page asks. */
export interface PageReader extends LogReader {
  readonly config: { readonly outreach: Pick<Config["outreach"], "dailyLimit" | "timezone"> };
  readonly configured: readonly ChannelName[];
  tokens(): readonly SourcedToken[];
  /** Events read for one figure at most: some milliseconds of a page that a browser fetches again each second. */
  readonly eventsMax: number;
}

/** What a page is made of: the projections and the log as of one moment, and what the browser asked for. */
export interface View {
  /** What stands in the place of each `:name` of the page's path. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly store: EventStore<Event>;
  state<Name extends ProjectionName>(name: Name): StateOf<Name>;
  /** The states as of any other moment. */
  readonly past: PastStates;
  /** Reads for operations, at the moment of the page. */
  readonly reader: PageReader;
  /** Position of the last event that counts; 0: there is none. */
  readonly position: number;
  /** Its time, ISO 8601. */
  readonly time: string | undefined;
  /** The moment that the page is of, in ms since 1970. */
  readonly now: number;
  /** The earlier moment of the page, as the operator entered it; undefined: the page is of now. */
  readonly asOf: string | undefined;
  /** From the first event to the present; undefined: the log is empty. */
  readonly span: LogSpan | undefined;
  /** The states of now, also on a page of an earlier moment. */
  readonly stateNow: View["state"];
  /** True if that state of now is there, includes the moment of the page, and can be put back to it. */
  hasNow(name: ProjectionName): boolean;
  /** The newest verification of the log; undefined: there is none up to `position`. */
  readonly verified: Recorded<"LogVerified"> | undefined;
  /** What this process does at present, which no log knows; undefined on a page of the past. */
  readonly live: Live | undefined;
  readonly settings: ConsoleSettings;
  /** What a form has to carry for the service to act on it; undefined: this browser may look only. */
  readonly formToken: string | undefined;
  /** The result of the form that led here. */
  readonly notice: Notice | undefined;
  /** Of this browser, before the one that goes on; undefined: none is known. */
  readonly lastVisit?: LastVisit | undefined;
}

/** Moments that a reader may choose; in ms since 1970. */
export interface LogSpan {
  readonly from: number;
  readonly to: number;
  /** Position before the newest run that was no dry run; undefined: there is none. */
  readonly beforeRun: number | undefined;
}

/** When a browser was here, in ms since 1970, and how far the log was then. */
export interface LastVisit {
  readonly at: number;
  readonly position: number;
}

export interface Live {
  /** Since when the log is out of reach, in ms since 1970; undefined: it is in reach. */
  awaySince(): number | undefined;
  /** How far this machine's clock is ahead of the log's, in ms. */
  skewMs(): number;
  /** The services of the log, this one first. */
  instances(): readonly Instance[];
  /** The id of the instance that has it, by each role that one has now; empty while the log is out of reach. */
  roles(): Promise<Readonly<Record<string, string>>>;
  /** Whether it sends to the channel; undefined for one that is not configured. */
  circuit(channel: ChannelName): Circuit | undefined;
  /** The verification of the log that goes on; undefined: none does. */
  verification(): VerificationProgress | undefined;
}

export interface ConsoleSettings extends Pick<
  Config["outreach"],
  "dailyLimit" | "timezone" | "window" | "template" | "requireConsent" | "sources"
> {
  readonly configured: readonly ChannelName[];
  /** For how long its network takes a repeat for what it is, in ms; 0: it never does, or the channel is not configured. */
  recognisesMs(channel: ChannelName): number;
  /** By which those are known who were erased. */
  readonly hashesOf: HashesOf;
  /** What may be left out of the configuration. */
  readonly parts: ConfigParts;
  /** Where X sends the browser back to. */
  readonly callback: string;
  /** Where a browser finds a trace, with `{id}` in the place of its id; undefined: ids lead nowhere. */
  readonly traceUrl: string | undefined;
  /** Whether the console wants a token. */
  wantsToken(): boolean;
  /** Those of the callers, as they are configured now. */
  tokens(): readonly SourcedToken[];
}

export interface Notice {
  readonly text: string;
  readonly isFault: boolean;
  /** The next step after a refusal. */
  readonly nextStep?: NextStep;
}

/** A link to the next step. */
export interface NextStep {
  readonly href: `/${string}`;
  readonly label: string;
}

export interface DisclosingPage {
  readonly page: VNode;
  /** What the record of its read has to name. */
  readonly disclosed?: Disclosed;
  /** The page says that the log knows nothing of this name, and where to look. */
  readonly isMissing?: boolean;
}

/** The page that was meant is another one. */
export interface OtherPage {
  readonly location: `/${string}`;
  /** What that says already. */
  readonly disclosed: Disclosed;
}

/** Undefined: there is nothing at the address. */
export type Made = VNode | DisclosingPage | OtherPage | undefined;

export type ConsolePage = (view: View) => Made | Promise<Made>;

/** Returns what an operation that reads answers at the moment of the page. Throws a ServiceError for a refusal. */
export async function ask<Input extends TProperties, Output extends TProperties, Refusals extends DeclaredRefusals>(
  view: View,
  { run, refusals }: Operation<PageReader, Input, Output, Refusals>,
  input: Static<TObject<Input>>,
): Promise<Static<TObject<Output>>> {
  const found = await run(view.reader, input, {});
  const refused = readRefusal(refusals, found);
  if (refused !== undefined) throw new ServiceError(refused.kind, refused.sentence);
  return found as Static<TObject<Output>>;
}

/** The newest events that fit, the newest first; none is newer than the moment of the view. */
export async function newestEvents(
  { store, position }: View,
  query: Omit<NonNullable<Parameters<EventStore<Event>["read"]>[0]>, "backwards">,
): Promise<readonly Recorded[]> {
  const to = Math.min(query.to ?? position, position);
  return to < 1 ? [] : Array.fromAsync(store.read({ ...query, to, backwards: true }));
}

/** What the readers of the log's history are given. */
export function toReading({ store, position }: View) {
  return { store, to: position, onProgress: () => {} };
}

/** What `read` makes of what the operator entered; a text: why it can mean nothing. */
export async function readOrReason<Value>(read: () => Value | Promise<Value>): Promise<Value | string> {
  try {
    return await read();
  } catch (fault) {
    if (fault instanceof ServiceError && fault.kind === "usage") return fault.message;
    throw fault;
  }
}

/** A whole number of the page's address that is not negative; undefined for anything else. */
export function readNumber({ query }: View, name: string): number | undefined {
  const text = query.get(name) ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Undefined for what is not filled in. */
export function readText({ query }: View, name: string): string | undefined {
  const text = query.get(name)?.trim() ?? "";
  return text === "" ? undefined : text;
}

/** A value of the page's address that is one of those known; undefined for anything else. */
export function readChoice<Value extends string>(
  { query }: View,
  name: string,
  known: readonly Value[],
): Value | undefined {
  return known.find((value) => value === query.get(name));
}
