/** Holds everything of an event that is personal; no event has a member of this name. */
export const ENCRYPTED = "ciphertext";

/** What the writer thread is asked to encrypt: the request thread only chooses the key. */
export interface EncryptionOrder {
  /** How the ciphertext begins. */
  readonly prefix: string;
  /** As of {@link EncryptionKey}. */
  readonly key: string;
  /** What the ciphertext is bound to. */
  readonly context: string;
  readonly text: string;
}

/** Keys, names and JSON hold none. */
const SEPARATOR = "\t";

export function writeOrder({ prefix, key, context, text }: EncryptionOrder): string {
  return prefix + SEPARATOR + key + SEPARATOR + context + SEPARATOR + text;
}

export function readOrder(order: string): EncryptionOrder {
  const parts = order.split(SEPARATOR);
  if (parts.length !== 4) throw new Error("an order to encrypt has four parts");
  const [prefix, key, context, text] = parts as [string, string, string, string];
  return { prefix, key, context, text };
}

/** The JSON of an event's data with a ciphertext in it, which holds nothing that JSON escapes. */
export function withCiphertext(data: string, ciphertext: string): string {
  const members = data.slice(0, -1);
  return `${members}${members === "{" ? "" : ","}"${ENCRYPTED}":"${ciphertext}"}`;
}
