import { Type, type Static } from "@sinclair/typebox";
import { basis, skipReason } from "../../events/outreach.ts";
import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import type { Config } from "../config/config.ts";
import { formatRecipient } from "../history/sentences/sentence-parts.ts";
import { count, named, oneOf, orNull, text } from "../platform/common-schemas.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { operation, refusal, refuse } from "../platform/operation.ts";
import { usageError } from "../platform/service-error.ts";
import { discloseRecipient } from "../privacy/record-personal-data-read.ts";
import type { Contacts } from "../../projections/contact-state.ts";
import { asOf, describeMomentJson, toMomentJson, type LogReader } from "../projector/operation-states-as-of.ts";
import { UNKNOWN_RECIPIENT } from "../recipients/recipients.operations.ts";
import { findNamed, recipientAnswer, recipientName } from "../recipients/resolve-recipient.ts";
import { warnOfSlips } from "../template/warn-of-likely-mistakes.ts";
import { showUnseen } from "../template/show-invisible-characters.ts";
import { warnOfMissingFields } from "./campaigns/check-campaign.ts";
import { describeOtherConsents, joinDetail } from "./campaigns/recipient-refusal-rules.ts";
import { UNKNOWN_CAMPAIGN } from "./campaigns/campaigns.operations.ts";
import type { OutreachRules } from "./decide.ts";
import { STAND_INS, survey, type Survey } from "./judge-recipients.ts";
import { rulesForCampaign } from "./run-rules.ts";
import { describeWindow } from "./send-window.ts";
import { warnOfNoOptOut } from "./detect-opt-out-replies.ts";

/** Default number of recipients named in a preview for each skip reason: as many as fit a screen. */
const NAMED = 5;
const NAMED_MAX = 100;

interface PreviewReader extends LogReader {
  readonly config: Config;
  /** Returns the rules by which a run of `default` would decide. */
  commonRules(): Promise<OutreachRules>;
  readonly clock: () => number;
}

const READ = ["run", "quota", "contacts", "account", "links", "campaigns"] as const;

const variantJson = Type.Object({
  variant: text("A"),
  recipients: Type.Integer({ minimum: 0, description: "Recipients who can get it and whose id is known." }),
  recipient: orNull(recipientAnswer),
  text: Type.Union([text("Hi Sara"), Type.Null()], { description: "As that recipient would read it." }),
  missing: Type.Array(text("company"), { description: "Fields that this recipient lacks." }),
  too_long: orNull(Type.Integer({ minimum: 0, description: "The text's characters, if X refuses so many." })),
});

const skippedJson = Type.Object({ reason: skipReason, count, recipients: Type.Array(recipientAnswer) });

const requestedJson = named(
  "RequestedRecipient",
  Type.Object({
    verdict: oneOf("ask", "pass", "skip"),
    reason: orNull(Type.Union([...skipReason.anyOf, Type.Literal("held"), Type.Literal("failed_before")])),
    detail: orNull(text("the date of the consent is missing")),
    variant: orNull(text("A")),
  }),
);

const previewJson = Type.Object({
  template: text("6f0e8b2a4c11"),
  template_name: orNull(text("Autumn invite")),
  variants: Type.Array(variantJson),
  undecided: Type.Integer({ minimum: 0, description: "Known by handle only: the id decides the variant." }),
  failed: Type.Integer({ minimum: 0, description: "Their message failed, and no retry is allowed." }),
  held: Type.Integer({ minimum: 0, description: "Their reply waits for a decision." }),
  skips: Type.Array(skippedJson),
  requested: Type.Union([requestedJson, Type.Null()], { description: "Null if no recipient was named." }),
  notes: Type.Array(text("[name] is filled in from X when the message is sent")),
  ...asOf,
});
type Preview = Static<typeof previewJson>;

export const previewOutreach = operation({
  name: "outreach preview",
  id: "previewOutreach",
  tag: "outreach",
  access: ["session", "read"],
  summary: "Show the configured message, and who would get which variant.",
  description:
    "Asks no network. Shows each variant as one recipient would read it, how many imported recipients get which variant, and who would be skipped and why. A dry run also shows what only X knows.",
  personalRead: "preview",
  input: {
    campaign: Type.Optional(
      Type.String({
        title: "name",
        maxLength: 40,
        description: "The campaign whose message is shown; default: default",
      }),
    ),
    recipient: Type.Optional({
      ...recipientName,
      description:
        "The recipient whose text is shown; default: the first one who can get it. Others are not named then",
    }),
    limit: Type.Optional(
      Type.Integer({
        title: "number",
        minimum: 0,
        maximum: NAMED_MAX,
        description: `Recipients named for each skip reason; default: ${NAMED}`,
      }),
    ),
    variant: Type.Optional(
      Type.String({ title: "letter", pattern: "^[A-Z]$", description: "Only recipients who get this variant" }),
    ),
    basis: Type.Optional(Type.Union(basis.anyOf, { title: "basis", description: "Only recipients with this basis" })),
  },
  positional: ["recipient"],
  output: previewJson.properties,
  refusals: {
    unknown_recipient: UNKNOWN_RECIPIENT,
    unknown_campaign: UNKNOWN_CAMPAIGN,
    unusable_text: refusal("configuration", "The settings cannot send the campaign's text: {why}."),
    no_message_template: refusal("configuration", "MESSAGE_TEMPLATE is not set."),
  },
  async run(
    { at, clock, config, commonRules }: PreviewReader,
    { campaign = DEFAULT_CAMPAIGN, recipient, limit = NAMED, ...selection },
  ) {
    const isDefault = campaign === DEFAULT_CAMPAIGN;
    if (isDefault && config.outreach.template === undefined) return "no_message_template";
    const common = await commonRules();
    for (;;) {
      const found = await at(undefined, ...READ);
      const { campaigns } = found.states;
      if (!isDefault && !campaigns.named.has(campaign)) return "unknown_campaign";
      const rules = rulesForCampaign(common, campaigns, campaign);
      const { template, textFault } = rules;
      if (textFault !== undefined) return refuse("unusable_text", { why: textFault });
      const labels = template.variants.map(({ label }) => label);
      if (selection.variant !== undefined && !labels.includes(selection.variant))
        throw usageError(`the variant is not one of the template's variants: ${labels.join(", ")}`);
      const contact = recipient === undefined ? undefined : findNamed(found.states.contacts, recipient);
      if (recipient !== undefined && contact === undefined) return "unknown_recipient";
      // If the caller asks about one recipient, the audit records a read of that recipient's data only. So the preview
      // then names no other recipient.
      const named = contact === undefined ? limit : 0;
      const surveyed = await survey({ ...found.states, ms: clock() }, rules, {
        recipient: contact,
        limit: named,
        selection: omitUndefined(selection),
      });
      const after = await at(undefined, ...READ);
      // If an erasure or a rebuild replaced a projection while recipients were judged, the counting starts over.
      if (READ.some((name) => after.states[name] !== found.states[name])) continue;
      const notes = writeNotes(config, rules, { found: surveyed, contacts: found.states.contacts, ms: clock() });
      return { ...toPreviewJson(surveyed, describeOtherConsents(contact, rules)), notes, as_of: toMomentJson(after) };
    }
  },
  discloses({ variants: [variant], requested }) {
    return requested === null ? {} : discloseRecipient(variant?.recipient ?? undefined);
  },
  isSlow: true,
  text: describePreview,
  examples: ["", "sara_sells", "--basis opt_in --json"],
});

function toPreviewJson(
  { variants, skips, requested, ...counts }: Survey,
  otherConsents: string | undefined,
): Omit<Preview, "notes" | "as_of"> {
  return {
    ...counts,
    variants: variants.map(({ variant, recipients, sample }) => ({
      variant,
      recipients,
      recipient: sample?.recipient ?? null,
      text: sample?.rendered.ok === true ? sample.rendered.text : null,
      missing: sample === undefined || sample.rendered.ok ? [] : [...sample.rendered.missing],
      too_long: sample?.rendered.ok === false && sample.rendered.reason === "too_long" ? sample.rendered.length : null,
    })),
    skips: [...skips].map(([reason, skipped]) => ({ reason, ...skipped })),
    requested: requested === undefined ? null : toRequestedJson(requested, otherConsents),
  };
}

function toRequestedJson(
  { verdict: found, ...requested }: NonNullable<Survey["requested"]>,
  otherConsents: string | undefined,
): Static<typeof requestedJson> {
  const { variant = null } = requested;
  if (found.verdict === "ask") return { verdict: found.verdict, reason: null, detail: null, variant };
  const own = "detail" in found ? found.detail : undefined;
  const detail = joinDetail(found.reason, own, otherConsents) ?? null;
  // A preview judges outside of any run, so `left_out` (of the run) says nothing here and is not shown.
  return { verdict: found.verdict, reason: found.reason === "left_out" ? null : found.reason, detail, variant };
}

interface Previewed {
  readonly found: Survey;
  readonly contacts: Contacts;
  /** Present time, ms since 1970. */
  readonly ms: number;
}

/** Returns sentences for the operator on what the preview cannot show. */
function writeNotes({ outreach }: Config, { template }: OutreachRules, { found, contacts, ms }: Previewed): string[] {
  const { sources, window, timezone } = outreach;
  const texts = found.variants.map(({ sample }) => (sample?.rendered.ok === true ? sample.rendered.text : ""));
  const others = sources.filter((name) => name !== "list");
  return [
    ...Object.values(STAND_INS)
      .filter((standIn) => texts.some((one) => one.includes(standIn)))
      .map((standIn) => `${standIn} is filled in from X when the message is sent`),
    ...(others.length === sources.length ? ["RECIPIENT_SOURCES lacks list: no run contacts imported recipients"] : []),
    ...(others.length === 0 ? [] : [`only a dry run shows recipients of ${others.join(", ")}`]),
    ...warnOfSlips(template.text),
    ...warnOfMissingFields(template, contacts),
    ...[warnOfNoOptOut({ template, stopWords: outreach.stopWords })].filter((warning) => warning !== undefined),
    ...(window === undefined ? [] : [`sending window: ${describeWindow(window, timezone, ms)}`]),
  ];
}

function describePreview({
  template,
  template_name: name,
  variants,
  undecided,
  failed,
  held,
  ...rest
}: Preview): string {
  const { skips, requested, notes, as_of } = rest;
  const lines = [
    `template ${name === null ? template : `${name} (${template})`}`,
    ...variants.map((variant) => describeVariant(variant, undecided)),
    "",
    ...(undecided > 0
      ? [`${undecided} known by handle only: the id, which X gives when a run begins, decides the variant`]
      : []),
    ...(failed > 0 ? [`${failed} failed: only reachlog recipients retry allows another try`] : []),
    ...(held > 0 ? [`${held} held: their reply waits for reachlog recipients release or suppress`] : []),
    ...(requested === null ? [] : [describeRequested(requested)]),
    ...notes,
    ...(skips.length === 0 ? ["no recipient would be skipped before X is requested"] : []),
    ...skips.toSorted((one, other) => other.count - one.count).map(describeSkipped),
    `(${describeMomentJson(as_of)})`,
  ];
  return `${lines.join("\n")}\n`;
}

/**
 * Describes a variant in a preview. `undecided`: number of recipients whose variant only the network's id would tell.
 */
function describeVariant(shown: Static<typeof variantJson>, undecided: number): string {
  const { variant, recipients, recipient, text: message, missing, too_long: length } = shown;
  const known = `${recipients} ${recipients === 1 ? "recipient gets" : "recipients get"} it`;
  const people = undecided === 0 ? known : `${known}, and a share of the ${undecided} whose id only X knows`;
  if (recipient === null) return `\nvariant ${variant}: ${people}; no recipient to show it for`;
  const fault = length !== null ? `it would be too long: ${length} characters` : `it lacks ${missing.join(", ")}`;
  const body = message === null ? fault : showUnseen(message);
  return `\nvariant ${variant} for ${formatRecipient(recipient)}; ${people}\n${body.replaceAll(/^/gm, "  ")}`;
}

function describeRequested({ verdict, reason, detail, variant }: Static<typeof requestedJson>): string {
  if (reason === "failed_before")
    return "the message to this recipient failed: only reachlog recipients retry allows another try";
  if (reason === "held") return "this recipient's reply waits for reachlog recipients release or suppress";
  if (verdict !== "ask") return `this recipient would be skipped: ${reason}${detail === null ? "" : ` (${detail})`}`;
  const which = variant === null ? "one of them" : `variant ${variant}`;
  return `this recipient would get ${which}, unless X says that they cannot`;
}

function describeSkipped({ reason, count: all, recipients }: Static<typeof skippedJson>): string {
  const names = recipients.map(formatRecipient).join(", ");
  const more = all - recipients.length;
  const who = names === "" ? "" : `: ${names}${more === 0 ? "" : ` and ${more} more`}`;
  return `${all} would be skipped, ${reason}${who}`;
}
