import { Type } from "@sinclair/typebox";
import { CHANNEL_NAMES, webhookChannel, type ChannelName } from "../../events/channel-and-lane-names.ts";
import { LINK_CHARACTERS_MAX } from "../../projections/link-keys-and-text-links.ts";
import { oneOf } from "../platform/common-schemas.ts";
import { refusal, refuse } from "../platform/operation.ts";
import { ServiceError } from "../platform/service-error.ts";
import { MOMENT_CHARACTERS_MAX } from "../projector/operation-states-as-of.ts";
import {
  DISPATCH_FILTER_WORDS as WORDS,
  ERROR,
  ERROR_NAMES,
  parseDispatchFilter,
  STATUSES,
  type FilterTexts,
} from "./dead-letter-filter.ts";

const moment = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ title: "moment", maxLength: MOMENT_CHARACTERS_MAX, description, examples }));

const rangeInput = {
  link: Type.Optional(
    Type.String({
      title: "link",
      maxLength: LINK_CHARACTERS_MAX,
      description: WORDS.link,
      examples: ["go.example/welcome", "go.example"],
    }),
  ),
  from: moment(WORDS.from, "2026-11-20"),
  to: moment(WORDS.to, "2026-11-20T10:15:00Z"),
};

/**
 * Schema of a member of the filter: one of `words`, or another text. {@link readFilter} checks such a text and says
 * what is wrong with it.
 */
const wordOrText = (title: string, description: string, words: readonly string[]) =>
  Type.Optional(Type.Unsafe<string>(Type.Union([...oneOf(...words).anyOf, Type.String()], { title, description })));

/** Input schema for the filter of a list of dead letters. */
export const filterInput = {
  channel: wordOrText("name", WORDS.channel, CHANNEL_NAMES),
  status: wordOrText("name", `${WORDS.status}; default: dead`, STATUSES),
  error: wordOrText("class", WORDS.error, ERROR_NAMES),
  ...rangeInput,
};

/** Input schema for a channel: one that each log has, or a webhook by its name. */
export const channelInput = (description: string) =>
  Type.Unsafe<ChannelName>(
    Type.Union([...oneOf(...CHANNEL_NAMES).anyOf, { ...webhookChannel, examples: ["webhook-crm"] }], {
      title: "name",
      description,
    }),
  );

/**
 * Input schema for the filter that selects the dead letters of a decision. It has no status, because the operation
 * decides that.
 */
export const decisionFilterInput = {
  channel: Type.Optional(channelInput(WORDS.channel)),
  error: Type.Optional(Type.String({ title: "class", pattern: ERROR, description: WORDS.error, examples: ["5xx"] })),
  ...rangeInput,
};

export const filterRefusals = { unusable_filter: refusal("usage", "The filter cannot be used: {why}.") };

/** Part of an operation's context that a filter needs: the time zone of its days. */
export interface FilterContext {
  readonly config: { readonly outreach: { readonly timezone: string } };
}

/** Returns the filter, or the refusal that says what is wrong with its texts. `known`: the channels of the log. */
export function readFilter(texts: FilterTexts, { config }: FilterContext, known: readonly ChannelName[]) {
  try {
    const filter = parseDispatchFilter(texts, config.outreach.timezone);
    if (filter.channel === undefined || known.includes(filter.channel)) return filter;
    return refuse("unusable_filter", { why: `the log has no channel ${filter.channel}: ${known.join(", ")}` });
  } catch (fault) {
    if (!(fault instanceof ServiceError && fault.kind === "usage")) throw fault;
    return refuse("unusable_filter", { why: fault.message });
  }
}
