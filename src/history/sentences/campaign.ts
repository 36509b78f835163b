import type { Audience, CampaignDefinition } from "../../../events/campaign.ts";
import { countInWords } from "../../platform/format-numbers-and-lists.ts";
import {
  campaign,
  other,
  plain,
  quote,
  say,
  type EventWords,
  type Sentence,
  type ShortWords,
} from "./sentence-parts.ts";

/** Words for events about campaigns. */
export const CAMPAIGN_WORDS = {
  CampaignCreated: (data) => say`the campaign ${campaign(data.name)} was created${sayDefinition(data)}`,
  CampaignChanged: (data) => say`the campaign ${campaign(data.name)} was changed${sayDefinition(data)}`,
  CampaignEnded: ({ name }) => say`the campaign ${campaign(name)} was ended; no run of it starts again`,
} satisfies Partial<EventWords>;

/** Short sentences about campaigns. */
export const SHORT_CAMPAIGN = {
  CampaignCreated: ({ name }, by) => say`${by} created the campaign ${campaign(name)}`,
  CampaignChanged: ({ name }, by) => say`${by} changed the campaign ${campaign(name)}`,
  CampaignEnded: ({ name }, by) => say`${by} ended the campaign ${campaign(name)}`,
} satisfies Partial<ShortWords>;

function sayDefinition({ text, audience, gap_days, topic }: CampaignDefinition): Sentence {
  const gap = gap_days === undefined ? "" : `, ${countInWords(gap_days, "day")} after any message before`;
  const about = topic === undefined ? [] : say`, topic ${other(topic)}`;
  return say` for ${other(describeAudience(audience))}${gap}${about}: ${quote(text)}`;
}

/** Describes an audience, such as `recipients of the list, city=Berlin`. */
export function describeAudience({ source, basis, fields = [], timezones, clicked, ...rest }: Audience): string {
  const { messaged, days, replied, failed } = rest;
  const got = failed === true ? "whose message failed in" : "who got a message of";
  const since = days === undefined ? "" : ` at least ${countInWords(days, "day")} ago`;
  const reply = replied === true ? " and replied" : " and did not reply";
  const conditions = [
    ...(source === undefined ? [] : [`from the source ${plain(source)}`]),
    ...(basis === undefined ? [] : [`with the basis ${plain(basis)}`]),
    ...fields.map((field) => (field.includes("=") ? `with ${field}` : `with ${field} set`)),
    ...(timezones === undefined ? [] : [`in the time zone ${timezones.join(" or ")}`]),
    ...(clicked === undefined ? [] : [`who clicked ${clicked === "any" ? "a link of their own" : clicked}`]),
    ...(messaged === undefined ? [] : [`${got} ${messaged}${since}${reply}`]),
  ];
  return conditions.length === 0 ? "all recipients" : `recipients ${conditions.join(", ")}`;
}
