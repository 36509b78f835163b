import { findContact, findPerson } from "../../projections/contact-identity.ts";
import { handle } from "../log/decide-and-append.ts";
import { type EventMetadata, STREAMS } from "../log/event-log.ts";
import { isoTime } from "../platform/clock.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { Keyring } from "../privacy/keyring.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";
import { decideConsent, type ConsentContext } from "./record-consent.ts";
import { decideSuppression } from "./suppress.ts";

/** Source of what recipients decide on their page to opt out, as events name it. */
export const OPT_OUT_PAGE = "opt_out_page" as const;

export interface OptOutContext extends ConsentContext {
  readonly hashesOf: HashesOf;
  /** True if the keys of the recipient's data were deleted, even if a restored log lacks the erasure. */
  /** Functions of the keys of personal data, which know erasures and opt-outs that a restored log lacks. */
  readonly keyring: { readonly isForgotten: Keyring["isForgotten"]; readonly keepOptOut: Keyring["keepOptOut"] };
}

/**
 * Finds the recipient whose page has this code, after the projections have caught up with the log's end if the code is
 * unknown. Undefined for a code that no message contains, and after the recipient was forgotten.
 */
export async function findOptOutPage({ eventLog, projector, keyring }: OptOutContext, code: string) {
  const find = () => projector.state("links").optOuts.get(code);
  // Another instance may just have sent the message.
  if (find() === undefined) await projector.until((await eventLog.store.head()).position);
  const page = find();
  const { id } = page?.recipient ?? {};
  if (page === undefined || id === undefined || keyring.isForgotten({ id })) return undefined;
  const { user } = projector.state("account");
  return {
    id,
    /** Account that wrote to the recipient; undefined if another one is linked now. */
    account: user !== null && (page.account_id ?? user.id) === user.id ? user : undefined,
    isTracked: findPerson(projector.state("contacts"), { id })?.tracking.status === "granted",
  };
}

/**
 * Suppresses a recipient at their own wish, also in a restored older log, and resolves when no message to them is on its
 * way any more. A repeat appends nothing. Throws what {@link handle} throws.
 */
export async function optOut(context: OptOutContext, id: string, metadata: EventMetadata): Promise<void> {
  const { projector, hashesOf, keyring } = context;
  const decide = () => {
    const contacts = projector.state("contacts");
    // The handle that the message was sent to may be another person's by now.
    const recipient = omitUndefined({ id, username: findContact(contacts, { id })?.username });
    return decideSuppression(contacts, { recipient, reason: OPT_OUT_PAGE }, hashesOf);
  };
  await handle(context, STREAMS.outreach, decide, { metadata, attempts: ATTEMPTS });
  for (const hash of hashesOf({ id })) await keyring.keepOptOut(hash);
  await untilNotInFlight(context, id);
}

/**
 * Revokes a recipient's consent to tracking at their own wish, and erases the clicks recorded with it. A repeat appends
 * nothing. Throws what {@link handle} throws.
 */
export async function denyTrackingByPage(context: OptOutContext, id: string, metadata: EventMetadata): Promise<void> {
  const { projector, clock, findLinkKeys } = context;
  const decide = () => {
    const contacts = projector.state("contacts");
    if (findPerson(contacts, { id })?.tracking.status === "denied") return { events: [] };
    const record = { tracking: "denied", tracking_at: isoTime(clock()), tracking_source: OPT_OUT_PAGE } as const;
    return decideConsent(contacts, id, record, findLinkKeys);
  };
  await handle(context, STREAMS.outreach, decide, { metadata, attempts: ATTEMPTS });
}

/** Most decisions on one wish. Each fails if another append, as of a run, changed the stream first. */
const ATTEMPTS = 50;

/** Longest time that one request to send takes, in ms. A run that was killed meanwhile sends nothing later. */
const SEND_MS_MAX = 20_000;

const LOOK_MS = 50;

/**
 * Waits until no request to send this recipient a message can be in progress: a run that looked at the log before the
 * suppression may just have made one. Runs look again before each further request.
 */
async function untilNotInFlight({ projector, clock, sleep }: OptOutContext, id: string): Promise<void> {
  const isInFlight = (): boolean => {
    const { current, open } = projector.state("run");
    const isWaiting = current?.waiting != null && Date.parse(current.waiting.until) > clock();
    return !isWaiting && open.values().some(({ recipient, in_doubt }) => recipient.id === id && !in_doubt);
  };
  for (let waited = 0; waited < SEND_MS_MAX && isInFlight(); waited += LOOK_MS) await sleep(LOOK_MS, NEVER);
}

const NEVER = new AbortController().signal;
