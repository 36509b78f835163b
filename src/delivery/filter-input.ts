import { Type } from "@sinclair/typebox";
import { CHANNELS, webhookChannel, type ChannelName } from "../../events/channel.ts";
import { LINK_CHARACTERS_MAX } from "../../projections/sent-links.ts";
import type { Config } from "../config/config.ts";
import { oneOf } from "../platform/common-schemas.ts";
import { refusal, refuse } from "../platform/operation.ts";
import { ServiceError } from "../platform/service-error.ts";
import { MOMENT_CHARACTERS_MAX } from "../projector/log-reader.ts";
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

/** One of these words, or a text that {@link readFilter} refuses with a sentence. */
const wordOrText = (title: string, description: string, words: readonly string[]) =>
  Type.Optional(Type.Unsafe<string>(Type.Union([...oneOf(...words).anyOf, Type.String()], { title, description })));

/** The filter of a list. */
export const filterInput = {
  channel: wordOrText("name", WORDS.channel, CHANNELS),
  status: wordOrText("name", `${WORDS.status}; default: dead`, STATUSES),
  error: wordOrText("class", WORDS.error, ERROR_NAMES),
  ...rangeInput,
};

/** A channel: one that each log has, or a webhook by its name. */
export const channelInput = (description: string) =>
  Type.Unsafe<ChannelName>(
    Type.Union([...oneOf(...CHANNELS).anyOf, { ...webhookChannel, examples: ["webhook-crm"] }], {
      title: "name",
      description,
    }),
  );

/** The filter of a decision, which has its own status. */
export const decisionFilterInput = {
  channel: Type.Optional(channelInput(WORDS.channel)),
  error: Type.Optional(Type.String({ title: "class", pattern: ERROR, description: WORDS.error, examples: ["5xx"] })),
  ...rangeInput,
};

export const filterRefusals = { unusable_filter: refusal("usage", "The filter cannot be used: {why}.") };

/** The part of an operation's context that a filter needs: its days are in this time zone. */
export interface FilterContext {
  readonly config: { readonly outreach: Pick<Config["outreach"], "timezone"> };
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
