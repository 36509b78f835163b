import { type Links, findLink } from "../../projections/links.ts";
import { type EventMetadata, type NewEvent, STREAMS, type StateContext } from "../log/event-log.ts";
import { type AppendDecision, handle } from "../log/decide-and-append.ts";
import { isReservedCode, PERSONAL_CODE_CHARS, SHARED_CODE_CHARS, toTarget } from "../template/short-link.ts";

/** A short link as an operator gives it. */
export interface NewLink {
  readonly code: string;
  /** Target of a short link: an http or https URL. */
  readonly target: string;
  /** Line of the imported file that has the link; absent for a link from elsewhere. */
  readonly line?: number;
}

export interface RefusedLink {
  readonly line?: number;
  readonly code: string;
  readonly reason: string;
}

/** Maximum length of a code that an operator may choose. */
export const CODE_CHARS_MAX = 64;

/** The pattern of a code that an operator may choose. */
export const CODE = `^[A-Za-z0-9_-]{1,${CODE_CHARS_MAX}}$`;
const IS_CODE = new RegExp(CODE);

/** Maximum number of links in a log. A service keeps all of them in memory, 300 bytes each. */
export const STORED_LINKS_MAX = 100_000;

/** Reason why a link is refused if the log already holds {@link STORED_LINKS_MAX} links. */
export const FULL = `the log holds ${STORED_LINKS_MAX} links, and takes no more`;

/**
 * Maximum number of links in one append. Their events stay below the append's limit of 256 KiB, and other appends get a
 * turn between two of these.
 */
const LINKS_PER_APPEND = 50;

/**
 * Decides which of the given links are added, which the log knows already, and which are refused. A code never gets
 * another target.
 */
export function decideLinks(
  links: Links,
  domain: string,
  given: readonly NewLink[],
): { readonly events: readonly NewEvent[]; readonly known: number; readonly refused: readonly RefusedLink[] } {
  const events: NewEvent[] = [];
  const refused: RefusedLink[] = [];
  const targets = new Map<string, string>();
  for (const { code, target, ...row } of given) {
    const before = targets.get(code) ?? findLink(links, code)?.target;
    const href = toTarget(target);
    const isFull = links.shared.size + events.length >= STORED_LINKS_MAX;
    const reason = findFault(code, href, before) ?? (isFull && before === undefined ? FULL : undefined);
    if (reason !== undefined) refused.push({ ...row, code, reason });
    else if (before === undefined) {
      targets.set(code, href!);
      events.push({ type: "LinkAdded", data: { domain, code, target: href! } });
    }
  }
  return { events, known: given.length - events.length - refused.length, refused };
}

/** Reason why a link is refused if its code is in use for another target. */
export const TAKEN = "the code already has another target";

function findFault(code: string, target: string | undefined, before: string | undefined): string | undefined {
  if (!IS_CODE.test(code)) return `the code needs 1 to ${CODE_CHARS_MAX} letters, digits, _ or -`;
  if (target === undefined) return "the target is not an http or https URL";
  if (before !== undefined && before !== target) return TAKEN;
  if (before === undefined && isReservedCode(code))
    return `codes of ${SHARED_CODE_CHARS} and ${PERSONAL_CODE_CHARS} letters and digits are for messages`;
  return undefined;
}

/**
 * Adds short links, which the redirect then answers. Adding a link again changes nothing, and counts as `known`. Throws
 * what {@link handle} throws.
 */
export async function addLinks(
  context: StateContext,
  domain: string,
  given: readonly NewLink[],
  metadata: EventMetadata,
) {
  let [added, known] = [0, 0];
  const refused: RefusedLink[] = [];
  for (let at = 0; at < given.length; at += LINKS_PER_APPEND) {
    const chunk = given.slice(at, at + LINKS_PER_APPEND);
    let decided: ReturnType<typeof decideLinks> = { events: [], known: 0, refused: [] };
    const decide = (): AppendDecision<never> =>
      (decided = decideLinks(context.projector.state("links"), domain, chunk));
    await handle(context, STREAMS.outreach, decide, { metadata });
    added += decided.events.length;
    known += decided.known;
    refused.push(...decided.refused);
  }
  return { added, known, refused };
}
