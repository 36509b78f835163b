import { findContact, findPerson } from "../../projections/contact-identity.ts";
import { handle } from "../log/decide-and-append.ts";
import { type EventMetadata, STREAMS } from "../log/event-log.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { Keyring } from "../privacy/keyring.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";
import { decideConsent, type ConsentContext } from "./record-consent.ts";
import { decideSuppression } from "./suppress.ts";

/** The source that events name for decisions which recipients make on their page to opt out. */
export const OPT_OUT_PAGE = "opt_out_page" as const;

export interface OptOutContext extends ConsentContext {
  readonly hashesOf: HashesOf;
  /** Functions of the keys of personal data, which know erasures and opt-outs that a restored log lacks. */
  readonly keyring: { readonly isForgotten: Keyring["isForgotten"]; readonly keepOptOut: Keyring["keepOptOut"] };
}

/**
 * Finds the recipient whose page to opt out has this code. Before an unknown code is rejected, the projections read the
 * whole log. Undefined if no message contains the code, or if the recipient was erased.
 */
export async function findOptOutPage({ eventLog, projector, keyring }: OptOutContext, code: string) {
  const find = () => projector.state("links").optOuts.get(code);
  // Another instance may just have sent the message with this code, so the projections first read the log to its end.
  if (find() === undefined) await projector.until((await eventLog.store.head()).position);
  const page = find();
  const { id } = page?.recipient ?? {};
  if (page === undefined || id === undefined || keyring.isForgotten({ id })) return undefined;
  const { user } = projector.state("account");
  return {
    id,
    /** The account that wrote to the recipient; undefined if another account is linked now. */
    account: user !== null && (page.account_id ?? user.id) === user.id ? user : undefined,
    isTracked: findPerson(projector.state("contacts"), { id })?.tracking.status === "granted",
  };
}

/**
 * Suppresses a recipient who opts out on their page, even if an older log is restored later. Resolves when no message
 * to them is being sent; a repeat appends nothing. Throws what {@link handle} throws.
 */
export async function optOut(context: OptOutContext, id: string, metadata: EventMetadata): Promise<void> {
  const { projector, hashesOf, keyring } = context;
  const decide = () => {
    const contacts = projector.state("contacts");
    // Names the recipient by their present handle. The handle to which the message was sent may belong to another
    // person by now.
    const recipient = omitUndefined({ id, username: findContact(contacts, { id })?.username });
    return decideSuppression(contacts, { recipient, reason: OPT_OUT_PAGE }, hashesOf);
  };
  await handle(context, STREAMS.outreach, decide, { metadata, attempts: ATTEMPTS });
  for (const hash of hashesOf({ id })) await keyring.keepOptOut(hash);
  await untilNotInFlight(context, id);
}

/**
 * Revokes the consent to tracking of a recipient who asks for it on their page, and erases their recorded clicks. A
 * repeat appends nothing. Throws what {@link handle} throws.
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

/**
 * Maximum number of attempts to append one decision of a recipient. An attempt fails if another append, such as a
 * run's, changed the stream meanwhile.
 */
const ATTEMPTS = 50;

/**
 * Maximum time that one request to send a message takes, in ms. A message that a killed process was sending has left by
 * then, or never will.
 */
const SEND_MS_MAX = 20_000;

const LOOK_MS = 50;

/**
 * Waits until no message to this recipient is being sent. A run may have made its last check just before the
 * suppression; its next check will find it.
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
