import { render, type Rendered, type Rule } from "../rendered.ts";

const whole = (match: RegExpExecArray): string => match[0];
const first = (match: RegExpExecArray): string => match[1] ?? "";

/** https://developers.google.com/workspace/chat/format-messages */
const RULES: readonly Rule[] = [
  { pattern: /https?:\/\/[^\s<>|]+/iy, shows: whole },
  { mark: "mention", pattern: /<users\/[^>|\s]+>/y, shows: whole },
  { mark: "emoji", pattern: /<customEmojis\/[^>|\s]+>/y, shows: whole },
  { mark: "masked link", pattern: /<(?:https?|mailto):[^>|]*\|([^>]*)>/iy, shows: first },
  { mark: "bracketed link", pattern: /<((?:https?|mailto):[^>|]*)>/iy, shows: first },
  { mark: "code block", pattern: /```([^]+?)```/y, shows: first },
  { mark: "code", pattern: /`([^`\n]+)`/y, shows: first },
  { mark: "list", pattern: /\s*[*-] +/y, lineStart: true, shows: () => "• " },
  { mark: "quote", pattern: />[^\S\n]+/y, lineStart: true, shows: () => "" },
  { mark: "bold", pattern: /\*([^*\n]+)\*/y, inner: first },
  { mark: "italic", pattern: /_([^_\n]+)_/y, inner: first },
  { mark: "struck", pattern: /~([^~\n]+)~/y, inner: first },
];

/** Stricter than Google's clients, which want a boundary of words around formatting. */
export function renderGoogleChat(text: string): Rendered {
  return render(text, RULES);
}
