/** The characters that MarkdownV2 wants escaped everywhere: https://core.telegram.org/bots/api#markdownv2-style */
const UNESCAPED_MARKDOWN = /(?<!\\)(?:\\\\)*[_*[\]()~`>#+\-=|{}.!]/;

const UNKNOWN_TAG = /<(?!\/?(?:b|strong|i|em|u|ins|s|strike|del|code|pre|a|tg-spoiler|blockquote)[\s>])/i;

/** Telegram's reason against a text with a parse mode. Stricter than the real one, which takes balanced markup. */
export function markupFault(text: string, parseMode: unknown): string | undefined {
  if (parseMode === undefined || parseMode === "") return undefined;
  const mode = typeof parseMode === "string" ? parseMode.toLowerCase() : "";
  if (!["html", "markdown", "markdownv2"].includes(mode)) return "Bad Request: unsupported parse_mode";
  const bad = mode === "html" ? UNKNOWN_TAG.exec(text) : UNESCAPED_MARKDOWN.exec(text);
  if (bad === null) return undefined;
  return `Bad Request: can't parse entities: Character '${bad[0].at(-1)}' is reserved at byte offset ${bad.index}`;
}
