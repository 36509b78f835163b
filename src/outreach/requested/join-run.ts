import type { IdempotencyKey } from "eventstore-lite";
import type { Recipient } from "../../../events/outreach.ts";
import { handle } from "../../log/decide-and-append.ts";
import { type EventMetadata, eventAt, STREAMS } from "../../log/event-log.ts";
import { ROLES } from "../../log/leases-and-roles.ts";
import { forCampaign, outreachState, quotaNow, RUN_ATTEMPTS_MAX, type OutreachContext } from "../run-context.ts";
import { isEnded } from "../campaigns/recipient-refusal-rules.ts";
import { judgeRequested, type Expected } from "../judge-recipients.ts";
import { findTransientEnd } from "../run-end-and-stop-request.ts";
import type { RunSelection } from "../quota-and-reasons-to-end-run.ts";
import { decideJoin, toRequested } from "./recipients-named-in-trigger.ts";

interface JoinRequest {
  readonly recipients?: readonly Recipient[] | undefined;
  readonly selection?: RunSelection;
  readonly metadata: EventMetadata;
  readonly key?: IdempotencyKey;
}

/** Answer to a request whose recipients joined the run in progress. */
export interface Joined {
  readonly kind: "joined";
  readonly run_id: string;
  readonly expected: readonly Expected[];
}

/**
 * Adds the recipients to the run in progress, on any instance. The events are appended at the stream's version, so that
 * the run cannot end in between. Undefined if no run accepts them, or this instance cannot send the campaign's text.
 */
export async function joinRun(outer: OutreachContext, request: JoinRequest): Promise<Joined | undefined> {
  const { recipients = [], metadata, key, selection: { campaign } = {} } = request;
  const context = forCampaign(outer, campaign);
  if (context.rules.textFault !== undefined) return undefined;
  for (let earlier = 0; ; earlier++) {
    // Recipients must not join the run of a dead process, which would not reach them. Its lease has expired, or is held
    // by the process that closes the run.
    const [lease] = await context.eventLog.store.leases.list([ROLES.run]);
    let joined: { readonly run_id: string; readonly expected: readonly Expected[] } | undefined;
    const decide = () => {
      const { current } = context.projector.state("run");
      const isAlive = current !== null && lease?.holder.endsWith(`/${current.run_id}`) === true;
      const isOwn = isAlive && current.campaign === campaign && !isEnded(outreachState(context), campaign);
      if (!isOwn) return { refusal: "not_joined" } as const;
      joined = { run_id: current.run_id, expected: judgeNow(context, recipients) };
      return decideJoin(current, toRequested(context.projector.state("contacts"), recipients));
    };
    const options = { metadata, ...nextKey(key, earlier), attempts: RUN_ATTEMPTS_MAX };
    const handled = await handle(context, STREAMS.outreach, decide, options);
    if ("refusal" in handled || joined === undefined) return undefined;
    if (handled.appended?.repeated !== true) return { kind: "joined", ...joined };
    const first = await runAt(context, handled.appended.first);
    if ((await findTransientEnd(context.eventLog.store, first)) === undefined) {
      return { kind: "joined", ...joined, run_id: first };
    }
  }
}

export function judgeNow(context: OutreachContext, named: readonly Recipient[], selection?: RunSelection) {
  const recipients = toRequested(context.projector.state("contacts"), named);
  return judgeRequested(outreachState(context), context.rules, { now: quotaNow(context), recipients, selection });
}

/**
 * Returns the idempotency key under which a repeated request is executed again. `earlier`: how many runs this request
 * has already started that ended early for a passing reason.
 */
export function nextKey(key: IdempotencyKey | undefined, earlier: number): IdempotencyKey | undefined {
  return key === undefined || earlier === 0 ? key : { ...key, key: `${key.key}/${earlier}` };
}

/** Returns the id of the run that the event at a position starts, or that the event's recipients join. */
export async function runAt({ eventLog }: OutreachContext, position: number): Promise<string> {
  const event = await eventAt(eventLog.store, position);
  if (event.type === "RunStarted" || event.type === "RecipientRequested") return event.data.run_id;
  throw new Error(`no run starts at position ${position}, and none is joined`);
}
