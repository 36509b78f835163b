/**
 * Characters of a message, counted in UTF-16 units, which are never fewer;
 * https://docs.discord.com/developers/resources/webhook#execute-webhook
 */
const CONTENT_UNITS_MAX = 2_000;

const ELLIPSIS = "…";

/**
 * An address that Discord links as a whole and shows as it stands: only characters of RFC 3986 that none of Discord's
 * own syntax begins inside of an address. Whatever else is in a word, it is no address and all of it is escaped.
 */
const LINK = /^https?:\/\/[\w\-.~:/?#@!$&()*+,;=%]*[\w\-~/#@$&*+=%]$/i;

/** What begins formatting, mentions, emoji, masked links and bare addresses wherever it stands. */
const MARKERS = /[\\*_~|`<>[\]()#@:]/g;

/** What makes a list or small print of a line that it begins: its last character is escaped. */
const LINE_MARKER = /^(\d+(?=\.)|(?=[-+]))([-+.])/;

/**
 * Foreign text as content that shows as it was written: a backslash before a mark makes it a character. Where it is
 * too long it ends in an ellipsis; neither characters nor escapes are cut, and no part of an address becomes a link.
 */
export function discordText(text: string): string {
  const words = text.split(/(\s+)/);
  const pieces = words.map((word, at) => (LINK.test(word) ? word : escapeWord(word, isFirst(words, at))));
  const whole = pieces.join("");
  if (whole.length <= CONTENT_UNITS_MAX) return whole;
  let shown = "";
  for (const [at, piece] of pieces.entries()) {
    if (shown.length + piece.length > CONTENT_UNITS_MAX - ELLIPSIS.length) {
      return cut(shown, escapeWord(words[at] ?? "", isFirst(words, at)));
    }
    shown += piece;
  }
  return shown;
}

/** As much of an escaped word as there is room for. */
function cut(shown: string, escaped: string): string {
  for (const [character] of escaped.matchAll(/\\?[^]/gu)) {
    if (shown.length + character.length > CONTENT_UNITS_MAX - ELLIPSIS.length) break;
    shown += character;
  }
  return shown + ELLIPSIS;
}

/** Words and the white space between them take turns. */
function isFirst(words: readonly string[], at: number): boolean {
  return at === 0 || (words[at - 1] ?? "").includes("\n") || (at === 2 && words[0] === "");
}

function escapeWord(word: string, first: boolean): string {
  const escaped = word.replace(MARKERS, "\\$&");
  return first ? escaped.replace(LINE_MARKER, "$1\\$2") : escaped;
}
