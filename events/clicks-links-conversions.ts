import { Type } from "@sinclair/typebox";
import { clickChannel } from "./channel-and-lane-names.ts";
import { defineEvent } from "./define-event.ts";
import { ERASED, withPersonal } from "./declare-personal-members.ts";

/** Identifiers that ads networks give a visitor: cookies of their scripts, and the ids of clicks on their ads. */
const visitorIds = {
  fbp: Type.Optional(Type.String()),
  fbc: Type.Optional(Type.String()),
  fbclid: Type.Optional(Type.String()),
  oppref: Type.Optional(Type.String()),
  sc_click_id: Type.Optional(Type.String()),
};

export type VisitorId = keyof typeof visitorIds;
export type VisitorIds = Readonly<Partial<Record<VisitorId, string>>>;

export const VISITOR_IDS = Object.keys(visitorIds) as readonly VisitorId[];

const linkClicked = defineEvent(
  "LinkClicked",
  Type.Object(
    {
      event: Type.String(),
      domain: Type.String(),
      short_code: Type.String(),
      original_url: Type.String(),
      /** `original_url` as a browser normalizes it; absent if it is the same. */
      normalized_url: Type.Optional(Type.String()),
      ip: Type.Optional(Type.String()),
      user_agent: Type.Optional(Type.String()),
      /** Address of the page that led the visitor to the link, as the caller posted it. */
      referrer: Type.Optional(Type.String()),
      ...visitorIds,
      bot: Type.Boolean(),
      /** Method that shows that no person made the request: HEAD or a prefetch. Such a click counts as a bot's. */
      probe: Type.Optional(Type.Union([Type.Literal("head"), Type.Literal("prefetch")])),
      /**
       * True if the visitor asked not to be tracked (Sec-GPC or DNT), so that nothing about the visitor is recorded.
       */
      anonymous: Type.Optional(Type.Literal(true)),
      /** True if the click came by a personal link whose recipient no longer grants tracking. It does not say whose. */
      untracked: Type.Optional(Type.Literal(true)),
      /**
       * Number derived from the visitor's hash, which updates the estimate of the link's visitors on that day. It does
       * not identify the visitor.
       */
      visitor: Type.Optional(Type.Integer()),
      /** Channels that were configured when the click was accepted; the click is dispatched to exactly these. */
      channels: Type.Array(clickChannel),
    },
    { additionalProperties: false },
  ),
);

export const LinkClicked = withPersonal(linkClicked, {
  owner: ({ ip }: { ip?: string }) => ({ kind: "click", ip }),
  members: ["ip", "user_agent", "referrer", ...VISITOR_IDS],
  shortened: { original_url: withoutVisitor, normalized_url: withoutVisitor },
  inFolds: false,
  erased: () => ({ ip: ERASED, user_agent: ERASED }),
});

/**
 * Returns the address of a page without the parts that may identify its visitor: credentials, query and fragment. Like
 * a browser, it accepts leading spaces and any number of slashes in either direction.
 */
function withoutVisitor(url: string): string {
  const end = url.search(/[?#]/);
  const address = end === -1 ? url : url.slice(0, end);
  return address.includes("@") ? address.replace(/^( *[a-z]+:[\\/]*)[^\\/]*@/i, "$1") : address;
}

/**
 * Event: a short link was added; the redirect answers `code` with `target`. `template`, `template_name` and `variant`
 * are those of the messages that contain the link, absent if an operator added it.
 */
export const LinkAdded = defineEvent(
  "LinkAdded",
  Type.Object(
    {
      domain: Type.String(),
      code: Type.String(),
      target: Type.String(),
      template: Type.Optional(Type.String()),
      template_name: Type.Optional(Type.String()),
      variant: Type.Optional(Type.String()),
    },
    { additionalProperties: false },
  ),
);

/**
 * Event: the click appended right before came by a recipient's own link. A separate encryption key, whose ciphertext
 * does not say whose it is, lets a recipient's clicks be erased while their other history is kept.
 */
export const PersonalLinkClicked = withPersonal(
  defineEvent("PersonalLinkClicked", Type.Object({ code: Type.String() }, { additionalProperties: false })),
  {
    owner: ({ code }: { code: string }) => personalLinkOwner(code),
    members: ["code"],
    inFolds: true,
    erased: () => ({ code: ERASED }),
  },
);

/** The owner whose keys encrypt the clicks on a personal link. */
export function personalLinkOwner(code: string) {
  return { kind: "person", id: `link:${code}`, isUnlinkable: true } as const;
}

const conversion = Type.Object(
  {
    name: Type.String(),
    /** Value in the currency's smallest unit, such as cents; absent if the conversion has none. Negative if reversed. */
    value: Type.Optional(Type.Integer()),
    /** ISO 4217 code; present if `value` is. */
    currency: Type.Optional(Type.String()),
    occurred_at: Type.String(),
    /** Domain of the link that the caller named, or else of the link of the click; absent if there is none. */
    domain: Type.Optional(Type.String()),
    short_code: Type.Optional(Type.String()),
    /** Position of the click that the conversion is attributed to; absent if it is unattributed. */
    click: Type.Optional(Type.Integer()),
    /** True if the visitor or the recipient does not want to be tracked. */
    anonymous: Type.Optional(Type.Literal(true)),
    /** Channels to which the conversion is dispatched. */
    channels: Type.Array(clickChannel),
    /** The caller's own id of the conversion, such as an order number. */
    external_id: Type.Optional(Type.String()),
    /**
     * Code of the recipient's own link through which the visitor came; present only if the recipient grants tracking.
     */
    code: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

/**
 * Personal data of a conversion. If it has a `code`, it is erased with the clicks on that recipient's own link;
 * otherwise its key expires with all keys of its day.
 */
const personalConversion = {
  owner: ({ code }: { code?: string }) =>
    code === undefined ? ({ kind: "message" } as const) : personalLinkOwner(code),
  members: ["external_id", "code"],
  inFolds: true,
  erased: () => ({ external_id: ERASED, code: ERASED }),
} as const;

/** Event: a visitor did what the operator wants, such as a purchase. */
export const ConversionRecorded = withPersonal(defineEvent("ConversionRecorded", conversion), personalConversion);

/**
 * Event: a conversion was reversed in part or whole, such as by a refund. No ads network is told, because none accepts
 * reversals.
 */
export const ConversionReversed = withPersonal(defineEvent("ConversionReversed", conversion), personalConversion);
