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
  /** Most events read for one figure, which takes some milliseconds: a browser may fetch the page again each second. */
  readonly eventsMax: number;
}

/** The input of a page: the projections and the log as of one moment, and the request of the browser. */
export interface View<Reads extends ProjectionName = never> {
  /** The values of each `:name` in the page's path. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Never there; it lets the compiler refuse a part that reads more than its page declares. */
  readonly reads?: (name: Reads) => void;
  readonly query: URLSearchParams;
  readonly store: EventStore<Event>;
  /** The state of a projection that the page declares. */
  state<Name extends Reads>(name: Name): StateOf<Name>;
  /** The states as of any other moment. */
  readonly past: PastStates;
  /** Reads for operations, at the moment of the page. */
  readonly reader: PageReader;
  /** Position of the last event that counts; 0 if there is none. */
  readonly position: number;
  /** The time of that event, ISO 8601. */
  readonly time: string | undefined;
  /** The moment that the page is of, in ms since 1970. */
  readonly now: number;
  /** The earlier moment of the page, as the operator entered it. Undefined if the page is of now. */
  readonly asOf: string | undefined;
  /** The time from the first event to the present. Undefined if the log is empty. */
  readonly span: LogSpan | undefined;
  /** The states of now, also on a page of an earlier moment. */
  readonly stateNow: View<ProjectionName>["state"];
  /** True if the present state is there, includes the moment of the page, and can be put back to it. */
  hasNow(name: ProjectionName): boolean;
  /** The newest verification of the log. Undefined if there is none up to `position`. */
  readonly verified: Recorded<"LogVerified"> | undefined;
  /** The present state of this process, which no log knows. Undefined on a page of the past. */
  readonly live: Live | undefined;
  readonly settings: ConsoleSettings;
  /** The token that a form must carry for the service to act on it. Undefined if this browser may only look. */
  readonly formToken: string | undefined;
  /** The result of the form that led here. */
  readonly notice: Notice | undefined;
  /** The visit of this browser before the present one. Undefined if none is known. */
  readonly lastVisit?: LastVisit | undefined;
}

/** Moments that a reader may choose; in ms since 1970. */
export interface LogSpan {
  readonly from: number;
  readonly to: number;
  /** Position before the newest run that was not a dry run. Undefined if none is found. */
  readonly beforeRun: number | undefined;
}

/** When a browser was here, in ms since 1970, and how far the log was then. */
export interface LastVisit {
  readonly at: number;
  readonly position: number;
}

export interface Live {
  /** The time since when the log is out of reach, in ms since 1970. Undefined if it is in reach. */
  awaySince(): number | undefined;
  /** How far this machine's clock is ahead of the log's, in ms. */
  skewMs(): number;
  /** The services of the log, this one first. */
  instances(): readonly Instance[];
  /** The id of the instance that holds each role now; empty while the log is out of reach. */
  roles(): Promise<Readonly<Record<string, string>>>;
  /** The state of the channel's circuit breaker. Undefined for a channel that is not configured. */
  circuit(channel: ChannelName): Circuit | undefined;
  /** The verification of the log that is in progress. Undefined if there is none. */
  verification(): VerificationProgress | undefined;
}

export interface ConsoleSettings extends Pick<
  Config["outreach"],
  "dailyLimit" | "timezone" | "window" | "template" | "requireConsent" | "sources"
> {
  readonly configured: readonly ChannelName[];
  /**
   * For how long the channel's network recognises a repeat, in ms. 0 if it never does, or if the channel is not
   * configured.
   */
  recognisesMs(channel: ChannelName): number;
  /** The hashes by which erased recipients are recognised. */
  readonly hashesOf: HashesOf;
  /** The parts that may be left out of the configuration. */
  readonly parts: ConfigParts;
  /** The URL to which X sends the browser back. */
  readonly callback: string;
  /** The address of a trace in a browser, with `{id}` in place of its id. Undefined if ids are shown without a link. */
  readonly traceUrl: string | undefined;
  /** True if the console needs a token. */
  wantsToken(): boolean;
  /** The tokens of the callers, as they are configured now. */
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
  /** The disclosure that the record of the read must name. */
  readonly disclosed?: Disclosed;
  /** True if the page says that the log knows nothing of this name, and where to look. */
  readonly isMissing?: boolean;
}

/** A redirect to the page that was meant. */
export interface OtherPage {
  readonly location: `/${string}`;
  /** The disclosure that the redirect already makes. */
  readonly disclosed: Disclosed;
}

/** The result of a page. Undefined if there is nothing at the address. */
export type Made = VNode | DisclosingPage | OtherPage | undefined;

type MaybePromise<Value> = Value | Promise<Value>;

/** The part of a view that is known before states are folded: by it a page may decide what it reads. */
export type PageVisit = Pick<View, "parameters" | "query" | "store" | "hasNow">;

/** A page of the console, and the projections that it reads: a page of an earlier moment has these folded first. */
export interface ConsolePage {
  readonly reads: readonly ProjectionName[] | ((visit: PageVisit) => MaybePromise<readonly ProjectionName[]>);
  render(view: View<ProjectionName>): Made | Promise<Made>;
}

/** Returns the page unchanged; the compiler checks that it declares what it reads. */
export function consolePage<Reads extends ProjectionName = never>(page: {
  readonly reads: readonly Reads[] | ((visit: PageVisit) => MaybePromise<readonly Reads[]>);
  render(view: View<Reads>): Made | Promise<Made>;
}): ConsolePage {
  return page;
}

/** Returns what an operation that reads answers at the moment of the page. Throws a ServiceError for a refusal. */
export async function askOperation<
  Input extends TProperties,
  Output extends TProperties,
  Refusals extends DeclaredRefusals,
>(
  { reader }: Pick<View, "reader">,
  { run, refusals }: Operation<PageReader, Input, Output, Refusals>,
  input: Static<TObject<Input>>,
): Promise<Static<TObject<Output>>> {
  const found = await run(reader, input, {});
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

/** The input of the functions that read the log's history. */
export function toReading({ store, position }: View) {
  return { store, to: position, onProgress: () => {} };
}

/** Returns what `read` makes of the operator's input, or a sentence on why it has no meaning. */
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

/** A text of the page's address. Undefined if it is missing or blank. */
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
