import type { Contact, Contacts } from "../../../projections/contact-state.ts";
import type { RecipientSource } from "../../../events/outreach.ts";
import { LOOKUP_BATCH, type Source } from "../run-context.ts";
import { SOURCE_KINDS } from "../sources/open-sources.ts";

/** Page of recipients known to the log, in the order in which a run takes them. */
export interface WalkedBatch {
  readonly source: Source["name"];
  readonly people: readonly Contact[];
}

/**
 * Point up to which a pass over the known recipients goes: a recipient that a recorded run reached, with the source in
 * which that run found the recipient. `contact` is undefined if the log does not know the recipient.
 */
export interface WalkTarget {
  readonly contact: Contact | undefined;
  readonly source: Source["name"];
}

export type Walk = ReturnType<typeof createWalk>;

/**
 * Creates a walk through the recipients that the log knows, in the order in which a run takes them. Leaves out those
 * that only the network knows. `sources`: undefined for a run for requested recipients alone, which has no walk.
 */
export function createWalk(
  contacts: Contacts,
  sources: readonly RecipientSource[] | undefined,
  campaign: string | undefined,
) {
  const order: readonly Source["name"][] = sources === undefined ? [] : ["again", ...sources, "last"];
  let at = -1;
  let people: readonly Contact[] = [];
  let given = 0;
  const open = (): void => {
    const { isKnown } = SOURCE_KINDS[order[at]!];
    // A copy, because events folded meanwhile change the Map.
    people = isKnown === undefined ? [] : [...contacts.people.values()].filter((one) => isKnown(one, campaign));
    given = 0;
  };
  const isLeft = ({ contact }: WalkTarget): boolean => contact !== undefined && people.includes(contact, given);
  return {
    /** Returns the walk's next page of recipients, up to the page with the target; undefined if there is none. */
    next(target: WalkTarget | undefined): WalkedBatch | undefined {
      const last = target === undefined ? order.length - 1 : order.indexOf(target.source);
      while (given >= people.length) {
        if (at >= last) return undefined;
        at++;
        open();
      }
      if (target !== undefined && at === last && !isLeft(target)) return undefined;
      const batch = people.slice(given, given + LOOKUP_BATCH);
      given += batch.length;
      return { source: order[at]!, people: batch };
    },
    /**
     * True if the pass over the recipients has not passed the target yet: the target is on a later page, or in `left`,
     * the recipients of the present page that have had no turn yet.
     */
    leadsTo(target: WalkTarget, left: readonly Contact[]): boolean {
      const its = order.indexOf(target.source);
      if (at !== its) return at < its;
      return isLeft(target) || (target.contact !== undefined && left.includes(target.contact));
    },
  };
}
