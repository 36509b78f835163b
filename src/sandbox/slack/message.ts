/** https://docs.slack.dev/reference/block-kit/blocks */
const BLOCKS_MAX = 50;
const SECTION_CHARS_MAX = 3_000;
const TEXT_CHARS_MAX = 40_000;

interface Block {
  readonly type?: unknown;
  readonly text?: { readonly type?: unknown; readonly text?: unknown };
}

/** The word with which Slack refuses a body; undefined: it does not. */
export function faultOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return "invalid_payload";
  const { text, blocks } = body as { text?: unknown; blocks?: unknown };
  if (text !== undefined && typeof text !== "string") return "invalid_payload";
  if (blocks !== undefined && (!Array.isArray(blocks) || blocks.length > BLOCKS_MAX)) return "invalid_blocks";
  const sections = (blocks ?? []) as Block[];
  if (!sections.every(isBlock)) return "invalid_blocks";
  if (text !== undefined && text.length > TEXT_CHARS_MAX) return "msg_too_long";
  const hasText = text !== undefined && text.trim() !== "";
  return hasText || sections.length > 0 ? undefined : "no_text";
}

function isBlock({ type, text }: Block): boolean {
  if (typeof type !== "string") return false;
  if (type !== "section" || text === undefined) return true;
  return typeof text.text === "string" && text.text !== "" && text.text.length <= SECTION_CHARS_MAX;
}

/** Everything that a reader would see. */
export function textOf(body: unknown): string {
  const { text, blocks = [] } = body as { text?: string; blocks?: Block[] };
  const words = blocks.map((block) => block.text?.text).filter((words) => typeof words === "string");
  return [text ?? "", ...words].join("\n");
}
