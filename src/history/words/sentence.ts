import type { DataOf, EventType } from "../../../events/catalog.ts";
import type { Recipient } from "../../../events/outreach.ts";

/** What a sentence names; `text` is how it reads. `other`: a text, a name, or an id of whatever has no page of its own. */
export type Mention = { readonly text: string } & (
  | { readonly kind: "recipient"; readonly recipient: Recipient }
  | { readonly kind: "link"; readonly domain: string; readonly short_code: string }
  | { readonly kind: "run"; readonly run_id: string }
  | { readonly kind: "position"; readonly position: number }
  | { readonly kind: "time"; readonly at: string }
  | { readonly kind: "other" }
);

/** Our own words, and between them what they name, so that a page can link or mark it. */
export type Sentence = readonly (string | Mention)[];

export type EventWords = { readonly [T in EventType]: (data: DataOf<T>) => Sentence };

/** Makes a sentence of a template, in which sentences, names, and our own words may stand. */
export function say(
  words: TemplateStringsArray,
  ...named: readonly (string | number | Mention | Sentence)[]
): Sentence {
  return words.flatMap((word, at) => {
    const next = named[at] ?? "";
    return [word, ...(isSentence(next) ? next : [typeof next === "number" ? String(next) : next])];
  });
}

function isSentence(value: string | number | Mention | Sentence): value is Sentence {
  return Array.isArray(value);
}

export function join(parts: readonly (Mention | Sentence)[], between: string): Sentence {
  return parts.flatMap((part, at) => {
    const sentence = isSentence(part) ? part : [part];
    return at === 0 ? sentence : [between, ...sentence];
  });
}

export function formatSentence(sentence: Sentence): string {
  return sentence.map((part) => (typeof part === "string" ? part : part.text)).join("");
}

export function mention(recipient: Recipient): Mention {
  return { kind: "recipient", text: formatRecipient(recipient), recipient };
}

export function link(domain: string, short_code: string): Mention {
  return { kind: "link", text: `${domain}/${short_code}`, domain, short_code };
}

/** `called`: what it is called before its id. */
export function run(run_id: string, called: "run" | "dry run" = "run"): Mention {
  return { kind: "run", text: `${called} ${run_id}`, run_id };
}

export function position(at: number): Mention {
  return { kind: "position", text: String(at), position: at };
}

/** ISO 8601. */
export function moment(at: string): Mention {
  return { kind: "time", text: at, at };
}

export function other(text: string): Mention {
  return { kind: "other", text };
}

/** A text of others, set apart from our own words by its quotes too. */
export function quote(text: string): Mention {
  return other(quoteText(text));
}

/** Behind a colon, where there is something to say. */
export function because(detail: string | undefined): Sentence {
  return detail === undefined || detail === "" ? [] : say`: ${quote(detail)}`;
}

/** A recipient by all that the event knows of them. */
export function formatRecipient({ id, username }: Recipient): string {
  if (username === undefined) return id ?? "an unnamed person";
  return id === undefined ? `@${username}` : `@${username} (${id})`;
}

/** The name of a token, or what it was in place of one. */
export function formatCaller(caller: string): string {
  return caller === "anonymous" ? "API without token" : caller;
}

/** A text of others as a part of ours: line breaks and quotes in it are escaped. */
export function quoteText(text: string): string {
  return JSON.stringify(text);
}

/** A word of a closed set, such as `recipient_closed`, as people write it. */
export function plain(word: string): string {
  return word.replaceAll("_", " ");
}
