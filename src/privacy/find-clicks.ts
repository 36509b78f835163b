import type { EventType } from "../../events/catalog.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import { canonicalAddress, networkOf } from "../platform/address.ts";
import type { Found } from "./find-person.ts";
import type { EncryptedLog } from "./encrypted-log.ts";
import { openedEvents, type OpenableLog } from "./opened-events.ts";

/** What is encrypted for addresses. */
const TYPES: readonly EventType[] = ["LinkClicked", "AuthenticationsFailed"];

export interface FindClicksOptions {
  /** Its reason is thrown once it aborts. */
  readonly signal: AbortSignal;
  readonly onProgress?: ((position: number) => void) | undefined;
}

/**
 * The clicks and wrong tokens of an address, found by opening all: nothing that lasts leads from an address to its
 * clicks, so that nobody can try out later whose an erased click was.
 */
export async function findClicks(
  log: OpenableLog & Pick<EncryptedLog, "keyring">,
  address: string,
  { signal, onProgress }: FindClicksOptions,
): Promise<Found> {
  const wanted = new Set([canonicalAddress(address), networkOf(address)]);
  const keys = new Set<string>();
  let events = 0;
  for await (const { stored, data } of openedEvents(log, { types: TYPES })) {
    signal.throwIfAborted();
    onProgress?.(stored.position);
    const { ip, address: caller } = data as { ip?: string; address?: string };
    const recorded = ip ?? caller;
    if (recorded === undefined || !wanted.has(canonicalAddress(recorded))) continue;
    events++;
    const ciphertext = ciphertextOf(stored.data);
    if (ciphertext !== undefined) keys.add(log.keyring.refOf(ciphertext));
  }
  return { keys, events };
}
