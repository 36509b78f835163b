import type { Recorded } from "../../events/event-types-and-codec.ts";
import type { WebhookChannel } from "../../events/channel-and-lane-names.ts";
import { hideCodes } from "./hide-personal-codes.ts";
import { secret, type Secret } from "../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules } from "./classify-answer.ts";
import { compileFilter, type PostedEvent } from "./webhook-filter-expression.ts";
import type { Channel } from "./network.ts";
import type { SafeFetch } from "./safe-fetch.ts";

export interface StandardWebhookOptions {
  readonly name: WebhookChannel;
  /** Address of the webhook's receiver, which may hold a credential. */
  readonly url: Secret;
  /** Signing secrets, as `whsec_` and base64, separated by spaces. A delivery is signed with all of them. */
  readonly secrets: Secret;
  /** True if an event waits while an earlier one of its stream is pending. */
  readonly isInOrder: boolean;
  /** Filter that selects the events to post, for {@link compileFilter}; undefined for all. */
  readonly filter: string | undefined;
  /** Headers by name that are sent in addition to those of Standard Webhooks. */
  readonly headers: ReadonlyMap<string, Secret>;
  readonly safeFetch: SafeFetch;
}

/**
 * Creates a channel that posts events to the operator's program, by Standard Webhooks
 * (https://www.standardwebhooks.com). A repeated delivery has the same `webhook-id`, the event's id. Its `send` throws
 * for a dispatch that is no event.
 */
export function createStandardWebhookChannel(options: StandardWebhookOptions): Channel {
  const { name, url, secrets, isInOrder, safeFetch } = options;
  const own = Object.fromEntries([...options.headers].map(([header, value]) => [header, value.reveal()]));
  const matches = options.filter === undefined ? undefined : compileFilter(options.filter);
  // The signing library is loaded now, because an upgrade in place may have removed its file before the first event is
  // sent.
  const signing = createSign(secrets);
  signing.catch(() => {});
  return {
    name,
    network: "standard_webhooks",
    credential: secret([url.reveal(), secrets.reveal(), ...Object.entries(own).flat()].join("\n")),
    recognisesMs: Infinity,
    isInOrder,
    ...(matches === undefined ? {} : { filter: (event: Recorded) => matches(toPosted(event)) }),
    async send(dispatch, { timeoutMs, now }) {
      if (dispatch.kind !== "event") throw new TypeError(`the webhook channel delivers no ${dispatch.kind}`);
      const body = JSON.stringify(toPosted(dispatch.event));
      const sign = await signing;
      const headers = { ...own, "content-type": "application/json", ...sign(dispatch.id, now, body) };
      return toDispatchResult(safeFetch(url.reveal(), { method: "POST", headers, body, timeoutMs }), ANSWERS, true);
    },
    check: (timeoutMs) =>
      checked(async () => {
        const answer = await safeFetch(url.reveal(), { method: "GET", headers: own, timeoutMs });
        if (answer.status === GONE) return { ok: false, detail: `${ANSWERS.describe(answer)}: check its URL` };
        return { ok: true, detail: `the receiver answers; whether it takes the signature, a test shows` };
      }),
  };
}

function toPosted(recorded: Recorded): PostedEvent {
  const { position, id, stream, version, type, time, data, meta, hash } = hideCodes(recorded);
  return { type, timestamp: time, data: { position, id, stream, version, type, time, data, meta, hash } };
}

/** Status by which a receiver says that it wants no more events. */
const GONE = 410;

/**
 * Rules by which a receiver's answers are read. Any 2xx is a delivery, a 410 suspends the webhook until the operator
 * resumes it, and all else is retried. An answer is never quoted, because it may hold personal data.
 */
const ANSWERS: AnswerRules = {
  accepted: ({ status }) => (status >= 200 && status < 300 ? {} : undefined),
  describe: ({ status }) => `the receiver answered ${status}`,
  isUncertain: ({ status }) => status !== GONE,
  refusesChannel: () => true,
};

/**
 * Creates the function that makes a delivery's headers, by which a receiver verifies its sender, its content and that
 * it is no replay. Loads the signing library, which most services do without.
 */
async function createSign(secrets: Secret) {
  const { Webhook } = await import("standardwebhooks");
  const signers = secrets
    .reveal()
    .split(/\s+/)
    .map((one) => new Webhook(one));
  return (id: string, now: number, body: string) => ({
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now / 1000)),
    "webhook-signature": signers.map((signer) => signer.sign(id, new Date(now), body)).join(" "),
  });
}
