import type { Recipient } from "../../../events/outreach.ts";
import type { SocialUser } from "../../networks/network.ts";
import type { Patience } from "../patience.ts";

/** Somebody who may get a message; `user` where the source already asked the network. */
export interface Candidate {
  readonly who: Recipient;
  readonly user?: SocialUser;
}

/** People asked of the network at once: what one look-up takes. */
export const LOOKUP_BATCH = 100;

/** Where recipients come from: batches of at most {@link LOOKUP_BATCH}, read only as far as they are wanted. */
export interface Source {
  readonly name: string;
  candidates(patience: Patience): AsyncIterable<readonly Candidate[]>;
}
