import type { DataOf } from "../../../events/catalog.ts";
import type { Recipient } from "../../../events/outreach.ts";
import type { SocialUser } from "../../networks/network.ts";
import type { OutreachContext, RunContext } from "../context.ts";
import type { RetryPolicy } from "../retry-after-rate-limit.ts";

/** Somebody who may get a message; `user` where the source already asked the network. */
export interface Candidate {
  readonly who: Recipient;
  readonly user?: SocialUser;
}

/** People asked of the network at once: what one look-up takes. */
export const LOOKUP_BATCH = 100;

/** Who reads a source, and how much of it. */
export interface Reader {
  readonly run: RunContext;
  readonly retry: RetryPolicy;
  /** Places left of the day's quota, 1 to {@link LOOKUP_BATCH}: to read more people than that costs money for nothing. */
  wanted(): number;
}

export interface Batch {
  readonly candidates: readonly Candidate[];
  /** Told once everybody of the batch was judged, so that a later run goes on behind it. */
  readonly read?: Omit<DataOf<"SourceRead">, "run_id">;
}

/** Where recipients come from: batches of at most {@link LOOKUP_BATCH}, read only as far as they are wanted. */
export interface Source {
  readonly name: string;
  /** Whether reading on costs money: then nothing is read that the day has no place for. */
  readonly paid: boolean;
  /** Whether it gives those who are tried behind everybody else: then no other source does. */
  readonly last?: true;
  /** Throws the network's SocialError. */
  candidates(reader: Reader): AsyncIterable<Batch>;
}

/** What the agent works with: besides what its parts share, where recipients come from, in the order of their merging. */
export interface AgentContext extends OutreachContext {
  readonly sources: readonly Source[];
}

/** One run as the agent makes it. */
export interface AgentRun extends RunContext {
  readonly sources: readonly Source[];
}
