/** Language of formats for a browser that asks for none that is known. */
const DEFAULT = "en-GB";

/** Maximum number of characters of the Accept-Language header that are read. Real browsers send fewer than 200. */
const CHARACTERS_MAX = 200;

/**
 * Returns the language, as a BCP 47 tag, in whose format a browser prefers times. Quality values are ignored, because
 * browsers list their languages in the order of preference.
 */
export function readLanguage({ headers }: Request): string {
  const asked = (headers.get("accept-language") ?? "").slice(0, CHARACTERS_MAX).split(",");
  for (const language of asked) {
    const tag = language.split(";")[0]?.trim() ?? "";
    try {
      // Only language and region count. Extensions could choose another calendar, and formats are cached for each tag.
      const { language: name, region } = new Intl.Locale(tag);
      const plain = region === undefined ? name : `${name}-${region}`;
      // Programs and tests ask for plain English, and get British formats like the console's own.
      if (plain === "en") return DEFAULT;
      const [known] = Intl.DateTimeFormat.supportedLocalesOf(plain);
      if (known !== undefined) return known;
    } catch {
      // A text such as `*` is no language tag, so the loop tries the next one.
    }
  }
  return DEFAULT;
}
