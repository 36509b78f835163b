import type { Recipient } from "../../events/outreach.ts";
import { ciphertextOf } from "../../events/encrypted-data.ts";
import type { EncryptedLog } from "./encrypted-log.ts";

/**
 * Refs of the keys of those days on which callers were answered with any of these names, as a dry run does. All answers
 * of such a day go: whoever repeats one of its requests is told so, and nothing is done twice.
 */
export async function findAnswers(log: EncryptedLog, names: readonly Recipient[]): Promise<readonly string[]> {
  const members = names.flatMap(({ id, username }) => [id, username]).filter((name) => name !== undefined);
  const wanted = [...new Set(members.map((name) => JSON.stringify(name.toLowerCase())))];
  const keys = new Set<string>();
  for await (const event of log.readStored({ types: ["RequestAnswered"] })) {
    const box = ciphertextOf(event.data);
    if (box === undefined || keys.has(log.keyring.refOf(box))) continue;
    const { body } = log.open(event).data as { body: string };
    const text = body.toLowerCase();
    if (wanted.some((name) => text.includes(name))) keys.add(log.keyring.refOf(box));
  }
  return [...keys];
}
