// This file finds and checks the identifiers that ads networks give to visitors, such as `fbclid`. It makes none.
import { parseCookie } from "cookie";
import type { ClickChannel } from "../../events/channel-and-lane-names.ts";
import type { VisitorId, VisitorIds } from "../../events/clicks-links-conversions.ts";

interface VisitorIdRule {
  /** Channel of the ads network that made the visitor's identifier and receives it with clicks. */
  readonly channel: ClickChannel;
  /** Form in which the network accepts the identifier. */
  readonly form: RegExp;
  /**
   * Name of the cookie that contains the visitor's identifier when the visitor opens a short link; `param` is the name
   * of the query parameter. A rule has one of the two.
   */
  readonly cookie?: string;
  readonly param?: string;
}

/**
 * Rules for each identifier. The patterns allow for the part that Meta's libraries append to its cookies.
 * https://developers.facebook.com/documentation/ads-commerce/conversions-api/parameters/fbp-and-fbc
 */
const RULES: Readonly<Record<VisitorId, VisitorIdRule>> = {
  fbp: { channel: "ads", form: /^fb\.\d\.\d{13}\.\d+(?:\.[\w-]+)?$/, cookie: "_fbp" },
  fbc: { channel: "ads", form: /^fb\.\d\.\d{13}\.[\w-]+(?:\.[\w-]+)?$/, cookie: "_fbc" },
  fbclid: { channel: "ads", form: /^[\w-]+$/, param: "fbclid" },
  oppref: { channel: "ads-openai", form: /^[\x21-\x7e]+$/, param: "oppref" },
  sc_click_id: { channel: "ads-snap", form: /^[\x21-\x7e]+$/, param: "ScCid" },
};

const ENTRIES = Object.entries(RULES) as [VisitorId, VisitorIdRule][];

/** Maximum length of an identifier, because visitors can put anything into their cookies. */
export const VISITOR_ID_CHARS_MAX = 512;

/** Identifiers as a caller or a browser gave them, well-formed or not. */
export type GivenIds = Readonly<Partial<Record<VisitorId, string | null | undefined>>>;

/** Keeps the identifiers that are well-formed, and that one of these channels receives. */
export function keepVisitorIds(ids: GivenIds, channels: readonly ClickChannel[]): VisitorIds {
  const kept: Partial<Record<VisitorId, string>> = {};
  for (const [name, { channel, form }] of ENTRIES) {
    const id = ids[name];
    if (typeof id === "string" && id.length <= VISITOR_ID_CHARS_MAX && form.test(id) && channels.includes(channel))
      kept[name] = id;
  }
  return kept;
}

/** Finds the identifiers in the query of a short link and in the cookies of the request for it. */
export function findVisitorIds(query: string, cookies: string | null): GivenIds | undefined {
  if (query === "" && cookies === null) return undefined;
  const params = new URLSearchParams(query);
  const cookie = parseCookie(cookies ?? "");
  return Object.fromEntries(
    ENTRIES.map(([name, rule]) => [
      name,
      (rule.param && params.get(rule.param)) ?? (rule.cookie && cookie[rule.cookie]) ?? undefined,
    ]),
  );
}
