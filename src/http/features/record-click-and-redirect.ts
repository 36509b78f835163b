import { isIP } from "node:net";
import { FormatRegistry, Type, type Static, type StringOptions } from "@sinclair/typebox";
import { andThen } from "eventstore-lite";
import type { ClickChannel } from "../../../events/channel-and-lane-names.ts";
import { VISITOR_IDS, type VisitorId } from "../../../events/clicks-links-conversions.ts";
import { normalizeCode, normalizeDomain, normalizeLink, toLinkHost } from "../../../projections/normalize-link.ts";
import { codeIn, findLink, type SharedLink } from "../../../projections/links.ts";
import { linkKey } from "../../../projections/link-keys-and-text-links.ts";
import { REDIRECT_PATH } from "../../config/outreach.ts";
import { isBot } from "../../delivery/is-bot.ts";
import { STREAMS, type NewEvent } from "../../log/event-log.ts";
import { isTracked } from "../../links/conversion-attribution.ts";
import { toRedirectUrl } from "../../links/target-url-of-redirect.ts";
import { findOwnLink, isLinkHost, listPersonalCodes } from "../../links/find-personal-link-of-click.ts";
import {
  findVisitorIds,
  type GivenIds,
  keepVisitorIds,
  VISITOR_ID_CHARS_MAX,
} from "../../links/ad-network-visitor-ids.ts";
import { canonicalAddress } from "../../platform/ip-address.ts";
import { errorFields } from "../../platform/logger.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { html, redirect, whole } from "../server/http-response.ts";
import { jsonBody } from "../server/body.ts";
import { route, reply, textReply, type RequestContext } from "../server/endpoint.ts";
import { readAppendKey } from "../server/idempotency.ts";
import { problems } from "../server/problem.ts";
import type { AppendedBy, EventIntake } from "../server/event-intake.ts";
import { closedObject, id, orNull } from "../../platform/common-schemas.ts";

FormatRegistry.Set("ip-address-or-blank", (value) => isIP(value) !== 0 || isBlank(value));
FormatRegistry.Set("http-url", (value) => isHttpUrl(value));

/** Pattern of domains and short codes. They become part of a stream's name, which may hold no control character. */
export const IN_A_STREAM_NAME = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";

const USER_AGENT_CHARS_MAX = 1_024;
const REFERRER_CHARS_MAX = 2_048;

const optionalText = (options: StringOptions) => Type.Optional(orNull(Type.String(options)));

const visitorId = (description: string, example: string) =>
  optionalText({ maxLength: VISITOR_ID_CHARS_MAX, description, examples: [example] });

export const trackingBody = closedObject({
  event: Type.String({ minLength: 1, maxLength: 64, examples: ["click"] }),
  domain: Type.String({ maxLength: 253, pattern: IN_A_STREAM_NAME, examples: ["go.example"] }),
  short_code: Type.String({ maxLength: 128, pattern: IN_A_STREAM_NAME, examples: ["spring"] }),
  original_url: Type.String({
    maxLength: 4096,
    format: "http-url",
    description: "An absolute http or https URL, as lenient as a browser (WHATWG): a raw space is allowed.",
    examples: ["https://shop.example/?utm_source=dm", "http://shop.example"],
  }),
  ip: optionalText({
    format: "ip-address-or-blank",
    description: "The visitor's address, IPv4 or IPv6. Blank and null count as absent.",
    examples: ["192.0.2.1", "2001:db8::1"],
  }),
  user_agent: optionalText({
    maxLength: USER_AGENT_CHARS_MAX,
    description: "Blank and null count as absent.",
    examples: ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"],
  }),
  referrer: optionalText({
    maxLength: REFERRER_CHARS_MAX,
    description: "The page that led the visitor to the link. Blank and null count as absent.",
    examples: ["https://t.co/"],
  }),
  fbp: visitorId(
    "The cookie `_fbp` of Meta's pixel, unchanged. Like all ids below, it is left out if it is malformed or its network is not configured.",
    "fb.1.1795168800750.1098115397",
  ),
  fbc: visitorId("The cookie `_fbc` of Meta's pixel, unchanged.", "fb.1.1795168800750.IwAR0_-aB"),
  fbclid: visitorId("Meta's click id, unless `original_url` holds it.", "IwAR0_-aB"),
  oppref: visitorId("OpenAI's identifier, from the parameter `oppref` of the visit.", "oppref_abc"),
  sc_click_id: visitorId("Snap's click id, from the parameter `ScCid` of the visit.", "a3f4b5c6-d7e8-9012"),
  anonymous: Type.Optional(
    Type.Boolean({
      description: "True if the visitor asked not to be tracked (Sec-GPC, DNT): nothing about them is recorded.",
      examples: [false],
    }),
  ),
});

function isBlank(text: string): boolean {
  return text.trim() === "";
}

export function trackingEndpoints(context: HttpContext) {
  const recordClick = createClickRecorder(context);
  return feature("tracking", "/api/tracking").post(
    "/event",
    async ({ body, call, status }) => {
      const click = normalizeClick(body);
      const isAllowed = call.links?.some((domain) => normalizeDomain(domain) === click.domain) ?? true;
      if (!isAllowed) throw problems.otherDomain(call.links ?? []);
      const key = readAppendKey(call, body);
      const codes = listPersonalCodes(click.short_code);
      const hidden = codes.length === 0 ? click : await hideForgotten(context, click, codes);
      const { ids } = await recordClick(hidden, { metadata: call.metadata, key });
      return status(202, { id: ids[0]! });
    },
    route("recordEvent", "tracking", ["strict", "track"], {
      body: jsonBody(trackingBody),
      response: { 202: reply("The click is on disk.", Type.Object({ id })) },
      summary: "Records a click, which is dispatched to three channels.",
      description:
        "Answered once the event is durable. The dispatches to the advertising network, the team chat and the messaging service follow.",
      requestHeaders: ["Idempotency-Key"],
      problems: ["otherDomain"],
    }),
  );
}

/** Code recorded in place of an erased recipient's own code, which would show which clicks are theirs. */
const FORGOTTEN = "forgotten";

/**
 * Replaces the click's short code if the log knows none of `codes`, because the link may be an erased recipient's.
 * Clicks on another shortener's domain keep their code.
 */
async function hideForgotten(context: HttpContext, click: Click, codes: readonly string[]): Promise<Click> {
  for (const code of codes) {
    const found = findLink(context.projector.state("links"), code) ?? (await findLinkAtHead(context, code));
    if (found !== undefined) return click;
  }
  return isLinkHost(context.projector.state("links"), click.domain) ? { ...click, short_code: FORGOTTEN } : click;
}

/** Finds a link once the projections hold the whole log, because another instance may just have sent or added it. */
async function findLinkAtHead({ projector, eventLog }: HttpContext, code: string): Promise<SharedLink | undefined> {
  await projector.until((await eventLog.store.head()).position);
  return findLink(projector.state("links"), code);
}

/**
 * Creates the redirect `GET /l/CODE`, for operators without another shortener. It redirects only to targets that the
 * log holds.
 */
export function redirectEndpoints(context: HttpContext) {
  const recordClick = createClickRecorder(context);
  const { projector, logger } = context;
  return feature("redirects", REDIRECT_PATH).get(
    "/:code",
    async ({ params, call }) => {
      const { redirects, passQuery, clickParam } = context.config.links;
      if (redirects === undefined) return NO_LINK;
      const code = normalizeCode(params.code);
      const link = findLink(projector.state("links"), code) ?? (await findLinkAtHead(context, code));
      if (link === undefined) return NO_LINK;
      const { url } = call.request;
      const queryAt = url.indexOf("?");
      const query = queryAt === -1 ? "" : url.slice(queryAt + 1);
      const clickId = context.makeId();
      const visit = toVisit(code, link, query, call);
      const recorded = recordClick(visit, { metadata: call.metadata, key: undefined }, clickId);
      if (redirects === "before") await recorded;
      else recorded.catch((fault: unknown) => logger.error("a click was not recorded", errorFields(fault)));
      const location = toRedirectUrl(link.target, { query, passQuery, clickParam, clickId });
      return whole(redirect(302, location, { "cache-control": "no-store" }));
    },
    route("followLink", "tracking", "open", {
      response: {
        302: textReply("Redirects to the target that the log knows for this code.", { headers: ["location"] }),
        404: textReply("No link has this code.", { mediaType: "text/html" }),
      },
      summary: "Redirects to the target of a short link, and records the click.",
      description:
        "Only while REDIRECTS is on. The code alone decides the target, to which CLICK_PARAM and PASS_QUERY add parameters. HEAD and prefetch requests are recorded separately and do not count as clicks; Sec-GPC and DNT make a click anonymous.",
      parameters: { code: "The code of the link." },
      problems: ["notFound"],
    }),
  );
}

/** Page for a visitor who opens an unknown short link. It says nothing of this service. */
const NO_LINK = whole(
  html(404, '<!doctype html><html lang="en"><title>Link not found</title><p>There is no such link.</p></html>\n'),
);

function toVisit(
  short_code: string,
  { domain, target }: SharedLink,
  query: string,
  { request, readAddress }: RequestContext,
): Click {
  const { headers, method } = request;
  const click = { event: "click", domain, short_code, original_url: target };
  const prefetched = /prefetch|prerender|preview/i.test(`${headers.get("sec-purpose")} ${headers.get("purpose")}`);
  const probe = method === "HEAD" ? "head" : prefetched ? "prefetch" : undefined;
  const user_agent = headers.get("user-agent")?.slice(0, USER_AGENT_CHARS_MAX) ?? "";
  const isBotVisit = probe !== undefined || isBot(user_agent);
  const isAnonymous = refusesTracking(headers);
  const agent = isBlank(user_agent) ? {} : { user_agent };
  const ids = isAnonymous ? undefined : findVisitorIds(query, headers.get("cookie"));
  const visitor = isAnonymous ? { anonymous: true as const } : { ip: readAddress(), ...agent };
  return { ...click, ...visitor, ...(ids && { ids }), bot: isBotVisit, ...(probe === undefined ? {} : { probe }) };
}

/**
 * True if the headers of a request say that its sender does not want to be tracked.
 * https://www.w3.org/TR/gpc/#the-sec-gpc-header-field-for-http-requests
 */
export function refusesTracking(headers: Headers): boolean {
  return headers.get("sec-gpc") === "1" || headers.get("dnt") === "1";
}

type ClickBody = Static<typeof trackingBody>;

/**
 * A click, with its link and IP address in normalized spelling. If `bot` is absent, the user agent decides whether the
 * click is a bot's.
 */
interface Click extends Omit<ClickBody, VisitorId | "ip" | "user_agent" | "referrer" | "anonymous"> {
  ip?: string;
  user_agent?: string;
  referrer?: string;
  ids?: GivenIds;
  readonly bot?: boolean;
  /** Present if the method or the headers show that a program made the request, such as a link preview. */
  readonly probe?: "head" | "prefetch";
  /** Present if the visitor asked not to be tracked. */
  anonymous?: true;
}

/**
 * Converts a posted click: normalizes the link and the IP address, and leaves out blank and null members about the
 * visitor; all of them if the visitor asked not to be tracked.
 */
export function normalizeClick(posted: ClickBody): Click {
  const { ip, user_agent, referrer, fbp, fbc, fbclid, oppref, sc_click_id, anonymous, ...body } = posted;
  const { domain, shortCode: short_code } = normalizeLink(body.domain, body.short_code);
  const click: Click = { ...body, domain, short_code };
  if (anonymous === true) return { ...click, anonymous };
  if (typeof ip === "string" && !isBlank(ip)) click.ip = canonicalAddress(ip);
  if (typeof user_agent === "string" && !isBlank(user_agent)) click.user_agent = user_agent;
  if (typeof referrer === "string" && !isBlank(referrer)) click.referrer = referrer;
  const ids = { fbp, fbc, fbclid, oppref, sc_click_id };
  if (VISITOR_IDS.some((name) => ids[name] != null)) click.ids = ids;
  return click;
}

/**
 * Creates the function that records a click. A click on a recipient's own link counts for the shared link, and the
 * recipient is recorded only if they permit tracking. `id`: id of the click's event; default a new one.
 */
function createClickRecorder(
  context: HttpContext,
): (click: Click, by: AppendedBy, id?: string) => ReturnType<EventIntake["append"]> {
  const { delivery, eventIntake, projector, placeVisitor } = context;
  /**
   * True if a message or an operator has given this link out, because visitors are counted only for such links. Also
   * true while these projections are still being folded, because a visitor cannot be added to the click later.
   */
  const isGivenOut = (link: string): boolean =>
    !projector.isFolded("links") ||
    !projector.isFolded("referrers") ||
    projector.state("links").shared.has(codeIn(link)) ||
    projector.state("referrers").links.has(link);
  return (click, by, id) => {
    const codes = listPersonalCodes(click.short_code);
    // While the links are still being folded, reading them throws. Only a click whose code may be a recipient's own
    // needs them; all other clicks are then recorded without.
    const isLookedUp = codes.length > 0 || projector.isFolded("links");
    const found = isLookedUp ? findOwnLink(projector.state("links"), click.short_code, codes) : undefined;
    const isTheirs = found !== undefined && toLinkHost(click.domain) === toLinkHost(found.domain);
    const named = found === undefined ? click : nameShared(click, found, isTheirs);
    const { bot = isBot(click.user_agent), probe, anonymous, domain, short_code, ip, user_agent } = named;
    const channels = probe !== undefined || (bot && context.config.bots === "record") ? [] : delivery.takeClicks;
    const isCounted = !bot && anonymous !== true;
    const link = linkKey(domain, short_code);
    const isKnown = ip !== undefined || user_agent !== undefined;
    const visitor =
      isCounted && isKnown && isGivenOut(link) ? placeVisitor(link, { ip, userAgent: user_agent }) : undefined;
    const isOwn = isCounted && isTheirs;
    const isPersonal = isOwn && isTracked(context, found.own);
    // After an untracked click, no conversion is reported to an ads network.
    const isUntracked = (isOwn && !isPersonal) || short_code === FORGOTTEN;
    return andThen(visitor, (place) => {
      const data = {
        ...toClick(named, bot, channels),
        ...(isUntracked ? { untracked: true as const } : {}),
        ...(place === undefined ? {} : { visitor: place }),
      };
      const newEvents: NewEvent[] = [{ type: "LinkClicked", data, ...(id && { id }) }];
      if (isPersonal) newEvents.push({ type: "PersonalLinkClicked", data: { code: found.own } });
      return eventIntake.append(newEvents, by, { stream: STREAMS.link(domain, short_code), isChecked: true });
    }) as ReturnType<EventIntake["append"]>;
  };
}

/**
 * Replaces a recipient's own code in a click by the code of the shared link. If the click came by the host of the short
 * links (`isTheirs`), it also gets the shared link's domain.
 */
function nameShared(click: Click, { own, domain, code, target }: NamedLink, isTheirs: boolean): Click {
  const original_url = click.original_url.includes(own) ? target : click.original_url;
  return { ...click, original_url, domain: isTheirs ? domain : click.domain, short_code: code };
}

interface NamedLink {
  readonly domain: string;
  readonly target: string;
  readonly own: string;
  readonly code: string;
}

/**
 * Converts a click to event data without a check, because the request's schema was checked. `normalized_url`: the URL
 * as a browser requests it (https://url.spec.whatwg.org), with spaces escaped and the host in Punycode.
 */
export function toClick({ ids, ...click }: Click, bot: boolean, channels: readonly ClickChannel[]) {
  const normalized_url = isHttpUrl(click.original_url) ? URL.parse(click.original_url)?.href : undefined;
  const differs = normalized_url !== undefined && normalized_url !== click.original_url;
  const kept = ids && keepVisitorIds(ids, channels);
  return { ...click, ...(differs ? { normalized_url } : {}), ...kept, bot, channels: [...channels] };
}

/** Matches a control character. Browsers put none into a URL, so it shows that text was cut or joined wrongly. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/**
 * True if a browser accepts the text as an http or https URL; faster than parsing it. Spaces before the URL are
 * allowed, because browsers remove them.
 */
function isHttpUrl(raw: string): boolean {
  return HTTP.test(raw) && !CONTROL_CHARACTER.test(raw) && URL.canParse(raw);
}

const HTTP = /^ *https?:/i;
