import type { VisitorIds } from "../../../events/clicks-links-conversions.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { secret, type Secret } from "../../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules } from "../classify-answer.ts";
import { deliverAmongSkipped, EVENT_AGE_MS_MAX, EVENTS_MAX, type Skipped } from "../meta/deliver-event-batch.ts";
import type { Channel, Conversion, Dispatch, DispatchResult } from "../network.ts";
import type { NetworkAnswer, SafeFetch } from "../safe-fetch.ts";

/** Access to the pixel of an ads network, by a token that does not expire. */
export interface AdsAccess {
  readonly pixelId: string;
  readonly accessToken: Secret;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
  readonly clock: Clock;
}

/** Data that an ads network gets about a visit, or about a conversion of the visit's visitor. */
export interface AdVisit {
  readonly id: string;
  /** Time of the visit or conversion in ms since the epoch, never in the future. */
  readonly at: number;
  readonly url: string;
  readonly ip: string | undefined;
  readonly userAgent: string;
  readonly ids: VisitorIds;
  /** The conversion; absent for a visit. */
  readonly conversion?: Conversion | undefined;
}

/**
 * Time in ms for which a repeat is assumed to be safe. These networks recognise it by the event's id, and do not say
 * for how long.
 */
const RECOGNISES_MS = 24 * 3_600_000;

interface RequestOptions {
  /** True if the ads network must only check the events, and not count them. */
  readonly isTest: boolean;
  readonly timeoutMs: number;
}

/** The parts in which one ads network differs from the others. */
interface AdsNetwork extends Omit<Channel, "batch" | "send" | "check" | "recognisesMs" | "credential"> {
  readonly title: string;
  /** Names of the settings that hold the credential, as messages to the operator list them. */
  readonly settings: string;
  /** True if the network refuses a visit without an IP address. */
  readonly needsAddress?: boolean;
  toEvent(visit: AdVisit): object;
  /** Sends serialized events in one request. If one event is bad, the network refuses all of them. */
  request(events: readonly string[], options: RequestOptions): Promise<NetworkAnswer>;
}

/**
 * Creates the channel of an ads network whose documents describe no answers, so that the status decides. The network
 * must recognise a repeat by the event's id. It throws if it is asked to send anything but clicks, conversions and
 * tests.
 */
export function createAdsChannel({ pixelId, accessToken, clock }: AdsAccess, ads: AdsNetwork): Channel {
  const { title, settings, needsAddress, toEvent, request, ...channel } = ads;
  const answers = readByStatus(title);
  const post = async (events: readonly string[], options: RequestOptions): Promise<DispatchResult> =>
    toDispatchResult(request(events, options), answers, true);
  const prepare = (dispatch: Dispatch, now: number): string | Skipped => {
    if (dispatch.kind === "test") return JSON.stringify(toEvent({ ...TEST_VISIT, id: dispatch.id, at: now }));
    if (dispatch.kind !== "click" && dispatch.kind !== "conversion")
      throw new TypeError(`the channel ${channel.name} delivers no ${dispatch.kind}`);
    const [click, conversion] = dispatch.kind === "click" ? [dispatch] : [dispatch.click, dispatch];
    const { normalizedUrl: url, ip, userAgent, ids = {} } = click;
    const at = Math.min(now, Date.parse(dispatch.time));
    if (userAgent === undefined || userAgent.trim() === "") return { outcome: "skipped", reason: "no_user_agent" };
    if (ip === undefined && needsAddress === true) return { outcome: "skipped", reason: "no_ip_address" };
    if (now - at > EVENT_AGE_MS_MAX) return { outcome: "skipped", reason: "too_old" };
    return JSON.stringify(toEvent({ id: dispatch.id, at, url, ip, userAgent, ids, conversion }));
  };
  return {
    ...channel,
    credential: secret(`${pixelId}\n${accessToken.reveal()}`),
    recognisesMs: RECOGNISES_MS,
    batch: {
      max: EVENTS_MAX,
      async send(clicks, { timeoutMs, now, goesOn }) {
        const prepared = clicks.map((click) => prepare(click, now));
        const each = (part: readonly string[], partMs: number) => post(part, { isTest: false, timeoutMs: partMs });
        return deliverAmongSkipped(prepared, { timeoutMs, post: each, goesOn });
      },
    },
    async send(dispatch, { timeoutMs, now }) {
      const event = prepare(dispatch, now);
      return typeof event === "string" ? post([event], { isTest: dispatch.kind === "test", timeoutMs }) : event;
    },
    check: (timeoutMs) =>
      checked(async () => {
        const event = JSON.stringify(toEvent({ ...TEST_VISIT, id: "reachlog-check", at: clock() }));
        const answer = await request([event], { isTest: true, timeoutMs });
        if (answers.accepted(answer)) return { ok: true, detail: `${title} accepts an event that it does not count` };
        return { ok: false, detail: `${answers.describe(answer)}: check ${settings}` };
      }),
  };
}

/**
 * Visitor of a test event, which the network does not count. Its address and IP address are reserved for examples (RFC
 * 2606, RFC 5737).
 */
const TEST_VISIT = { url: "https://example.com/reachlog-test", ip: "192.0.2.1", userAgent: "reachlog", ids: {} };

/** Statuses by which a network refuses the credential, or the pixel that the address names. */
const CHANNEL_STATUSES: readonly number[] = [401, 403, 404];

function readByStatus(title: string): AnswerRules {
  return {
    accepted: ({ status }) => (status >= 200 && status < 300 ? {} : undefined),
    describe: ({ status }) => `${title} answered ${status}`,
    refusesChannel: ({ status }) => CHANNEL_STATUSES.includes(status),
  };
}
