import { basis } from "../../../events/outreach.ts";
import type { Config } from "../../config/config.ts";
import { configurationError } from "../../config/error.ts";
import { toRecipient } from "../../../projections/contacts.ts";
import { outreachState } from "../../outreach/context.ts";
import { outreachRules } from "../../service/outreach.ts";
import { describeWindow } from "../../outreach/send-window.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { warnOfSlips } from "../../template/check-text.ts";
import type { Template } from "../../template/template.ts";
import { showUnseen } from "../../template/visible-text.ts";
import { discloseRecipient } from "../../privacy/read-audit.ts";
import { Command, JSON_OPTION, Option, parseLimit, type MakeCommand } from "../shared/command.ts";
import { answer, fail, printable, table } from "../shared/terminal.ts";
import { openSession, recordRead } from "../shared/log-session.ts";
import { describeMomentJson, toMomentJson } from "../../projector/log-reader.ts";
import { findNamed } from "../../recipients/resolve-recipient.ts";
import { STAND_INS, survey, type Skipped, type Survey, type VariantSample } from "../../outreach/judge-recipients.ts";
import { formatRecipient } from "../../history/words/sentence.ts";
import type { Place } from "../../projector/parse-moment.ts";
import { usageError } from "../../platform/service-error.ts";

/** Recipients named for each skip reason by default: they fit a screen. */
const PEOPLE_SHOWN = 5;

export const VARIANT_OPTION = ["--variant <letter>", "only recipients who get this variant"] as const;

export const basisOption = () =>
  new Option("--basis <basis>", "only recipients with this ground").choices(basis.anyOf.map((one) => one.const));

export const preview: MakeCommand = (terminal) =>
  new Command("preview")
    .summary("show the configured template, and who would get which variant")
    .description(
      `Shows the configured template without asking the network: each variant as one
person would read it; how many of the imported recipients get which, and who
would be skipped and why. What only X knows shows in a dry run. Exit code 1 when
that person is not known, 78 without a template.`,
    )
    .argument("[handle]", "whose text to show; without it, of the first recipient who can get it")
    .option("--limit <n>", "recipients named for each skip reason", parseLimit, PEOPLE_SHOWN)
    .option(...VARIANT_OPTION)
    .addOption(basisOption())
    .option(...JSON_OPTION)
    .examples("reachlog outreach preview sara_sells")
    .action(async (wanted, { limit, json, ...options }) => {
      await using session = await openSession(terminal);
      const { projector, config } = session;
      const template = requireTemplate(config);
      const rules = outreachRules(session, template);
      const place = { position: projector.position, time: projector.time };
      const person = wanted === undefined ? undefined : findNamed(projector.state("contacts"), wanted);
      if (wanted !== undefined && person === undefined) {
        return fail(terminal, `no recipient is known as ${printable(wanted)} (${describeMomentJson(place)})`);
      }
      const selection = omitUndefined({ variant: options.variant, basis: options.basis });
      const labels = template.variants.map(({ label }) => label);
      if (options.variant !== undefined && !labels.includes(options.variant))
        throw usageError(`--variant needs one of the template's variants: ${labels.join(", ")}`);
      const found = survey(outreachState({ projector }), rules, { person, limit, selection });
      const about = discloseRecipient(person && toRecipient(person));
      await recordRead(terminal, session.eventLog.store, { resource: "preview", ...about });
      const notes = writeNotes(config, found, session.logClock.now());
      const text = surveyAsText(found, notes, place);
      return answer(terminal, json, surveyAsJson(found, place), text);
    });

/** Throws a ServiceError (configuration) where there is nothing to preview. */
function requireTemplate({ outreach: { template } }: Config): Template {
  if (template === undefined) {
    const wanted = "a text with placeholders such as {{name|there}}, or MESSAGE_TEMPLATE_FILE";
    throw configurationError([{ variable: "MESSAGE_TEMPLATE", problem: "not set, so there is no message", wanted }]);
  }
  return template;
}

/** `ms`: now, since the epoch. */
function writeNotes({ outreach }: Config, { variants }: Survey, ms: number): string[] {
  const { sources, window, timezone } = outreach;
  const texts = variants.map(({ sample }) => (sample?.rendered.ok === true ? sample.rendered.text : ""));
  const notes = Object.values(STAND_INS)
    .filter((standIn) => texts.some((text) => text.includes(standIn)))
    .map((standIn) => `${standIn} is filled in from X when the message is sent`);
  const others = sources.filter((name) => name !== "list");
  if (others.length === sources.length) notes.push("RECIPIENT_SOURCES lacks list: no run contacts imported recipients");
  if (others.length > 0) notes.push(`people of ${others.join(", ")} show only in a dry run`);
  const { template } = outreach;
  notes.push(...(template === undefined ? [] : warnOfSlips(template.text)));
  if (window !== undefined) notes.push(`sending window: ${describeWindow(window, timezone, ms)}`);
  return notes;
}

function surveyAsText(survey: Survey, notes: readonly string[], place: Place): string {
  const { template, template_name, variants, undecided, failed } = survey;
  const lines = [
    `template ${template_name === null ? template : `${printable(template_name)} (${template})`}\n`,
    ...variants.map((sample) => variantText(sample, undecided)),
    "\n",
  ];
  if (undecided > 0)
    lines.push(`${undecided} known by handle only: the id, which X gives when a run begins, decides the variant\n`);
  if (failed > 0) lines.push(`${failed} failed: only reachlog recipients retry allows another try\n`);
  if (survey.asked !== undefined) lines.push(`${askedText(survey.asked)}\n`);
  lines.push(...notes.map((line) => `${printable(line)}\n`), skipsText(survey), `(${describeMomentJson(place)})\n`);
  return lines.join("");
}

/** Texts are null where there is none. */
function surveyAsJson({ skips, asked, ...rest }: Survey, place: Place): object {
  const variants = rest.variants.map(({ variant, recipients, sample }) => ({
    variant,
    recipients,
    person: sample?.person ?? null,
    text: sample?.rendered.ok === true ? sample.rendered.text : null,
    missing: sample === undefined || sample.rendered.ok ? [] : sample.rendered.missing,
  }));
  const skipped = [...skips].map(([reason, { count, people }]) => ({ reason, count, people }));
  return { ...rest, variants, skips: skipped, asked: asked ?? null, as_of: toMomentJson(place) };
}

/** `undecided`: recipients who get this variant or another one. */
function variantText({ variant, recipients, sample }: VariantSample, undecided: number): string {
  const known = `${recipients} ${recipients === 1 ? "person gets" : "people get"} it`;
  const people = undecided === 0 ? known : `${known}, and a share of the ${undecided} whose id only X knows`;
  if (sample === undefined) return `\nvariant ${variant}: ${people}; no recipient to show it for\n`;
  const { person, rendered } = sample;
  const head = `\nvariant ${variant} for ${printable(formatRecipient(person))}; ${people}\n`;
  if (rendered.ok) return head + indent(rendered.text);
  const fault =
    rendered.reason === "too_long"
      ? `it would be too long: ${rendered.length} characters`
      : `it lacks ${rendered.missing.join(", ")}`;
  return head + indent(fault);
}

/** Keeps a message's line breaks, and shows each other control character by a sign. */
function indent(text: string): string {
  return showUnseen(text)
    .split("\n")
    .map((line) => `  ${printable(line)}\n`)
    .join("");
}

function askedText({ verdict, variant }: NonNullable<Survey["asked"]>): string {
  switch (verdict.verdict) {
    case "ask":
      return `this person would get ${variant === undefined ? "one of them" : `variant ${variant}`}, unless X says that they cannot`;
    case "pass":
      return "the last message to this person failed: only reachlog recipients retry allows another try";
    case "skip": {
      const detail = verdict.detail === undefined ? "" : ` (${printable(verdict.detail)})`;
      return `this person would be skipped: ${verdict.reason}${detail}`;
    }
  }
}

function skipsText({ skips }: Survey): string {
  if (skips.size === 0) return "no recipient would be skipped before X is asked\n";
  const sorted = [...skips].sort(([, a], [, b]) => b.count - a.count);
  const rows = sorted.map(([reason, skipped]) => [reason, skipped.count, peopleText(skipped)]);
  return `\n${table(["would be skipped", "people", "who"], rows)}`;
}

function peopleText({ count, people }: Skipped): string {
  const more = count - people.length;
  const names = people.map(formatRecipient).join(", ");
  if (more === 0) return names;
  return names === "" ? "" : `${names} and ${more} more`;
}
