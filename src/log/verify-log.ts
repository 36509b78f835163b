import type { EventStore, Verification } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { compare, type Compared, type KnownHead } from "./known-heads.ts";

/** What came of verifying a log: its chain and indexes, and what was known of it before. */
export interface VerifiedLog {
  readonly verification: Verification;
  readonly compared: readonly Compared[];
  /** The chain is whole, and the log holds all that was known. */
  readonly isWhole: boolean;
}

export interface VerifyOptions {
  readonly threads?: number;
  readonly onProgress?: (checked: number) => void;
}

/** Recomputes the hash chain, and compares the log with heads that were read before. */
export async function verifyLog(
  store: EventStore<Event>,
  known: readonly KnownHead[],
  options: VerifyOptions,
): Promise<VerifiedLog> {
  const verification = await store.verify(options);
  const compared: Compared[] = [];
  for (const one of known) compared.push(await compare(store, one));
  const isWhole = verification.ok && compared.every(({ fault }) => fault === undefined);
  return { verification, compared, isWhole };
}
