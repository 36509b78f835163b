import type { DataOf, EventType } from "../../../events/event-types-and-codec.ts";
import type { Recipient } from "../../../events/outreach.ts";

/**
 * Part of a sentence for which a page may show a link, such as a recipient's name. `text`: its words. Kind `other` has
 * no page to link to, such as a quoted text.
 */
export type Mention = { readonly text: string } & (
  | { readonly kind: "recipient"; readonly recipient: Recipient }
  | { readonly kind: "link"; readonly domain: string; readonly short_code: string }
  | { readonly kind: "run"; readonly run_id: string }
  | { readonly kind: "campaign"; readonly name: string }
  | { readonly kind: "position"; readonly position: number }
  | { readonly kind: "time"; readonly at: string }
  | { readonly kind: "other" }
);

/** Sentence that consists of our own words and of mentions of things, which a page can link or mark. */
export type Sentence = readonly (string | Mention)[];

export type EventWords = { readonly [T in EventType]: (data: DataOf<T>) => Sentence };

/** Functions that make a short sentence for each event type. `who`: the caller who caused the event. */
export type ShortWords = { readonly [T in EventType]: (data: DataOf<T>, who: Mention | string) => Sentence };

/**
 * Tag of a template literal that makes a sentence. Each inserted value is a sentence, a mention (the name of a thing
 * that a page may link to), a number, or text.
 */
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

/**
 * Makes the part of a sentence that names a run, so that a page can link it. `called`: the words before the run's id.
 */
export function run(run_id: string, called: "run" | "dry run" = "run"): Mention {
  return { kind: "run", text: `${called} ${run_id}`, run_id };
}

/** Makes the part of a sentence that names a campaign, so that a page can link the campaign. */
export function campaign(name: string): Mention {
  return { kind: "campaign", text: name, name };
}

export function position(at: number): Mention {
  return { kind: "position", text: String(at), position: at };
}

/** Says a moment. `at`: an ISO 8601 time. */
export function moment(at: string): Mention {
  return { kind: "time", text: at, at };
}

export function other(text: string): Mention {
  return { kind: "other", text };
}

/** Quotes a text that other people wrote, which sets it apart from our own words. */
export function quote(text: string): Mention {
  return other(quoteText(text));
}

/** Returns `: ` and the quoted detail, to end a sentence with; empty if there is no detail. */
export function because(detail: string | undefined): Sentence {
  return detail === undefined || detail === "" ? [] : say`: ${quote(detail)}`;
}

/** Names a recipient by handle, id or both, as the event holds them. */
export function formatRecipient({ id, username }: Recipient): string {
  if (username === undefined) return id ?? "an unnamed person";
  return id === undefined ? `@${username}` : `@${username} (${id})`;
}

/** Quotes a text that other people wrote, with its line breaks and quotes escaped. */
export function quoteText(text: string): string {
  return JSON.stringify(text);
}

/** Writes a word of a closed set, such as `recipient_closed`, with spaces instead of underscores. */
export function plain(word: string): string {
  return word.replaceAll("_", " ");
}

/** Says why a network refused a request: `429 from Slack, rate_limited` if it answered, else the words of the fault. */
export function sayReason(detail: string): Sentence {
  const [, network = "", status = "", words = ""] = /^(.+?) answered (\d{3}) ?(.*)$/s.exec(detail) ?? [];
  if (status === "") return [other(detail === "" ? "no reason given" : detail)];
  return say`${other(status)} from ${other(network)}${words === "" ? [] : say`, ${other(words)}`}`;
}
