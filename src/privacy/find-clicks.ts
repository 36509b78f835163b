import { isIPv4 } from "node:net";
import type { EventType } from "../../events/catalog.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import { networkOf } from "../platform/client-network.ts";
import type { Found } from "./find-person.ts";
import type { EncryptedLog } from "./encrypted-log.ts";

/** What is sealed for addresses. */
const TYPES: readonly EventType[] = ["LinkClicked", "AuthenticationsFailed"];

/**
 * The clicks and wrong tokens of an address, found by opening all: nothing that lasts leads from an address to its
 * clicks, so that nobody can try out later whose an erased click was.
 */
export async function findClicks(
  log: EncryptedLog,
  address: string,
  onProgress: (position: number) => void,
): Promise<Found> {
  const wanted = new Set([canonical(address), networkOf(address)]);
  const keys = new Set<string>();
  let events = 0;
  for await (const event of log.readStored({ types: TYPES })) {
    onProgress(event.position);
    const { ip, address: caller } = log.open(event).data as { ip?: string; address?: string };
    const told = ip ?? caller;
    if (told === undefined || !wanted.has(canonical(told))) continue;
    events++;
    const box = ciphertextOf(event.data);
    if (box !== undefined) keys.add(log.keyring.refOf(box));
  }
  return { keys, events };
}

/** An IPv4 address as a part of an IPv6 one, as URLs write it. */
const MAPPED = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;

/** One spelling for all of an address. */
function canonical(address: string): string {
  if (isIPv4(address) || !URL.canParse(`http://[${address}]/`)) return address;
  const short = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [, high, low] = MAPPED.exec(short) ?? [];
  if (high === undefined || low === undefined) return short;
  const bits = Number.parseInt(high, 16) * 2 ** 16 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join(".");
}
