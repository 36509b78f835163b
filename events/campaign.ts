import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";
import { basis } from "./outreach.ts";

const closed = { additionalProperties: false };

/** Name of the campaign that the settings describe. No event names it. */
export const DEFAULT_CAMPAIGN = "default";

/** Sources of an audience, which the log knows of each recipient: an operator imported them, or they wrote first. */
export const audienceSource = Type.Union([Type.Literal("list"), Type.Literal("inbound")]);

/** Conditions on the recipients of a campaign. A recipient must fit all that are given; an absent one leaves out none. */
export const audience = Type.Object(
  {
    source: Type.Optional(audienceSource),
    basis: Type.Optional(basis),
    /** Conditions on the list's fields: `city=Berlin`, `city=Berlin|Hamburg` (one of them), or `city` (is set). */
    fields: Type.Optional(Type.Array(Type.String())),
    /** IANA names of time zones; the recipient's time zone must be one of them. */
    timezones: Type.Optional(Type.Array(Type.String())),
    /**
     * Shared link that the recipient must have clicked, by way of the personal link that replaced it in the message;
     * `any`: the recipient must have clicked some personal link.
     */
    clicked: Type.Optional(Type.String()),
    /** Campaign whose message the recipient got. */
    messaged: Type.Optional(Type.String()),
    /** Days that must have passed since that message. */
    days: Type.Optional(Type.Integer()),
    /** True if the recipient must have replied to that message; absent: they must not have. */
    replied: Type.Optional(Type.Literal(true)),
    /** True if that message must have failed; absent: it must have been sent. */
    failed: Type.Optional(Type.Literal(true)),
  },
  closed,
);
export type Audience = Static<typeof audience>;

const definition = {
  /** Name of the campaign: lower-case letters, digits and hyphens. It never changes. */
  name: Type.String(),
  /** Message template with all variants, as in MESSAGE_TEMPLATE. */
  text: Type.String(),
  audience,
  /**
   * Minimum number of days between the recipient's previous message, of any campaign, and one of this campaign; absent:
   * CONTACT_GAP_DAYS.
   */
  gap_days: Type.Optional(Type.Integer()),
  /** Topic that a consent may be for, instead of the campaign's name. */
  topic: Type.Optional(Type.String()),
};

/** Event: an operator created a campaign. */
export const CampaignCreated = defineEvent("CampaignCreated", Type.Object(definition, closed));

/** Event: an operator changed a campaign, which is as described from now on. */
export const CampaignChanged = defineEvent("CampaignChanged", Type.Object(definition, closed));

/** A campaign as its last event describes it. */
export type CampaignDefinition = Static<typeof CampaignCreated.data>;

/** Event: an operator ended a campaign. No run of it starts again. */
export const CampaignEnded = defineEvent("CampaignEnded", Type.Object({ name: Type.String() }, closed));
