/** https://docs.slack.dev/reference/block-kit/composition-objects/text-object */
const SECTION_CHARS_MAX = 3000;

/** With the fallback 11,000 characters: near 13,200 Slack answers `msg_blocks_too_long`. */
const SECTIONS_MAX = 3;

/** The fallback is what a notification on a telephone shows. */
const FALLBACK_CHARS_MAX = 2000;

const ELLIPSIS = "…";

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/**
 * A webhook's payload that shows `text` as it stands: `plain_text` sections know no formatting, and the escapes leave
 * no `<!channel>` or `<url|text>` to be read in the fallback. Links are not unfurled: Slack would visit them.
 */
export function slackMessage(text: string): string {
  return JSON.stringify({
    text: packed(text, FALLBACK_CHARS_MAX, 1)[0] ?? "",
    mrkdwn: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: packed(text, SECTION_CHARS_MAX, SECTIONS_MAX).map((section) => ({
      type: "section",
      text: { type: "plain_text", text: section, emoji: false },
    })),
  });
}

/** The escaped text in at most `parts` pieces of at most `size` UTF-16 units; neither characters nor escapes are cut. */
function packed(text: string, size: number, parts: number): string[] {
  const whole = text.replace(/[&<>]/g, (character) => ESCAPES[character] ?? character);
  if (whole.length <= size) return whole.trim() === "" ? [] : [whole];
  const pieces: string[] = [];
  let piece = "";
  for (const character of text) {
    const escaped = ESCAPES[character] ?? character;
    const last = pieces.length === parts - 1;
    // The last piece keeps room for the mark that something is missing.
    if (piece.length + escaped.length > (last ? size - ELLIPSIS.length : size)) {
      if (last) return [...pieces, piece + ELLIPSIS];
      pieces.push(piece);
      piece = "";
    }
    piece += escaped;
  }
  return [...pieces, piece].filter((one) => one.trim() !== "");
}
