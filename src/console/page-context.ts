import type { Static, TObject, TProperties } from "@sinclair/typebox";
import { createContext, type VNode } from "preact";
import { useContext } from "preact/hooks";
import type { ChannelBacklog } from "../delivery/channel-backlog-and-undelivered.ts";
import type { CampaignSettings } from "../outreach/campaigns/read-campaigns.ts";
import type { RunSettings } from "../outreach/run-and-dry-run-page-data.ts";
import { readRefusal, type DeclaredRefusals, type Disclosure, type Operation } from "../platform/operation.ts";
import type { TokenReader } from "../privacy/list-api-tokens.operations.ts";
import type { PageMoment, UnfoldedMoment } from "../projector/moment-of-console-page.ts";

type ChannelName = ChannelBacklog["name"];

type MomentReader = PageMoment["reader"];

/** Context in which a page runs an operation whose answer it shows. */
export interface PageReader extends MomentReader, TokenReader {
  readonly at: MomentReader["at"];
  readonly config: {
    readonly outreach: {
      readonly dailyLimit: number;
      readonly timezone: string;
      readonly requireConsent: RunSettings["requireConsent"];
    };
  };
  readonly configured: readonly ChannelName[];
  /**
   * Maximum number of events read for one number on a page, which takes some milliseconds. More would be too slow,
   * because a browser may fetch the page again each second.
   */
  readonly eventsMax: number;
}

/** The name of a projection that a page reads. */
export type StateName = Parameters<PageMoment["stateNow"]>[0];

/** The request of a browser for a page, and what the browser may do there. */
export interface Visit {
  /** The values of each `:name` in the page's path. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Language of the browser, whose formats of times the page uses; a BCP 47 tag. */
  readonly language: string;
  /** The CSRF token that a form must contain for the service to act on it. Undefined if this browser may only look. */
  readonly formToken: string | undefined;
  /** The caller who is signed in. Undefined if the console needs no sign-in. */
  readonly caller?: Caller | undefined;
  /** Result of the form that the browser has just sent, which the page shows. */
  readonly notice: Notice | undefined;
  /** The browser's visit before the present one. Undefined if none is known. */
  readonly lastVisit?: LastVisit | undefined;
  /** True if the page is the answer to a form, so that no address leads to it. */
  readonly isAnswer?: boolean;
}

/** The input of a page: the projections and the log as of one moment, and the request of the browser. */
export interface View<Reads extends StateName = never> extends PageMoment<Reads>, Visit {
  readonly reader: PageReader;
  /**
   * Present state of this process, such as its instances and circuit breakers, which no log holds. Undefined on a page
   * of an earlier moment.
   */
  readonly live: Live | undefined;
  readonly settings: ConsoleSettings;
}

/**
 * Gives each part of a page the page's view (moment, states and request). Undefined on a page without one, such as the
 * sign-in.
 */
export const ShownView = createContext<View | undefined>(undefined);

/** Returns the view of the page that the calling component is a part of. */
export function useView(): View {
  const view = useContext(ShownView);
  if (view === undefined) throw new Error("the page has no view");
  return view;
}

interface Caller {
  readonly name: string;
  /** The scopes of the caller's token. Undefined for all scopes. */
  readonly scopes?: readonly string[] | undefined;
}

/** Earlier visit of a browser: when it was, in ms since 1970, and at which position the log ended then. */
export interface LastVisit {
  readonly at: number;
  readonly position: number;
}

export interface Live {
  /** Returns since when the log is unreachable, in ms since 1970. Undefined if it is reachable. */
  awaySince(): number | undefined;
  /**
   * Returns a sentence on how far the clocks of this machine and of the log differ, and what to do. Undefined if they
   * agree well enough for runs.
   */
  clockFault(): string | undefined;
  /** Instances that serve the log, this one first. */
  instances(): readonly ShownInstance[];
  /** Returns the id of the instance that holds each role now; empty while the log is unreachable. */
  roles(): Promise<Readonly<Record<string, string>>>;
  /** Returns the state of the channel's circuit breaker. Undefined for a channel that is not configured. */
  circuit(channel: ChannelName): "closed" | "open" | "half_open" | undefined;
  /** Returns the verification of the log in progress. Undefined if there is none. */
  verification(): ShownVerification | undefined;
  /** Returns the lookup of messages in doubt in progress at this instance. Undefined if there is none. */
  lookup(): { readonly caller: string | undefined; readonly started_at: string } | undefined;
}

interface ShownInstance {
  readonly id: string;
  /** Address of the instance. */
  readonly url: string;
  readonly version: string;
  /** Start of the instance, ISO 8601. */
  readonly started_at: string;
}

/** A verification of the log in progress, as the console shows it. */
export interface ShownVerification {
  /** Caller who started the verification. */
  readonly caller: string | undefined;
  /** Start of the verification, ISO 8601. */
  readonly started_at: string;
  /** Number of events that the verification has found good so far. */
  readonly checked: number;
  /** Position at which the log ended when the verification began. */
  readonly position: number;
}

/** A part of the configuration that may be left out, such as a channel. */
interface ConfigPart {
  readonly isConfigured: boolean;
  /** Lines of `.env` that configure the part. */
  readonly lines: readonly string[];
}

export interface ConsoleSettings extends RunSettings {
  readonly campaigns: CampaignSettings;
  readonly configured: readonly ChannelName[];
  /**
   * Returns for how many ms the channel's network recognises a repeated dispatch. 0 if it does not, or if the channel
   * is not configured.
   */
  recognisesMs(channel: ChannelName): number;
  /** Returns the hashes by which a recipient with these names is recognised after an erasure. */
  hashesOf(names: { readonly id?: string; readonly username?: string }): readonly string[];
  readonly parts: Readonly<Record<"x" | "template" | Exclude<ChannelName, `webhook-${string}`>, ConfigPart>>;
  /** True if X's stream of signals (notifications of new messages) is configured. */
  readonly hasSignals: boolean;
  /** URL to which X redirects the browser after the operator gave consent. */
  readonly callback: string;
  /**
   * Address of a trace in the operator's trace viewer, with `{id}` in place of its id. Undefined if ids are shown
   * without a link.
   */
  readonly traceUrl: string | undefined;
  /** Names of the rules that the page What if may change. */
  readonly whatIfRules: readonly string[];
  /** Limits of the texts and files that a form may send. */
  readonly limits: FormLimits;
  /** True if a browser must sign in to the console with a token. */
  wantsToken(): boolean;
  /** Returns a sentence for each token that has expired or soon will. */
  expiringTokens(now: number): readonly string[];
  /** The tokens of the callers, as they are configured now. */
  readonly tokens: TokenReader["tokens"];
}

interface FormLimits {
  readonly recipientsBytes: number;
  readonly suppressionsBytes: number;
  /** Maximum length of an operator's reason for a decision about a dispatch. */
  readonly whyCharacters: number;
}

export interface Notice {
  readonly text: string;
  readonly isFault: boolean;
  /** Warnings about what was done, each shown as a bar below the text. */
  readonly warnings?: readonly string[];
  /** Link to what the operator can do after a refusal. */
  readonly nextStep?: NextStep;
}

/** Link to what the operator can do next. */
export interface NextStep {
  readonly href: `/${string}`;
  readonly label: string;
}

export interface DisclosingPage {
  readonly page: VNode;
  /**
   * Details of the personal data on this page, such as the recipient. The event that records who read the page contains
   * them.
   */
  readonly disclosed?: Disclosure;
  /** True if the page says that the log does not know the requested name, and where to look instead. */
  readonly isMissing?: boolean;
}

/** Redirect of a search, or of a name in an address, to the page that it means; or back to a page, with a notice. */
export interface OtherPage {
  readonly location: `/${string}`;
  readonly notice?: Notice;
  /**
   * Details for the event that records who read personal data. The redirect alone already tells the reader that the
   * recipient exists.
   */
  readonly disclosed: Disclosure;
}

/** Result of rendering a page; undefined if there is nothing at the address. */
export type Made = VNode | DisclosingPage | OtherPage | undefined;

type MaybePromise<Value> = Value | Promise<Value>;

/**
 * Part of a page's input that is known before projections are folded. From it, a page may choose which projections it
 * reads.
 */
export interface PageVisit extends UnfoldedMoment {
  readonly parameters: Visit["parameters"];
  readonly query: URLSearchParams;
}

/**
 * A page of the console, and the projections that it reads. For an earlier moment, these are folded before the page
 * renders.
 */
export interface ConsolePage {
  readonly reads: readonly StateName[] | ((visit: PageVisit) => MaybePromise<readonly StateName[]>);
  render(view: View<StateName>): Made | Promise<Made>;
}

/** Returns the given page unchanged; the compiler checks that it declares the projections that it reads. */
export function consolePage<Reads extends StateName = never>(page: {
  readonly reads: readonly Reads[] | ((visit: PageVisit) => MaybePromise<readonly Reads[]>);
  render(view: View<Reads>): Made | Promise<Made>;
}): ConsolePage {
  return page;
}

/** Returns the answer of an operation that reads, as of the moment of the page, or the sentence of its refusal. */
export async function tryOperation<
  Input extends TProperties,
  Output extends TProperties,
  Refusals extends DeclaredRefusals,
>(
  { reader }: View,
  { run, refusals }: Operation<PageReader, Input, Output, Refusals>,
  input: Static<TObject<Input>>,
): Promise<Static<TObject<Output>> | string> {
  const found = await run(reader, input, {});
  const refused = readRefusal(refusals, found);
  return refused === undefined ? (found as Static<TObject<Output>>) : refused.sentence;
}

/** Returns the answer of an operation that reads, as of the moment of the page. Throws if the operation refuses. */
export async function askOperation<Input extends TProperties, Output extends TProperties>(
  view: View,
  asked: Operation<PageReader, Input, Output>,
  input: Static<TObject<Input>>,
): Promise<Static<TObject<Output>>> {
  const answer = await tryOperation(view, asked, input);
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}

/** Reads a parameter of the page's address as a whole number of 0 or more; undefined for any other text. */
export function readNumber({ query }: View, name: string): number | undefined {
  const text = query.get(name) ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Reads a parameter of the page's address as text. Undefined if it is missing or blank. */
export function readText({ query }: View, name: string): string | undefined {
  const text = query.get(name)?.trim() ?? "";
  return text === "" ? undefined : text;
}

/** Reads a parameter of the page's address that must be one of the known values; undefined for anything else. */
export function readChoice<Value extends string>(
  { query }: View,
  name: string,
  known: readonly Value[],
): Value | undefined {
  return known.find((value) => value === query.get(name));
}
