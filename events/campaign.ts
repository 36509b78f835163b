import { Type, type Static } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";
import { basis } from "./outreach.ts";

const closed = { additionalProperties: false };

/** Name of the campaign that the settings describe. Operators create all others. Most events leave this name out. */
export const DEFAULT_CAMPAIGN = "default";

/** How the log knows a recipient: an operator imported them (`list`), or they wrote to us first (`inbound`). */
export const audienceSource = Type.Union([Type.Literal("list"), Type.Literal("inbound")]);

/** Conditions on the recipients of a campaign. A recipient must meet every condition that is present. */
export const audience = Type.Object(
  {
    source: Type.Optional(audienceSource),
    basis: Type.Optional(basis),
    /** Conditions on the list's fields: `city=Berlin`, `city=Berlin|Hamburg` (one of them), or `city` (is set). */
    fields: Type.Optional(Type.Array(Type.String())),
    /** IANA names of time zones; the recipient's time zone must be one of them. */
    timezones: Type.Optional(Type.Array(Type.String())),
    /**
     * Shared link that the recipient must have clicked. The click is known from the personal link that replaced the
     * shared one in the recipient's message. `any`: a click on any personal link is enough.
     */
    clicked: Type.Optional(Type.String()),
    /**
     * Campaign that must have sent the recipient a message. `days`, `replied` and `failed` are conditions on this
     * message.
     */
    messaged: Type.Optional(Type.String()),
    /** Days that must have passed since the message of the campaign in `messaged`. */
    days: Type.Optional(Type.Integer()),
    /**
     * True if the recipient must have replied to the message of the campaign in `messaged`; absent if they must not
     * have replied.
     */
    replied: Type.Optional(Type.Literal(true)),
    /**
     * Condition on the message that the campaign in `messaged` prepared for the recipient. True: its sending must have
     * failed. Absent: it must have been sent.
     */
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
  /**
   * Topic of the campaign. A consent that names this topic covers the campaign, like one that names the campaign
   * itself.
   */
  topic: Type.Optional(Type.String()),
};

/** Event: an operator created a campaign. */
export const CampaignCreated = defineEvent("CampaignCreated", Type.Object(definition, closed));

/** Event: an operator changed a campaign. The event holds the complete new definition. */
export const CampaignChanged = defineEvent("CampaignChanged", Type.Object(definition, closed));

/** A campaign as its last event describes it. */
export type CampaignDefinition = Static<typeof CampaignCreated.data>;

/** Event: an operator ended a campaign. No run of it starts again. */
export const CampaignEnded = defineEvent("CampaignEnded", Type.Object({ name: Type.String() }, closed));
