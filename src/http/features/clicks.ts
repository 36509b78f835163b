import { isIP } from "node:net";
import { FormatRegistry, Type, type Static } from "@sinclair/typebox";
import { andThen } from "eventstore-lite";
import type { DataOf } from "../../../events/catalog.ts";
import type { ClickChannel } from "../../../events/channel.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { personalLinkOwner } from "../../../events/tracking.ts";
import { findContact } from "../../../projections/contacts.ts";
import { normalizeCode, normalizeDomain, normalizeLink, toLinkHost } from "../../../projections/link-address.ts";
import { codeIn, findLink, type SharedLink } from "../../../projections/links.ts";
import { linkKey } from "../../../projections/sent-links.ts";
import { REDIRECT_PATH } from "../../config/outreach.ts";
import { isBot } from "../../delivery/is-bot.ts";
import { STREAMS, type NewEvent } from "../../log/event-log.ts";
import { findOwnLink, isLinkHost, listPersonalCodes } from "../../links/own-links.ts";
import { canonicalAddress } from "../../platform/ip-address.ts";
import { errorFields } from "../../platform/logger.ts";
import { feature, type AppDeps } from "../deps.ts";
import { html, redirect, whole } from "../server/answer.ts";
import { jsonBody } from "../server/body.ts";
import { route, reply, textReply, type RequestContext } from "../server/endpoint.ts";
import { readAppendKey } from "../server/idempotency.ts";
import { problems } from "../server/problem.ts";
import type { AppendedBy, EventIntake } from "../server/event-intake.ts";
import { closedObject, id, orNull } from "../../platform/common-schemas.ts";

FormatRegistry.Set("ip-address-or-blank", (value) => isIP(value) !== 0 || isBlank(value));
FormatRegistry.Set("http-url", (value) => isHttpUrl(value));

/** Domain and short code become part of a stream's name, which holds no control character. */
const IN_A_STREAM_NAME = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";

const USER_AGENT_CHARS_MAX = 1_024;

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
  ip: Type.Optional(
    orNull(
      Type.String({
        format: "ip-address-or-blank",
        description: "The visitor's address, IPv4 or IPv6. Blank and null count as absent.",
        examples: ["192.0.2.1", "2001:db8::1"],
      }),
    ),
  ),
  user_agent: Type.Optional(
    orNull(
      Type.String({
        maxLength: USER_AGENT_CHARS_MAX,
        description: "Blank and null count as absent.",
        examples: ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"],
      }),
    ),
  ),
});

function isBlank(text: string): boolean {
  return text.trim() === "";
}

export function trackingEndpoints(deps: AppDeps) {
  const recordClick = createClickRecorder(deps);
  return feature("tracking", "/api/tracking").post(
    "/event",
    async ({ body, call, status }) => {
      const click = normalizeClick(body);
      const isAllowed = call.links?.some((domain) => normalizeDomain(domain) === click.domain) ?? true;
      if (!isAllowed) throw problems.otherDomain(call.links ?? []);
      const key = readAppendKey(call, body);
      const codes = listPersonalCodes(click.short_code);
      const hidden = codes.length === 0 ? click : await hideForgotten(deps, click, codes);
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

/** Recorded in place of a forgotten recipient's code, which would set their clicks apart from others'. */
const FORGOTTEN = "forgotten";

/**
 * Returns the click as it may be recorded. Its code is hidden if the log knows none of `codes`, unless they are another
 * shortener's.
 */
async function hideForgotten(deps: AppDeps, click: Click, codes: readonly string[]): Promise<Click> {
  for (const code of codes) {
    const found = findLink(deps.projector.state("links"), code) ?? (await findLinkAtHead(deps, code));
    if (found !== undefined) return click;
  }
  return isLinkHost(deps.projector.state("links"), click.domain) ? { ...click, short_code: FORGOTTEN } : click;
}

/** Finds a link that another instance may just have sent or added. */
async function findLinkAtHead({ projector, eventLog }: AppDeps, code: string): Promise<SharedLink | undefined> {
  await projector.until((await eventLog.store.head()).position);
  return findLink(projector.state("links"), code);
}

/** `GET /l/CODE`, for operators without a shortener. It redirects only to targets in the log. */
export function redirectEndpoints(deps: AppDeps) {
  const recordClick = createClickRecorder(deps);
  const { projector, logger } = deps;
  return feature("redirects", REDIRECT_PATH).get(
    "/:code",
    async ({ params, call }) => {
      const { redirects } = deps.config.links;
      if (redirects === undefined) return NO_LINK;
      const code = normalizeCode(params.code);
      const link = findLink(projector.state("links"), code) ?? (await findLinkAtHead(deps, code));
      if (link === undefined) return NO_LINK;
      const recorded = recordClick(toVisit(code, link, call), { metadata: call.metadata, key: undefined });
      if (redirects === "before") await recorded;
      else recorded.catch((fault: unknown) => logger.error("a click was not recorded", errorFields(fault)));
      return whole(redirect(302, link.target, { "cache-control": "no-store" }));
    },
    route("followLink", "tracking", "open", {
      response: {
        302: textReply("Redirects to the target that the log knows for this code.", { headers: ["location"] }),
        404: textReply("No link has this code.", { mediaType: "text/html" }),
      },
      summary: "Leads to the target of a short link, and records the click.",
      description:
        "Only while REDIRECTS is on. The code alone decides the target. HEAD and prefetch requests are recorded apart and do not count as clicks; Sec-GPC and DNT make a click anonymous.",
      parameters: { code: "The code of the link." },
      problems: ["notFound"],
    }),
  );
}

/** For visitors, so it does not mention the console. */
const NO_LINK = whole(
  html(404, '<!doctype html><html lang="en"><title>Link not found</title><p>There is no such link.</p></html>\n'),
);

function toVisit(short_code: string, { domain, target }: SharedLink, { request, readAddress }: RequestContext): Click {
  const { headers, method } = request;
  const click = { event: "click", domain, short_code, original_url: target };
  const prefetched = /prefetch|prerender|preview/i.test(`${headers.get("sec-purpose")} ${headers.get("purpose")}`);
  const probe = method === "HEAD" ? "head" : prefetched ? "prefetch" : undefined;
  const user_agent = headers.get("user-agent")?.slice(0, USER_AGENT_CHARS_MAX) ?? "";
  const isBotVisit = probe !== undefined || isBot(user_agent);
  // https://www.w3.org/TR/gpc/#the-sec-gpc-header-field-for-http-requests
  const isAnonymous = headers.get("sec-gpc") === "1" || headers.get("dnt") === "1";
  const agent = isBlank(user_agent) ? {} : { user_agent };
  const visitor = isAnonymous ? { anonymous: true as const } : { ip: readAddress(), ...agent };
  return { ...click, ...visitor, bot: isBotVisit, ...(probe === undefined ? {} : { probe }) };
}

type ClickBody = Static<typeof trackingBody>;

/** A click in normal spelling. `bot` defaults to what the user agent says. */
type Click = Omit<ClickBody, "ip" | "user_agent"> &
  Partial<Pick<DataOf<"LinkClicked">, "ip" | "user_agent" | "bot" | "probe" | "anonymous">>;

/**
 * Puts the link and the IP address into normal spelling. Leaves out an IP address or user agent that is blank or null.
 */
export function normalizeClick({ ip, user_agent, ...body }: ClickBody): Click {
  const { domain, shortCode: short_code } = normalizeLink(body.domain, body.short_code);
  const click: Click = { ...body, domain, short_code };
  if (typeof ip === "string" && !isBlank(ip)) click.ip = canonicalAddress(ip);
  if (typeof user_agent === "string" && !isBlank(user_agent)) click.user_agent = user_agent;
  return click;
}

/**
 * Records clicks, for the redirect and for another shortener. A click on a recipient's own link counts for the shared
 * one. Whose it was is recorded only while they grant tracking.
 */
function createClickRecorder(deps: AppDeps): (click: Click, by: AppendedBy) => ReturnType<EventIntake["append"]> {
  const { delivery, eventIntake, projector, encryptedLog, placeVisitor } = deps;
  const isTracked = (code: string, recipient: Recipient): boolean =>
    findContact(projector.state("contacts"), recipient)?.tracking.status === "granted" &&
    !encryptedLog.keyring.isForgotten(personalLinkOwner(code));
  /**
   * True if a message or an operator gave the link out: visitors are counted for those links alone. Also true until the
   * projections are folded, since no later event could add the visitor.
   */
  const isGivenOut = (link: string): boolean =>
    !projector.isFolded("links") ||
    !projector.isFolded("referrers") ||
    projector.state("links").shared.has(codeIn(link)) ||
    projector.state("referrers").links.has(link);
  return (click, by) => {
    const codes = listPersonalCodes(click.short_code);
    // Until the links are folded, only a click on a recipient's own link needs the projection. All others are recorded
    // without it.
    const isLookedUp = codes.length > 0 || projector.isFolded("links");
    const found = isLookedUp ? findOwnLink(projector.state("links"), click.short_code, codes) : undefined;
    const isTheirs = found !== undefined && toLinkHost(click.domain) === toLinkHost(found.domain);
    const named = found === undefined ? click : nameShared(click, found, isTheirs);
    const { bot = isBot(click.user_agent), probe, anonymous, domain, short_code, ip, user_agent } = named;
    const channels = probe !== undefined || (bot && deps.config.bots === "record") ? [] : delivery.takeClicks;
    const isCounted = !bot && anonymous !== true;
    const link = linkKey(domain, short_code);
    const isKnown = ip !== undefined || user_agent !== undefined;
    const visitor =
      isCounted && isKnown && isGivenOut(link) ? placeVisitor(link, { ip, userAgent: user_agent }) : undefined;
    return andThen(visitor, (place) => {
      const data = { ...toClick(named, bot, channels), ...(place === undefined ? {} : { visitor: place }) };
      const newEvents: NewEvent[] = [{ type: "LinkClicked", data }];
      if (isCounted && isTheirs && isTracked(found.own, found.recipient))
        newEvents.push({ type: "PersonalLinkClicked", data: { code: found.own } });
      return eventIntake.append(newEvents, by, { stream: STREAMS.link(domain, short_code), isChecked: true });
    }) as ReturnType<EventIntake["append"]>;
  };
}

/**
 * Returns the click without the code of a recipient's own link. It counts for the shared link only if it came by that
 * link's host.
 */
function nameShared(click: Click, { own, domain, code, target }: NamedLink, isTheirs: boolean): Click {
  const original_url = click.original_url.includes(own) ? target : click.original_url;
  return { ...click, original_url, domain: isTheirs ? domain : click.domain, short_code: code };
}

type NamedLink = Pick<SharedLink, "domain" | "target"> & { readonly own: string; readonly code: string };

/**
 * Returns a click's event data, unchecked: a body that fits its schema gives data that fits the event's.
 * `normalized_url` is what a browser requests (https://url.spec.whatwg.org): raw spaces escaped, the host in Punycode.
 */
export function toClick(click: Click, bot: boolean, channels: readonly ClickChannel[]) {
  const normalized_url = isHttpUrl(click.original_url) ? URL.parse(click.original_url)?.href : undefined;
  const differs = normalized_url !== undefined && normalized_url !== click.original_url;
  return { ...click, ...(differs ? { normalized_url } : {}), bot, channels: [...channels] };
}

/** No browser puts one into a URL. They come from text that was cut or joined wrongly. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/**
 * True if a browser accepts it as an http or https URL. Cheaper than building the URL. A browser strips spaces before
 * it, and nothing else that is accepted here.
 */
function isHttpUrl(raw: string): boolean {
  return HTTP.test(raw) && !CONTROL_CHARACTER.test(raw) && URL.canParse(raw);
}

const HTTP = /^ *https?:/i;
