import { render, type Rendered, type Rule } from "../rendered.ts";

const whole = (match: RegExpExecArray): string => match[0];
const first = (match: RegExpExecArray): string => match[1] ?? "";

/** https://faq.whatsapp.com/539178204879377; stricter, as the apps want a boundary of words around a marker. */
const RULES: readonly Rule[] = [
  { pattern: /https?:\/\/\S+/iy, shows: whole },
  { mark: "monospace", pattern: /```([^]+?)```/y, shows: first },
  { mark: "code", pattern: /`([^`\n]+)`/y, shows: first },
  { mark: "list", pattern: /[*-] +/y, lineStart: true, shows: () => "• " },
  { mark: "quote", pattern: /> /y, lineStart: true, shows: () => "" },
  { mark: "bold", pattern: /\*([^*\n]+)\*/y, inner: first },
  { mark: "italic", pattern: /_([^_\n]+)_/y, inner: first },
  { mark: "struck", pattern: /~([^~\n]+)~/y, inner: first },
];

export function renderWhatsapp(body: string): Rendered {
  return render(body, RULES);
}
