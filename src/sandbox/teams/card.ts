import { render, type Rendered, type Rule } from "../rendered.ts";

/** What Teams takes of a message, about: https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using */
const MESSAGE_BYTES_MAX = 28 * 1024;

const first = (match: RegExpExecArray): string => match[1] ?? "";

/** Times are worded for the reader in any text: https://learn.microsoft.com/adaptive-cards/authoring-cards/text-features */
const MACROS: readonly Rule[] = [
  { mark: "date", pattern: /\{\{(?:DATE|TIME)\([^)}]*\)\}\}/y, shows: () => "a date in words" },
];

/** The markdown of a TextBlock: https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-format */
const MARKDOWN: readonly Rule[] = [
  ...MACROS,
  { pattern: /\\([^\dA-Za-z\s])/y, shows: first },
  { mark: "masked link", pattern: /\[([^\]]+)\]\(([^)\s]+)\)/y, inner: first },
  { mark: "list", pattern: /\s*(?:[-*+]|\d+\.) +/y, lineStart: true, shows: () => "• " },
  { mark: "bold", pattern: /\*\*([^*]+)\*\*|__([^_]+)__/y, inner: (match) => match[1] ?? match[2] ?? "" },
  { mark: "italic", pattern: /\*([^*\s][^*]*)\*|_([^_\s][^_]*)_/y, inner: (match) => match[1] ?? match[2] ?? "" },
];

interface Element {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly inlines?: unknown;
}

/** What readers see of a posted body, or why the workflow fails to post it. */
export function renderTeams(body: string): Rendered | { readonly failure: string } {
  if (Buffer.byteLength(body) > MESSAGE_BYTES_MAX) return { failure: "RequestEntityTooLarge" };
  const { attachments } = JSON.parse(body) as { attachments: readonly { contentType?: unknown; content?: unknown }[] };
  const card = attachments.length === 1 ? attachments[0] : undefined;
  if (card?.contentType !== "application/vnd.microsoft.card.adaptive") return { failure: "no adaptive card" };
  const { type, version, body: elements } = (card.content ?? {}) as Readonly<Record<string, unknown>>;
  if (type !== "AdaptiveCard" || typeof version !== "string") return { failure: "a bad adaptive card" };
  if (!Array.isArray(elements) || elements.length === 0) return { failure: "an empty adaptive card" };
  const lines = (elements as Element[]).map(renderElement);
  if (lines.some((line) => line === undefined)) return { failure: "an unknown element" };
  const shown = lines.filter((line) => line !== undefined);
  return { text: shown.map(({ text }) => text).join("\n"), marks: shown.flatMap(({ marks }) => marks) };
}

function renderElement({ type, text, inlines }: Element): Rendered | undefined {
  if (type === "TextBlock") return typeof text === "string" ? render(text, MARKDOWN) : undefined;
  if (type !== "RichTextBlock" || !Array.isArray(inlines) || inlines.length === 0) return undefined;
  const runs = (inlines as Element[]).map((run) =>
    run.type === "TextRun" && typeof run.text === "string" ? render(run.text, MACROS) : undefined,
  );
  if (runs.some((run) => run === undefined)) return undefined;
  const shown = runs.filter((run) => run !== undefined);
  return { text: shown.map((run) => run.text).join(""), marks: shown.flatMap((run) => run.marks) };
}
