import { Type, type Static } from "@sinclair/typebox";
import { basis, skipReason } from "../../events/outreach.ts";
import type { Config } from "../config/config.ts";
import { formatRecipient } from "../history/words/sentence.ts";
import { count, named, oneOf, orNull, text } from "../platform/common-schemas.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { operation, refusal, refuse } from "../platform/operation.ts";
import { usageError } from "../platform/service-error.ts";
import { discloseRecipient } from "../privacy/read-audit.ts";
import { asOf, describeMomentJson, toMomentJson, type LogReader } from "../projector/log-reader.ts";
import { findNamed, recipientAnswer, recipientName } from "../recipients/resolve-recipient.ts";
import { warnOfSlips } from "../template/check-text.ts";
import type { Template } from "../template/template.ts";
import { showUnseen } from "../template/visible-text.ts";
import type { OutreachRules } from "./decide.ts";
import { STAND_INS, survey, type Survey } from "./judge-recipients.ts";
import { describeWindow } from "./send-window.ts";

/** Recipients named for each skip reason by default: they fit a screen. */
const NAMED = 5;
const NAMED_MAX = 100;

interface PreviewReader extends LogReader {
  readonly config: Pick<Config, "outreach">;
  /** The rules by which a run with this template decides. */
  rulesWith(template: Template): Promise<OutreachRules>;
}

const variantJson = Type.Object({
  variant: text("A"),
  recipients: Type.Integer({ minimum: 0, description: "Recipients who can get it and whose id is known." }),
  person: orNull(recipientAnswer),
  text: Type.Union([text("Hi Sara"), Type.Null()], { description: "As that person would read it." }),
  missing: Type.Array(text("company"), { description: "Fields that this person lacks." }),
  too_long: orNull(Type.Integer({ minimum: 0, description: "The text's characters, if X would not take so many." })),
});

const skippedJson = Type.Object({ reason: skipReason, count, people: Type.Array(recipientAnswer) });

const askedJson = named(
  "AskedRecipient",
  Type.Object({
    verdict: oneOf("ask", "pass", "skip"),
    reason: orNull(skipReason),
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
  skips: Type.Array(skippedJson),
  asked: Type.Union([askedJson, Type.Null()], { description: "Null if no recipient was named." }),
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
    "Asks no network: each variant as one person would read it; how many of the imported recipients get which, and who would be skipped and why. What only X knows shows in a dry run.",
  personalRead: "preview",
  input: {
    recipient: Type.Optional({
      ...recipientName,
      description: "Whose text to show; without it, that of the first recipient who can get it",
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
    unknown_recipient: refusal("not_found", "No recipient is known as {recipient}."),
    no_message_template: refusal("configuration", "There is no message: MESSAGE_TEMPLATE is not set."),
  },
  async run({ at, clock, config, rulesWith }: PreviewReader, { recipient, limit = NAMED, ...selection }) {
    const { template } = config.outreach;
    if (template === undefined) return "no_message_template";
    const labels = template.variants.map(({ label }) => label);
    if (selection.variant !== undefined && !labels.includes(selection.variant))
      throw usageError(`the variant is not one of the template's variants: ${labels.join(", ")}`);
    const found = await at(undefined, "run", "quota", "contacts", "account", "links");
    const person = recipient === undefined ? undefined : findNamed(found.states.contacts, recipient);
    if (recipient !== undefined && person === undefined) return refuse("unknown_recipient", { recipient });
    const rules = await rulesWith(template);
    const surveyed = await survey(found.states, rules, { person, limit, selection: omitUndefined(selection) });
    return {
      ...toPreviewJson(surveyed),
      notes: writeNotes(config, template, surveyed, clock()),
      as_of: toMomentJson(found),
    };
  },
  discloses({ variants: [variant], asked }) {
    return asked === null ? {} : discloseRecipient(variant?.person ?? undefined);
  },
  text: describePreview,
  examples: ["", "sara_sells", "--basis opt_in --json"],
});

function toPreviewJson({ variants, skips, asked, ...counts }: Survey): Omit<Preview, "notes" | "as_of"> {
  return {
    ...counts,
    variants: variants.map(({ variant, recipients, sample }) => ({
      variant,
      recipients,
      person: sample?.person ?? null,
      text: sample?.rendered.ok === true ? sample.rendered.text : null,
      missing: sample === undefined || sample.rendered.ok ? [] : [...sample.rendered.missing],
      too_long: sample?.rendered.ok === false && sample.rendered.reason === "too_long" ? sample.rendered.length : null,
    })),
    skips: [...skips].map(([reason, skipped]) => ({ reason, ...skipped })),
    asked: asked === undefined ? null : toAskedJson(asked),
  };
}

function toAskedJson({ verdict: found, ...asked }: NonNullable<Survey["asked"]>): Static<typeof askedJson> {
  const { variant = null } = asked;
  if (found.verdict !== "skip") return { verdict: found.verdict, reason: null, detail: null, variant };
  return { verdict: found.verdict, reason: found.reason, detail: found.detail ?? null, variant };
}

/** `ms` is now, since 1970. */
function writeNotes({ outreach }: Pick<Config, "outreach">, template: Template, found: Survey, ms: number): string[] {
  const { sources, window, timezone } = outreach;
  const texts = found.variants.map(({ sample }) => (sample?.rendered.ok === true ? sample.rendered.text : ""));
  const others = sources.filter((name) => name !== "list");
  return [
    ...Object.values(STAND_INS)
      .filter((standIn) => texts.some((one) => one.includes(standIn)))
      .map((standIn) => `${standIn} is filled in from X when the message is sent`),
    ...(others.length === sources.length ? ["RECIPIENT_SOURCES lacks list: no run contacts imported recipients"] : []),
    ...(others.length === 0 ? [] : [`people of ${others.join(", ")} show only in a dry run`]),
    ...warnOfSlips(template.text),
    ...(window === undefined ? [] : [`sending window: ${describeWindow(window, timezone, ms)}`]),
  ];
}

function describePreview({ template, template_name: name, variants, undecided, failed, ...rest }: Preview): string {
  const { skips, asked, notes, as_of } = rest;
  const lines = [
    `template ${name === null ? template : `${name} (${template})`}`,
    ...variants.map((variant) => describeVariant(variant, undecided)),
    "",
    ...(undecided > 0
      ? [`${undecided} known by handle only: the id, which X gives when a run begins, decides the variant`]
      : []),
    ...(failed > 0 ? [`${failed} failed: only reachlog recipients retry allows another try`] : []),
    ...(asked === null ? [] : [describeAsked(asked)]),
    ...notes,
    ...(skips.length === 0 ? ["no recipient would be skipped before X is asked"] : []),
    ...skips.toSorted((one, other) => other.count - one.count).map(describeSkipped),
    `(${describeMomentJson(as_of)})`,
  ];
  return `${lines.join("\n")}\n`;
}

/** `undecided`: recipients who may get this variant or another one. */
function describeVariant(shown: Static<typeof variantJson>, undecided: number): string {
  const { variant, recipients, person, text: message, missing, too_long: length } = shown;
  const known = `${recipients} ${recipients === 1 ? "person gets" : "people get"} it`;
  const people = undecided === 0 ? known : `${known}, and a share of the ${undecided} whose id only X knows`;
  if (person === null) return `\nvariant ${variant}: ${people}; no recipient to show it for`;
  const fault = length !== null ? `it would be too long: ${length} characters` : `it lacks ${missing.join(", ")}`;
  const body = message === null ? fault : showUnseen(message);
  return `\nvariant ${variant} for ${formatRecipient(person)}; ${people}\n${body.replaceAll(/^/gm, "  ")}`;
}

function describeAsked({ verdict, reason, detail, variant }: Static<typeof askedJson>): string {
  if (verdict === "pass")
    return "the last message to this person failed: only reachlog recipients retry allows another try";
  if (verdict === "skip") return `this person would be skipped: ${reason}${detail === null ? "" : ` (${detail})`}`;
  const which = variant === null ? "one of them" : `variant ${variant}`;
  return `this person would get ${which}, unless X says that they cannot`;
}

function describeSkipped({ reason, count: all, people }: Static<typeof skippedJson>): string {
  const names = people.map(formatRecipient).join(", ");
  const more = all - people.length;
  const who = names === "" ? "" : `: ${names}${more === 0 ? "" : ` and ${more} more`}`;
  return `${all} would be skipped, ${reason}${who}`;
}
