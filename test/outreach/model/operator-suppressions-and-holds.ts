import type { Recipient } from "../../../events/outreach.ts";
import { findContact } from "../../../projections/contact-identity.ts";
import { createEventLog, type NewEvent } from "../../../src/log/event-log.ts";
import { release } from "../../../src/recipients/release-held-recipient.ts";
import type { SimulatedNetwork } from "../../harness/in-process/social-network.ts";
import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { createEraseHandler } from "../../../src/privacy/delete-erased-and-expired-keys.ts";
import { startProjector } from "../../../src/projector/projector.ts";
import { importSuppressions } from "../../../src/recipients/import-suppressions.ts";
import { suppress } from "../../../src/recipients/suppress.ts";
import { SILENT, toStateContext } from "../../harness/in-process/temporary-log.ts";
import { RULES } from "../../harness/in-process/simulated-outreach-processes.ts";
import { listening, MINUTE_MS, named, suppression, trigger, writeToUs } from "./perform-acts.ts";
import { METADATA, type House } from "./simulated-world.ts";
import { NO_SNAPSHOTS } from "./instance.ts";
import { rename } from "./erase-and-rename.ts";
import { personId } from "./initial-state.ts";

/**
 * Opens the context of an operator's command on a simulated log. Its projector follows the log until the command ends.
 */
async function openCommand({ store, log }: House) {
  const erase = createEraseHandler(log.keyring);
  const followed = { ...store, snapshots: NO_SNAPSHOTS };
  const projector = await startProjector(followed, { logger: SILENT, erase, saves: () => false });
  return {
    ...toStateContext({ eventLog: createEventLog(store, makeId), projector }),
    hashesOf: RULES.hashes,
    [Symbol.asyncDispose]: projector[Symbol.asyncDispose],
  };
}

/**
 * Simulates that an operator suppresses a person, by id or by handle. For a handle, the command asks the network who
 * has it.
 */
export async function suppressByHand(house: House, { who, byId }: { readonly who: number; readonly byId: boolean }) {
  const name = named(house, who, byId);
  if (name.username === undefined) return house.append([suppression(name)]);
  await using command = await openCommand(house);
  const account = {
    network: house.network,
    tokens: { use: <T>(call: (token: string) => Promise<T>) => call("token") },
  };
  await suppress({ ...command, account }, name.username, METADATA);
}

/**
 * Creates the event that holds a person until an operator has read their reply. The tests append it in place of another
 * process that read the inbox.
 */
export function hold({ people }: SimulatedNetwork, id: string, now: number): NewEvent {
  const recipient = { id, username: people.get(id)?.username ?? `user_${id}` };
  const data = { recipient, message_id: `held ${now}`, received_at: new Date(now).toISOString() };
  return { type: "RecipientHeld", data };
}

/** Simulates that an operator has read a held person's reply and releases the person. */
export async function releaseHeld(house: House, id: string): Promise<void> {
  await using command = await openCommand(house);
  const contact = findContact(command.projector.state("contacts"), { id });
  // The command needs a handle, because it rejects the short ids of these histories.
  if (contact?.username === undefined) return;
  await release({ ...command, sleep: async () => {}, random: () => 0.5 }, contact.username, METADATA);
}

/** Circumstances in which a suppression list contains only the hash of a person's id or handle. */
interface HashRow {
  readonly who: number;
  readonly byId: boolean;
  readonly isImported: boolean;
}

/** Simulates that an operator imports a suppression list with the hash of a person's id or current handle. */
export async function suppressByHash(house: House, { who, byId, isImported }: HashRow): Promise<void> {
  const id = personId(who % house.people.length);
  const username = house.network.people.get(id)?.username ?? `user_${id}`;
  const name: Recipient = byId ? { id } : { username };
  const hashes = [...RULES.hashes(name)];
  for (const hash of hashes) house.hashed.set(hash, name);
  if (!isImported) {
    await house.append([{ type: "RecipientSuppressed", data: { reason: "list", hashes } }]);
    return;
  }
  const rows = hashes.map((hash) => ({ line: 1, suppression: { hash, reason: "list" as const } }));
  await using command = await openCommand(house);
  await importSuppressions(command, rows, METADATA, { chunkRows: 10, signal: new AbortController().signal });
}

interface HashThenRename extends Omit<HashRow, "byId"> {
  readonly which: number;
  readonly dryRun: boolean;
  /**
   * When the person writes to the account, if ever: before or after they change their handle. If they write, the log
   * knows both handles, of which one is suppressed.
   */
  readonly writes: "before" | "after" | "never";
}

/**
 * Suppresses a person's handle by its hash, lets a run see the person under this handle, and then gives the person
 * another handle.
 */
export async function suppressThenRename(
  house: House,
  { who, isImported, which, dryRun, writes }: HashThenRename,
): Promise<void> {
  const run = async (isDry: boolean): Promise<void> => {
    trigger(await listening(house, which), isDry);
    await house.clockwork.pass(MINUTE_MS);
  };
  const write = (): void => writeToUs(house, who, { text: "hello", lateMs: 0 });
  if (writes === "before") {
    write();
    await run(true);
  }
  await suppressByHash(house, { who, byId: false, isImported });
  if (writes !== "before") await run(dryRun);
  await rename(house, { who, list: false });
  if (writes === "after") write();
  await run(false);
}
