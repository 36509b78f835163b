/**
 * What Teams takes of a message is "about 28 KB"; what it takes to say so is not counted to the byte.
 * https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
 */
const MESSAGE_BYTES_MAX = 28_000;

const ELLIPSIS = "…";

/** A TextRun too words `{{DATE(…)}}` for the reader: halved, the opening is none. */
const MACRO_OPENING = /(?<=\{)(?=\{)/;

/**
 * A workflow's input that posts `text` as it stands: an adaptive card with a line of text each. A TextRun, unlike a
 * TextBlock, knows no markdown (https://learn.microsoft.com/adaptive-cards/schema-explorer/text-run), so nothing is
 * escaped, and mentions take an entity of their own.
 */
export function teamsMessage(text: string): string {
  const blocks: object[] = [];
  let left = MESSAGE_BYTES_MAX - Buffer.byteLength(formatCard([]));
  for (const line of text.split("\n")) {
    const size = countBytes(line);
    // Room for the mark that something is missing is kept for as long as there may be more.
    if (size > left - countBytes(ELLIPSIS)) {
      blocks.push(toBlock(cut(line, left) + ELLIPSIS));
      break;
    }
    blocks.push(toBlock(line));
    left -= size;
  }
  return formatCard(blocks);
}

/** As much of a line as there is room for beside an ellipsis, never half a character. */
function cut(line: string, bytes: number): string {
  // Halving: what a line takes in JSON grows with its length.
  let fits = 0;
  let tooLong = line.length + 1;
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (countBytes(line.slice(0, middle).toWellFormed() + ELLIPSIS) <= bytes) fits = middle;
    else tooLong = middle;
  }
  return line.slice(0, fits).replace(/[\ud800-\udbff]$/, "");
}

/** Bytes of a line's block in the list, with its comma. */
function countBytes(line: string): number {
  return Buffer.byteLength(JSON.stringify(toBlock(line))) + 1;
}

function toBlock(line: string): object {
  // An empty run would be no line at all.
  const runs = line === "" ? ["\u00a0"] : line.split(MACRO_OPENING);
  return { type: "RichTextBlock", spacing: "None", inlines: runs.map((text) => ({ type: "TextRun", text })) };
}

function formatCard(body: readonly object[]): string {
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body,
    msteams: { width: "Full" },
  };
  return JSON.stringify({
    type: "message",
    attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", content }],
  });
}
