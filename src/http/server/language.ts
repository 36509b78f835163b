/** Formats used for a browser that asks for no known language. */
const DEFAULT = "en-GB";

/** Characters of the header that are read. Real browsers send less than 200. */
const CHARACTERS_MAX = 200;

/**
 * Returns the language whose formats of times a browser prefers, as a BCP 47 tag. Quality values are ignored: browsers
 * send their languages in order.
 */
export function readLanguage({ headers }: Request): string {
  const asked = (headers.get("accept-language") ?? "").slice(0, CHARACTERS_MAX).split(",");
  for (const language of asked) {
    const tag = language.split(";")[0]?.trim() ?? "";
    try {
      // Only language and region: extensions could choose a calendar, and each tag gets formats of its own.
      const { language: name, region } = new Intl.Locale(tag);
      const plain = region === undefined ? name : `${name}-${region}`;
      // Plain English is what programs and tests send; the console's own formats are British.
      if (plain === "en") return DEFAULT;
      const [known] = Intl.DateTimeFormat.supportedLocalesOf(plain);
      if (known !== undefined) return known;
    } catch {
      // Not a tag, such as `*`.
    }
  }
  return DEFAULT;
}
