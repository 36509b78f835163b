export interface WrappedUrl {
  readonly start: number;
  readonly end: number;
  readonly url: string;
  readonly expanded_url: string;
  readonly display_url: string;
}

/** A link with its scheme, or a bare name that X takes for one (a few of the top-level domains that it knows). */
const LINK = /https?:\/\/[^\s<>]+|(?<![@\w./-])(?:[\w-]+\.)+(?:com|net|org|io|dev|app|co|shop)\b(?:\/[^\s<>]*)?/gi;

/** X does not take the end of a sentence for a part of the link. */
const SENTENCE_END = /[.,;:!?'")\]]+$/;

const SHORT_CHARS = 10;
const DISPLAYED_CHARS = 26;

/** A text as X shows it: each link replaced by one of its own, and three characters escaped as in HTML. */
export function asShown(messageId: string, text: string): { text: string; urls: WrappedUrl[] } {
  const urls: WrappedUrl[] = [];
  let shown = "";
  let from = 0;
  for (const { 0: match, index } of text.matchAll(LINK)) {
    const link = match.replace(SENTENCE_END, "");
    shown += escaped(text.slice(from, index));
    const url = shortened(messageId, urls.length);
    urls.push({ start: shown.length, end: shown.length + url.length, url, ...originalOf(link) });
    shown += url;
    from = index + link.length;
  }
  return { text: shown + escaped(text.slice(from)), urls };
}

function originalOf(link: string) {
  const expanded_url = /^https?:/i.test(link) ? link : `http://${link}`;
  const display_url = link.replace(/^https?:\/\/(?:www\.)?/i, "");
  const isLong = display_url.length > DISPLAYED_CHARS;
  return { expanded_url, display_url: isLong ? `${display_url.slice(0, DISPLAYED_CHARS)}…` : display_url };
}

/** Different for every link of every message, and the same at each look. */
function shortened(messageId: string, position: number): string {
  const number = BigInt(messageId) * 1_000n + BigInt(position);
  return `https://t.co/${number.toString(36).slice(-SHORT_CHARS)}`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
