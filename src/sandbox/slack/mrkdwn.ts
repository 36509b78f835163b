import { render, type Rendered, type Rule } from "../rendered.ts";

const whole = (match: RegExpExecArray): string => match[0];
const first = (match: RegExpExecArray): string => match[1] ?? "";

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&" };

const ESCAPES: readonly Rule[] = [
  { pattern: /&(lt|gt|amp);/y, shows: (match) => ENTITIES[first(match)] ?? whole(match) },
];

/** Read in every text but that of a block of plain text: https://docs.slack.dev/messaging/formatting-message-text */
const CONTROLS: readonly Rule[] = [
  { mark: "mention", pattern: /<[!@#][^>]*>/y, shows: whole },
  { mark: "masked link", pattern: /<[^|>\s]+\|([^>]+)>/y, shows: first },
  { mark: "bracketed link", pattern: /<(\w+:[^>]+)>/y, shows: first },
  ...ESCAPES,
];

const FORMATTING: readonly Rule[] = [
  ...CONTROLS,
  { mark: "code block", pattern: /```([^]+?)```/y, shows: first },
  { mark: "code", pattern: /`([^`\n]+)`/y, shows: first },
  { mark: "quote", pattern: />\s*/y, lineStart: true, shows: () => "" },
  { mark: "bold", pattern: /\*([^*\n]+)\*/y, inner: first },
  { mark: "italic", pattern: /_([^_\n]+)_/y, inner: first },
  { mark: "struck", pattern: /~([^~\n]+)~/y, inner: first },
];

interface Text {
  readonly type?: unknown;
  readonly text?: string;
}

interface Payload {
  readonly text?: string;
  readonly mrkdwn?: boolean;
  readonly blocks?: readonly { readonly text?: Text }[];
}

/** What readers see: the blocks, or the text where there are none. What is marked in either counts. */
export function renderSlack({ text = "", mrkdwn = true, blocks = [] }: Payload): Rendered {
  const fallback = render(text, mrkdwn ? FORMATTING : CONTROLS);
  if (blocks.length === 0) return fallback;
  const shown = blocks.map((block) => renderBlock(block.text ?? {}));
  return {
    text: shown.map((block) => block.text).join("\n"),
    marks: [fallback, ...shown].flatMap(({ marks }) => marks),
  };
}

function renderBlock({ type, text = "" }: Text): Rendered {
  return render(text, type === "plain_text" ? ESCAPES : FORMATTING);
}
