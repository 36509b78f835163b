import { checkOptOut } from "../template/check-opt-out.ts";
import type { Template } from "../template/template.ts";

/**
 * Matches letters of scripts that write words without spaces between them, or attach endings to words, as Korean does.
 */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** Matches soft hyphens, joiners and other invisible characters. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}]/gu;

/**
 * The opt-out wish in a recipient's reply. `doubt`: the reply has a short stop word, such as "end", among other words,
 * so that it may mean something else.
 */
export type Wish = "stop" | "doubt";

/**
 * Maximum length, in characters, of a single stop word that counts only as the whole message: "cancel" and "end" have
 * other meanings too. Longer words and phrases count anywhere in a message.
 */
const SHORT_CHARS_MAX = 9;

/**
 * Maximum length, in characters, of a stop word that counts only as the whole message, in scripts without spaces.
 * Longer ones are phrases there.
 */
const SHORT_UNSPACED_CHARS_MAX = 3;

/**
 * Words before or after a stop word that do not change its meaning: greetings, "please" and thanks, in the languages of
 * the replies that we tested.
 */
const COURTESIES = [
  // English in the first line below, German and Dutch in the second.
  "hi,hello,hey,dear,good morning,no thanks,no thank you,please,pls,plz,thanks,thank you,thx,ok,okay,now,sorry",
  "hallo,guten tag,guten morgen,moin,servus,bitte,danke,danke schön,vielen dank,hoi,dag,graag,alsjeblieft,alstublieft,dank je,bedankt",
  // Greetings, "please" and thanks in French, Spanish, Italian and Portuguese.
  "bonjour,bonsoir,salut,merci,svp,stp,s'il vous plaît,s'il te plaît,s'il vous plait,s'il te plait",
  "hola,buenos días,buenas,por favor,gracias,muchas gracias,ciao,salve,buongiorno,per favore,grazie",
  "olá,oi,bom dia,boa tarde,se faz favor,obrigado,obrigada",
  // Polish, Turkish, Russian.
  "cześć,dzień dobry,proszę,dziękuję,dzięki,merhaba,selam,lütfen,teşekkürler,teşekkür ederim",
  "привет,здравствуйте,добрый день,пожалуйста,спасибо",
  // Japanese, Chinese, Korean.
  "こんにちは,してください,ください,お願いします,します,ありがとうございます,ありがとう,你好,您好,请,請,谢谢,謝謝",
  "안녕하세요,부탁드립니다,부탁합니다,해주세요,해 주세요,합니다,제발,감사합니다",
].flatMap((line) => line.split(","));

/**
 * Makes a function that reads the opt-out wish in a reply; it returns undefined if the reply has no stop word.
 * `others`: phrases with another meaning, such as "stop tracking", which are removed first.
 */
export function createWishReader(
  words: readonly string[],
  others: readonly string[] = [],
): (text: string) => Wish | undefined {
  const hasWord = createStopWords(words, others);
  const hasPhrase = createStopWords(
    words.filter((word) => !isShort(comparable(word))),
    others,
  );
  const prepare = createComparison(others);
  // The patterns are compiled when the first reply needs them, because compiling them takes a tenth of the time of a
  // start.
  let meaningless: readonly RegExp[] | undefined;
  return (text) => {
    if (!hasWord(text)) return undefined;
    if (hasPhrase(text)) return "stop";
    meaningless ??= toPatterns(longestFirst([...words, ...COURTESIES])).map((pattern) => new RegExp(pattern, "gu"));
    const rest = meaningless.reduce((left, pattern) => left.replaceAll(pattern, " "), prepare(text));
    return /[\p{L}\p{N}]/u.test(rest) ? "doubt" : "stop";
  };
}

function isShort(word: string): boolean {
  if (UNSPACED.test(word)) return word.length <= SHORT_UNSPACED_CHARS_MAX;
  return !/[\s-]/.test(word) && word.length <= SHORT_CHARS_MAX;
}

/** Sorts stop words, longest first: if "stop" were removed before "stop all", the text would keep "all". */
function longestFirst(words: readonly string[]): readonly string[] {
  return words.toSorted((one, other) => other.length - one.length);
}

/**
 * Makes a function that is true if a text contains one of the words as a whole word. `others`: phrases with another
 * meaning, which are removed first: "stop tracking" does not mean "stop".
 */
export function createStopWords(words: readonly string[], others: readonly string[] = []): (text: string) => boolean {
  const patterns = toPatterns(words);
  const prepare = createComparison(others);
  return (text) => {
    const compared = prepare(text);
    return patterns.some((pattern) => pattern.test(compared));
  };
}

/**
 * Makes a function that normalizes a text for the comparison with stop words. It removes the phrases `others`, which
 * contain a stop word but do not mean "send no more messages", such as "stop tracking".
 */
function createComparison(others: readonly string[]): (text: string) => string {
  const phrases = toPatterns(others);
  const takeOut = (line: string, phrase: RegExp) => line.replaceAll(new RegExp(phrase, "gu"), TAKEN_OUT);
  return (text) => {
    const lines = text.split(LINE_END).map((line) => phrases.reduce(takeOut, comparable(line)));
    return comparable(lines.join(" "));
  };
}

const LINE_END = /[\n\r\u2028\u2029]+/;

/**
 * Character put in place of a removed phrase, so that the words before and after the phrase do not form another one.
 */
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

/**
 * Characters that people type as an apostrophe. They are replaced before the NFKC normalization, which splits some of
 * them.
 */
const APOSTROPHES = /[`\u00b4\u02bb\u02bc\u2018\u2019\u201b\u2032]/g;

/** Dashes, and the minus sign, which Unicode does not class as a dash. */
const DASHES = /[\p{Pd}\u2212]/gu;

/** Normalizes a text, so that all spellings are equal: width, case, quotation marks, dashes, white space. */
function comparable(text: string): string {
  return (
    text
      .replace(APOSTROPHES, "'")
      .normalize("NFKC")
      .replace(INVISIBLE, "")
      .toLowerCase()
      // Removes the dot: in lower case, a Turkish capital İ becomes an i and a combining dot.
      .replaceAll("i\u0307", "i")
      .replace(DASHES, "-")
      .replace(/\s+/g, " ")
      .trim()
  );
}

interface MessageSettings {
  readonly template: Template | undefined;
  readonly stopWords: readonly string[];
}

/** Says how the message offers to opt out, and what the operator must make sure of. */
export function describeOptOut({ template, stopWords }: MessageSettings) {
  return template && checkOptOut(template, createStopWords(stopWords));
}

/** Returns a warning if a variant of the message offers no way to opt out. */
export function warnOfNoOptOut(settings: MessageSettings): string | undefined {
  const found = describeOptOut(settings);
  return found?.isOffered === false ? found.detail : undefined;
}
