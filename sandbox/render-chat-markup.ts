/**
 * Text of a message as a network shows it to readers, once the markup is applied, with the kinds of formatting that
 * occur in it.
 */
export interface Rendered {
  readonly text: string;
  /** Kinds of formatting in the message, such as mentions, masked links or bold text. A bare address is plain text. */
  readonly marks: readonly string[];
}

/** A message's text as the service sent it (`text`) and as readers see it (`shown`). */
export interface ShownText {
  readonly text: string;
  readonly shown: string;
  readonly marks: readonly string[];
  readonly at: number;
}

/** A construct of a network's markup, such as bold text. */
export interface Rule {
  /**
   * Name of this formatting, such as `bold`, which is listed in `marks` for each occurrence; undefined if readers see
   * it as plain text.
   */
  readonly mark?: string;
  /** Regular expression of the construct, with the sticky flag. */
  readonly pattern: RegExp;
  /** True if the construct occurs only at the beginning of a line. */
  readonly lineStart?: true;
  /**
   * Returns the text inside the markup, such as the words between the marks of bold text; all rules are then applied to
   * that text too. If `inner` is absent, readers see the text that `shows` returns.
   */
  readonly inner?: (match: RegExpExecArray) => string;
  /**
   * Returns what readers of the message see in place of the construct, if no other markup works within it: for inline
   * code, the text between the backticks.
   */
  readonly shows?: (match: RegExpExecArray) => string;
}

/**
 * Converts a text to what readers see. At each place the first matching rule applies; other characters stay unchanged.
 */
export function render(text: string, rules: readonly Rule[]): Rendered {
  const marks: string[] = [];
  let shown = "";
  let at = 0;
  while (at < text.length) {
    const lineStart = at === 0 || text[at - 1] === "\n";
    const found = ruleAt(text, at, lineStart, rules);
    if (found === undefined) {
      shown += text[at++];
      continue;
    }
    const { rule, match } = found;
    if (rule.mark !== undefined) marks.push(rule.mark);
    const inner = rule.inner === undefined ? undefined : render(rule.inner(match), rules);
    marks.push(...(inner?.marks ?? []));
    shown += inner?.text ?? rule.shows?.(match) ?? "";
    at += match[0].length;
  }
  return { text: shown, marks };
}

function ruleAt(text: string, at: number, lineStart: boolean, rules: readonly Rule[]) {
  for (const rule of rules) {
    if (rule.lineStart === true && !lineStart) continue;
    rule.pattern.lastIndex = at;
    const match = rule.pattern.exec(text);
    if (match !== null && match[0] !== "") return { rule, match };
  }
  return undefined;
}

/** Joins several messages into one, with a separator between their texts. */
export function joined(parts: readonly Rendered[], separator: string): Rendered {
  return { text: parts.map(({ text }) => text).join(separator), marks: parts.flatMap(({ marks }) => marks) };
}

const whole = (match: RegExpExecArray): string => match[0];
const first = (match: RegExpExecArray): string => match[1] ?? "";

const CODE_BLOCK: Rule = { mark: "code block", pattern: /```([^]+?)```/y, shows: first };
const CODE: Rule = { mark: "code", pattern: /`([^`\n]+)`/y, shows: first };

/**
 * Rules of Discord's markdown, as its clients show it: https://docs.discord.com/developers/reference#message-formatting
 */
const DISCORD: readonly Rule[] = [
  { pattern: /\\([^\dA-Za-z\s])/y, shows: first },
  CODE_BLOCK,
  { mark: "code", pattern: /(`+)([^]*?[^`])\1(?!`)/y, shows: (match) => match[2] ?? "" },
  { mark: "mention", pattern: /@(?:everyone|here)|<@[!&]?\d+>|<#\d+>|<\/[^:>]+:\d+>|<id:\w+>/y, shows: whole },
  { mark: "timestamp", pattern: /<t:-?\d+(?::\w)?>/y, shows: whole },
  { mark: "emoji", pattern: /<a?:\w+:\d+>|:[^\s:]+:/y, shows: whole },
  { mark: "bracketed link", pattern: /<([^: >]+:\/[^ >]+)>/y, shows: first },
  { pattern: /https?:\/\/[^\s<]+[^<.,:;"'\]\s]/iy, shows: whole },
  { mark: "masked link", pattern: /\[([^\]]+)\]\(([^)\s]+)[^)]*\)/y, inner: first },
  { mark: "heading", pattern: /\s*#{1,3} +([^\n]+)/y, lineStart: true, inner: first },
  { mark: "small print", pattern: /-# +([^\n]+)/y, lineStart: true, inner: first },
  { mark: "quote", pattern: /\s*>(?:>>)? ([^\n]*)/y, lineStart: true, inner: first },
  { mark: "list", pattern: /[^\S\n]*(?:[-*+]|\d+\.) +([^\n]+)/y, lineStart: true, inner: first },
  { mark: "bold", pattern: /\*\*([^]+?)\*\*(?!\*)/y, inner: first },
  { mark: "underlined", pattern: /__([^]+?)__(?!_)/y, inner: first },
  { mark: "struck", pattern: /~~(?=\S)([^]*?\S)~~/y, inner: first },
  { mark: "spoiler", pattern: /\|\|([^]+?)\|\|/y, inner: first },
  { mark: "italic", pattern: /\*(?=\S)([^*]+?)\*(?!\*)/y, inner: first },
  { mark: "italic", pattern: /\b_([^_]+?)_\b/y, inner: first },
];

export function renderDiscord(content: string): Rendered {
  return render(content, DISCORD);
}

/**
 * Rules for paired markers that Slack, Google Chat and WhatsApp share. Their clients also require a word boundary
 * around a marker; the sandbox does not.
 */
const PAIRED: readonly Rule[] = [
  { mark: "bold", pattern: /\*([^*\n]+)\*/y, inner: first },
  { mark: "italic", pattern: /_([^_\n]+)_/y, inner: first },
  { mark: "struck", pattern: /~([^~\n]+)~/y, inner: first },
];

/** Rules of Google Chat's markup: https://developers.google.com/workspace/chat/format-messages */
const GOOGLE_CHAT: readonly Rule[] = [
  { pattern: /https?:\/\/[^\s<>|]+/iy, shows: whole },
  { mark: "mention", pattern: /<users\/[^>|\s]+>/y, shows: whole },
  { mark: "emoji", pattern: /<customEmojis\/[^>|\s]+>/y, shows: whole },
  { mark: "masked link", pattern: /<(?:https?|mailto):[^>|]*\|([^>]*)>/iy, shows: first },
  { mark: "bracketed link", pattern: /<((?:https?|mailto):[^>|]*)>/iy, shows: first },
  CODE_BLOCK,
  CODE,
  { mark: "list", pattern: /\s*[*-] +/y, lineStart: true, shows: () => "• " },
  { mark: "quote", pattern: />[^\S\n]+/y, lineStart: true, shows: () => "" },
  ...PAIRED,
];

export function renderGoogleChat(text: string): Rendered {
  return render(text, GOOGLE_CHAT);
}

/** Rules of WhatsApp's markup: https://faq.whatsapp.com/539178204879377 */
const WHATSAPP: readonly Rule[] = [
  { pattern: /https?:\/\/\S+/iy, shows: whole },
  { ...CODE_BLOCK, mark: "monospace" },
  CODE,
  { mark: "list", pattern: /[*-] +/y, lineStart: true, shows: () => "• " },
  { mark: "quote", pattern: /> /y, lineStart: true, shows: () => "" },
  ...PAIRED,
];

export function renderWhatsapp(body: string): Rendered {
  return render(body, WHATSAPP);
}

const SLACK_ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&" };

const SLACK_ESCAPES: readonly Rule[] = [
  { pattern: /&(lt|gt|amp);/y, shows: (match) => SLACK_ENTITIES[first(match)] ?? whole(match) },
];

/**
 * Rules that apply in all of Slack's texts except plain-text blocks:
 * https://docs.slack.dev/messaging/formatting-message-text
 */
const SLACK_CONTROLS: readonly Rule[] = [
  { mark: "mention", pattern: /<[!@#][^>]*>/y, shows: whole },
  { mark: "masked link", pattern: /<[^|>\s]+\|([^>]+)>/y, shows: first },
  { mark: "bracketed link", pattern: /<(\w+:[^>]+)>/y, shows: first },
  ...SLACK_ESCAPES,
];

const SLACK_FORMATTING: readonly Rule[] = [
  ...SLACK_CONTROLS,
  CODE_BLOCK,
  CODE,
  { mark: "quote", pattern: />\s*/y, lineStart: true, shows: () => "" },
  ...PAIRED,
];

interface SlackText {
  readonly type?: unknown;
  readonly text?: string;
}

interface SlackPayload {
  readonly text?: string;
  readonly mrkdwn?: boolean;
  readonly blocks?: readonly { readonly text?: SlackText }[];
}

/**
 * Returns what readers see of a Slack message: its blocks, or its text if it has none. Formatting in either is listed
 * in `marks`.
 */
export function renderSlack({ text = "", mrkdwn = true, blocks = [] }: SlackPayload): Rendered {
  const fallback = render(text, mrkdwn ? SLACK_FORMATTING : SLACK_CONTROLS);
  if (blocks.length === 0) return fallback;
  const shown = blocks.map(({ text: { type, text = "" } = {} }) =>
    render(text, type === "plain_text" ? SLACK_ESCAPES : SLACK_FORMATTING),
  );
  return { text: joined(shown, "\n").text, marks: joined([fallback, ...shown], "").marks };
}

/** Zero-width characters, which readers do not see. */
const INVISIBLE = /[\u200b-\u200d\u2060]/g;

const ADDRESS = /https?:\/\/[\w-]+(?:\.[\w-]+)+(?:[/?#:]\S*)?/gi;

/**
 * Entities that Telegram detects in a text without a parse mode, but not inside addresses:
 * https://core.telegram.org/bots/api#messageentity
 */
const TELEGRAM_ENTITIES = [
  { mark: "mention", pattern: /(?<![\p{L}\p{N}_])@[A-Za-z0-9_]{2,32}(?![\p{L}\p{N}_])/gu },
  {
    mark: "bot_command",
    pattern: /(?<![\p{L}\p{N}_/<>])\/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\p{L}\p{N}_/<>])/gu,
  },
];

/** Returns what members of a Telegram chat see of a text that was sent without a parse mode. */
export function renderTelegram(text: string): Rendered {
  const outside = text.replace(ADDRESS, (address) => " ".repeat(address.length));
  const marks = TELEGRAM_ENTITIES.flatMap(({ mark, pattern }) => (outside.match(pattern) ?? []).map(() => mark));
  return { text: text.replace(INVISIBLE, ""), marks };
}
