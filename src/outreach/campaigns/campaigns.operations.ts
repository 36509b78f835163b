import { Type, type Static } from "@sinclair/typebox";
import { DEFAULT_CAMPAIGN } from "../../../events/campaign.ts";
import type { CampaignDefinition } from "../../../events/campaign.ts";
import { describeAudience } from "../../history/sentences/campaign.ts";
import { handle, type AppendDecision } from "../../log/decide-and-append.ts";
import { STREAMS } from "../../log/event-log.ts";
import { CAMPAIGN_NAME, count, oneOf, text, TEXT } from "../../platform/common-schemas.ts";
import { countInWords } from "../../platform/format-numbers-and-lists.ts";
import { operation, refusal, refuse, type GivenRefusal, type OperationCaller } from "../../platform/operation.ts";
import type { Reachlog } from "../../privacy/log-context-types.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  toMomentJson,
  type LogReader,
} from "../../projector/operation-states-as-of.ts";
import { MESSAGE_CHARS_MAX } from "../../template/template.ts";
import type { OutreachRules } from "../decide.ts";
import { rulesForCampaign } from "../run-rules.ts";
import { campaignJson, toCampaignJson, type CampaignJson } from "./campaign-json.ts";
import { audienceInput, LEFT_OUT_REASONS, readAudience } from "./audience.ts";
import {
  CAMPAIGNS_MAX,
  findAudienceFault,
  findCampaignFault,
  isUnchanged,
  listTextWarnings,
  NEW_CAMPAIGN,
  readGapAndTopic,
  type CampaignConfig,
  type CampaignStates,
} from "./check-campaign.ts";
import { countAudience, type AudienceCount } from "./count-audience.ts";

/** Maximum length of a campaign's text: all 26 variants, each as long as a message may be. */
const TEXT_CHARS_MAX = 26 * (MESSAGE_CHARS_MAX + 5);

const campaignName = (description: string) =>
  Type.String({ title: "name", pattern: CAMPAIGN_NAME, description, examples: ["spring"] });

const NAME = campaignName("1 to 40 lower-case letters, digits and hyphens");

const messageText = Type.String({
  title: "text",
  maxLength: TEXT_CHARS_MAX,
  pattern: TEXT,
  description: "The message with its variants, as MESSAGE_TEMPLATE has them",
  examples: ["Hi {{name|there}}, the new list is out"],
});

const more = {
  gap_days: Type.Optional(
    Type.Integer({
      title: "number",
      minimum: 0,
      maximum: 3_650,
      description: "Days since any earlier message, at least CONTACT_GAP_DAYS, the default; 0: the default",
    }),
  ),
  topic: Type.Optional(
    Type.String({
      title: "text",
      maxLength: 100,
      pattern: `^$|${TEXT}`,
      description: "Topic of the campaign; a consent for this topic covers it. Empty: none",
      examples: ["news"],
    }),
  ),
};

interface CampaignReader extends LogReader {
  readonly config: CampaignConfig;
  /** Returns the rules by which a run of `default` would decide. */
  commonRules(): Promise<OutreachRules>;
}

/** Refusal to change or end `default`. */
const default_campaign = refusal("conflict", "The settings describe the campaign default. Change MESSAGE_TEMPLATE.");

/** Refusal of a name that no campaign has. */
export const UNKNOWN_CAMPAIGN = refusal("not_found", "No campaign has this name.");

export const listCampaigns = operation({
  name: "campaigns list",
  id: "listCampaigns",
  tag: "outreach",
  access: ["session", "read"],
  summary: "List the campaigns, the oldest first.",
  description: "The campaign `default` is what the settings say, and comes first.",
  personalRead: false,
  input: asOfInput,
  output: { campaigns: Type.Array(campaignJson), ...asOf },
  async run({ at, config }: CampaignReader, { as_of }) {
    const found = await at(as_of, "campaigns");
    const { campaigns } = found.states;
    const all = [undefined, ...campaigns.named.values()];
    return { campaigns: all.map((one) => toCampaignJson(campaigns, config, one)), as_of: toMomentJson(found) };
  },
  table: ({ campaigns }) => ({
    head: ["campaign", "audience", "gap", "changed", "ended"],
    rows: campaigns.map(({ name, audience, gap_days, changed_at, ended_at }) => [
      name,
      describeAudience(audience),
      countInWords(gap_days, "day"),
      changed_at ?? "-",
      ended_at ?? "-",
    ]),
  }),
  text: ({ campaigns, as_of }) => `(${countInWords(campaigns.length, "campaign")}; ${describeMomentJson(as_of)})\n`,
  examples: ["", "--as-of 2026-11-21"],
});

export const showCampaign = operation({
  name: "campaigns show",
  id: "showCampaign",
  tag: "outreach",
  access: ["session", "read"],
  summary: "Show one campaign, with its text and audience.",
  description: "At an earlier moment, it is shown as it was then.",
  personalRead: false,
  input: { name: NAME, ...asOfInput },
  positional: ["name"],
  output: { campaign: campaignJson, ...asOf },
  refusals: { unknown_campaign: UNKNOWN_CAMPAIGN },
  async run({ at, config }: CampaignReader, { name, as_of }) {
    const found = await at(as_of, "campaigns");
    const { campaigns } = found.states;
    const campaign = campaigns.named.get(name);
    if (campaign === undefined && name !== DEFAULT_CAMPAIGN) return refuse("unknown_campaign", {});
    return { campaign: toCampaignJson(campaigns, config, campaign), as_of: toMomentJson(found) };
  },
  text: ({ campaign, as_of }) => `${describeCampaign(campaign)}(${describeMomentJson(as_of)})\n`,
  examples: ["spring"],
});

function describeCampaign({ name, text: message, audience, gap_days, topic, fault, ended_at }: CampaignJson): string {
  const end = ended_at === null ? "" : `, ended at ${ended_at}`;
  const about = topic === null ? "" : `; topic ${topic}`;
  const body = message === null ? "  MESSAGE_TEMPLATE is not set" : message.replaceAll(/^/gm, "  ");
  const gap = `${countInWords(gap_days, "day")} after any earlier message`;
  const why = fault === null ? "" : `no run of it can start: ${fault}\n`;
  return `${name}${end}: ${describeAudience(audience)}; ${gap}${about}\n${body}\n${why}`;
}

const counted = Type.Array(Type.Object({ reason: text("no_consent"), recipients: count }));

export const countCampaign = operation({
  name: "campaigns count",
  id: "countAudience",
  tag: "outreach",
  access: ["session", "read"],
  summary: "Count an audience, and say why others are left out.",
  description:
    "Counts the audience of a campaign, or the one that the request describes. Asks no network, and names no recipient.",
  personalRead: false,
  input: {
    name: Type.Optional(campaignName("Campaign whose audience is counted; default: default")),
    ...audienceInput,
  },
  positional: ["name"],
  output: {
    known: count,
    matching: Type.Integer({ minimum: 0, description: "Recipients in the audience." }),
    due: Type.Integer({
      minimum: 0,
      description: "Recipients in the audience who, by the log, may get a message now.",
    }),
    left_out: Type.Array(Type.Object({ reason: oneOf(...LEFT_OUT_REASONS), recipients: count }), {
      description: "Recipients outside the audience, by the first condition that leaves them out.",
    }),
    not_due: Type.Array(counted.items, { description: "Recipients in the audience who get no message now." }),
    ...asOf,
  },
  refusals: {
    unknown_campaign: UNKNOWN_CAMPAIGN,
    unusable_audience: refusal("invalid", "Nothing was counted: {why}.", "errors"),
  },
  isSlow: true,
  async run(context: CampaignReader, { name = DEFAULT_CAMPAIGN, ...given }) {
    const found = await context.at(undefined, "campaigns", "run", "quota", "contacts", "account", "links");
    const { states } = found;
    const campaign = states.campaigns.named.get(name);
    if (campaign === undefined && name !== DEFAULT_CAMPAIGN) return refuse("unknown_campaign", {});
    const own = readAudience(given);
    const fault = own && findAudienceFault(states, own);
    if (fault !== undefined) {
      const errors = [{ path: `/${fault.member}`, message: fault.why }];
      return refuse("unusable_audience", { why: fault.why }, { errors });
    }
    const counted = own ?? campaign?.audience ?? {};
    // An audience without a campaign is counted as that of a new campaign.
    const of = campaign ?? { ...NEW_CAMPAIGN, name: "" };
    const isDefault = own === undefined && campaign === undefined;
    const campaigns = { named: new Map(states.campaigns.named).set(of.name, { ...of, audience: counted }) };
    const common = await context.commonRules();
    const rules = isDefault ? common : rulesForCampaign(common, campaigns, of.name);
    const state = { ...states, campaigns, ms: context.clock() };
    const counts = await countAudience(state, counted, rules);
    return { ...counts, left_out: [...counts.left_out], not_due: [...counts.not_due], as_of: toMomentJson(found) };
  },
  text: describeCount,
  examples: ["spring", "--source list --fields city=Berlin"],
});

function describeCount({ known, matching, due, left_out, not_due, as_of }: AudienceCount & Static<Moment>): string {
  const rows = (all: AudienceCount["not_due"], what: string) =>
    all.map(({ reason, recipients }) => `  ${countInWords(recipients, "recipient")} ${what}: ${plainWords(reason)}\n`);
  const lines = [...rows(not_due, "not now"), ...rows(left_out, "left out")].join("");
  const sum = `${countInWords(matching, "recipient")} of ${known} in the audience, ${due} may get a message now`;
  return `${sum}\n${lines}(${describeMomentJson(as_of)})\n`;
}

type Moment = ReturnType<typeof Type.Object<typeof asOf>>;

function plainWords(reason: string): string {
  return reason.replaceAll("_", " ");
}

const saved = {
  campaign: campaignJson,
  notes: Type.Array(text('line 1: "[name]" is sent as it stands; a placeholder is {{name}}'), {
    description: "What may be a slip, and if the text offers no way to opt out.",
  }),
};

const unusable = refusal("invalid", "The campaign was not saved: {why}.", "errors");
const ended = refusal("conflict", "The campaign {name} has ended.");

export const createCampaign = operation({
  name: "campaigns create",
  id: "createCampaign",
  tag: "outreach",
  access: ["token", "admin"],
  summary: "Create a campaign: a text, and who gets it.",
  description:
    "Sends nothing: a run of the campaign does. Each recipient gets at most one message of a campaign. The conditions on its audience hold together; without any, it is for all recipients.",
  personalRead: false,
  input: { name: NAME, text: messageText, ...audienceInput, ...more },
  positional: ["name"],
  output: saved,
  refusals: {
    unusable_campaign: unusable,
    campaign_exists: refusal("conflict", "The name {name} is taken, also once its campaign has ended. Choose another."),
  },
  run: (context: Reachlog, { name, text: message, gap_days, topic, ...given }, caller) =>
    save(context, caller, { name, topic }, ({ campaigns }) => {
      if (name === DEFAULT_CAMPAIGN || campaigns.named.has(name)) return refuse("campaign_exists", { name });
      const own = readGapAndTopic(campaigns, { gap_days, topic }, { name });
      const definition = { name, text: message, audience: readAudience(given) ?? {}, ...own };
      return { type: "CampaignCreated", data: definition };
    }),
  text: (answer) => describeSaved("created", answer),
  examples: [
    'spring --text "Hi {{name|there}}" --fields city=Rome',
    'more --text "Still on?" --messaged spring --days 5',
  ],
});

export const changeCampaign = operation({
  name: "campaigns change",
  id: "changeCampaign",
  tag: "outreach",
  access: ["token", "admin"],
  summary: "Change a campaign's text, audience, gap or topic.",
  description:
    "What is not given stays; an empty topic or a gap of 0 removes it. An audience is replaced as a whole by the conditions that are given. Recipients who got the campaign's message get no second one. A run in progress goes by the change too. A repeat changes nothing.",
  personalRead: false,
  input: {
    name: NAME,
    text: Type.Optional(messageText),
    all: Type.Optional(Type.Boolean({ description: "Remove all conditions of the audience" })),
    ...audienceInput,
    ...more,
    changed_at: Type.Optional(
      Type.String({
        title: "time",
        maxLength: 40,
        description: "The campaign's changed_at as you know it: if it was changed since, nothing is saved",
        examples: ["2026-11-21T08:00:00.000Z"],
      }),
    ),
  },
  positional: ["name"],
  output: saved,
  refusals: {
    unknown_campaign: UNKNOWN_CAMPAIGN,
    default_campaign,
    campaign_ended: ended,
    campaign_changed: refusal(
      "conflict",
      "The campaign {name} was changed meanwhile, so nothing was saved. Read it, then change it again.",
    ),
    unusable_campaign: unusable,
  },
  run: (context: Reachlog, { name, text: message, all, gap_days, topic, changed_at = "", ...given }, caller) =>
    save(context, caller, { name, topic }, ({ campaigns }) => {
      const before = campaigns.named.get(name);
      if (name === DEFAULT_CAMPAIGN) return refuse("default_campaign", {});
      if (before === undefined) return refuse("unknown_campaign", {});
      if (before.ended_at !== null) return refuse("campaign_ended", { name });
      const audience = readAudience(given) ?? (all === true ? {} : before.audience);
      const own = readGapAndTopic(campaigns, { gap_days, topic }, before);
      const data = { name, text: message ?? before.text, audience, ...own };
      // The change is refused if the campaign was changed since the caller read it. A repeat of a change that was
      // already saved is not refused, because the campaign is as the caller wants it.
      const isStale = !["", before.changed_at].includes(changed_at) && !isUnchanged(campaigns, data);
      return isStale ? refuse("campaign_changed", { name }) : { type: "CampaignChanged", data };
    }),
  text: (answer) => describeSaved("changed", answer),
  examples: ['spring --text "Hi {{name|there}}"', "spring --all"],
});

interface Save {
  readonly type: "CampaignCreated" | "CampaignChanged";
  readonly data: CampaignDefinition;
}

/** Decides on the newest campaigns, and appends the definition if it has no fault. */
async function save<Name extends string>(
  context: Reachlog,
  metadata: OperationCaller,
  { name, topic }: { readonly name: string; readonly topic: string | undefined },
  decide: (states: CampaignStates) => Save | GivenRefusal<Name>,
) {
  const { projector, config } = context;
  const readStates = () => ({
    campaigns: projector.state("campaigns"),
    contacts: projector.state("contacts"),
    links: projector.state("links"),
  });
  const decideEvent = (): AppendDecision<GivenRefusal<Name | "unusable_campaign">> => {
    const states = readStates();
    const decided = decide(states);
    if ("refusal" in decided) return { refusal: decided };
    const isFull = decided.type === "CampaignCreated" && states.campaigns.named.size >= CAMPAIGNS_MAX;
    const fault = isFull
      ? { member: "name", why: `the log holds ${CAMPAIGNS_MAX} campaigns, and takes no more` }
      : findCampaignFault(states, config, decided.data);
    if (fault === undefined) return { events: isUnchanged(states.campaigns, decided.data) ? [] : [decided] };
    const errors = [{ path: `/${fault.member}`, message: fault.why }];
    return { refusal: refuse("unusable_campaign", { why: fault.why }, { errors }) };
  };
  const handled = await handle(context, STREAMS.outreach, decideEvent, { metadata });
  if ("refusal" in handled) return handled.refusal;
  const { campaigns } = readStates();
  const campaign = campaigns.named.get(name)!;
  return {
    campaign: toCampaignJson(campaigns, config, campaign),
    notes: listTextWarnings(readStates(), config, campaign, topic),
  };
}

function describeSaved(
  what: string,
  { campaign, notes }: { readonly campaign: CampaignJson; readonly notes: string[] },
) {
  const warnings = notes.map((note) => ` ${note}.`).join("");
  return `The campaign ${campaign.name} was ${what}, for ${describeAudience(campaign.audience)}.${warnings}`;
}

export const endCampaign = operation({
  name: "campaigns end",
  id: "endCampaign",
  tag: "outreach",
  access: ["token", "admin"],
  summary: "End a campaign, for good.",
  description: "No run of it starts again, and its name stays taken. A repeat changes nothing.",
  personalRead: false,
  input: { name: NAME },
  positional: ["name"],
  output: { campaign: campaignJson },
  refusals: { unknown_campaign: UNKNOWN_CAMPAIGN, default_campaign },
  confirm: ({ name }) => `End the campaign ${name} for good?`,
  async run(context: Reachlog, { name }, metadata) {
    const readCampaigns = () => context.projector.state("campaigns");
    if (name === DEFAULT_CAMPAIGN) return refuse("default_campaign", {});
    const decide = (): AppendDecision<"unknown_campaign"> => {
      const campaign = readCampaigns().named.get(name);
      if (campaign === undefined) return { refusal: "unknown_campaign" };
      return { events: campaign.ended_at === null ? [{ type: "CampaignEnded", data: { name } }] : [] };
    };
    const handled = await handle(context, STREAMS.outreach, decide, { metadata });
    if ("refusal" in handled) return refuse("unknown_campaign", {});
    return { campaign: toCampaignJson(readCampaigns(), context.config, readCampaigns().named.get(name)) };
  },
  text: ({ campaign: { name } }) => `The campaign ${name} has ended.`,
  examples: ["spring", "spring --yes"],
});
