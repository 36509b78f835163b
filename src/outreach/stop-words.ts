/** Letters of scripts that write words without spaces between them, or, as Korean does, endings onto them. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** Soft hyphens, joiners and other invisible characters. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Whether a text asks to be left alone: one of the words or phrases occurs anywhere in it as whole words. That "don't
 * stop" counts too is wanted: each recipient gets at most one message ever, so a false alarm costs next to nothing, while
 * a wish that is missed breaks the network's rules. `others`: phrases of another wish, which are passed over where they
 * stand on one line: "stop tracking" asks for less than "stop".
 */
export function createStopWords(words: readonly string[], others: readonly string[] = []): (text: string) => boolean {
  const patterns = toPatterns(words);
  const phrases = toPatterns(others);
  return (text) => {
    const takeOut = (line: string, phrase: RegExp) => line.replaceAll(new RegExp(phrase, "gu"), TAKEN_OUT);
    const lines = text.split(LINE_END).map((line) => phrases.reduce(takeOut, comparable(line)));
    const compared = comparable(lines.join(" "));
    return patterns.some((pattern) => pattern.test(compared));
  };
}

const LINE_END = /[\n\r\u2028\u2029]+/;

/** What stands in place of a phrase, so that the words around it make no other one. */
const TAKEN_OUT = "…";

function toPatterns(words: readonly string[]): readonly RegExp[] {
  return words
    .map(comparable)
    .filter((word) => word !== "")
    .map(toPattern);
}

function toPattern(word: string): RegExp {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  if (UNSPACED.test(word)) return new RegExp(escaped, "u");
  return new RegExp(`(?<![\\p{L}\\p{M}\\p{N}])${escaped}(?![\\p{L}\\p{M}\\p{N}])`, "u");
}

/** What is typed for an apostrophe. Before NFKC, which takes some of them apart. */
const APOSTROPHES = /[`\u00b4\u02bb\u02bc\u2018\u2019\u201b\u2032]/g;

/** Dashes, and the minus sign, which Unicode does not count among them. */
const DASHES = /[\p{Pd}\u2212]/gu;

/** One form for all ways to write the same: width, case, quotation marks, dashes, white space. */
function comparable(text: string): string {
  return (
    text
      .replace(APOSTROPHES, "'")
      .normalize("NFKC")
      .replace(INVISIBLE, "")
      .toLowerCase()
      // What becomes of a Turkish capital İ.
      .replaceAll("i\u0307", "i")
      .replace(DASHES, "-")
      .replace(/\s+/g, " ")
      .trim()
  );
}
