import { formatRecipient } from "../../history/words/phrases.ts";
import type { Place } from "../../projector/moment.ts";
import { describeMoment, toAsOfJson } from "../shared/moment.ts";
import { printable, table } from "../shared/table.ts";
import type { Skipped, Survey, VariantSample } from "./survey.ts";

/** A survey for people. `notes`: what else they should know. */
export function surveyAsText(survey: Survey, notes: readonly string[], place: Place): string {
  const { template, variants, undecided, failed } = survey;
  const lines = [`template ${template}\n`, ...variants.map(variantText), "\n"];
  if (undecided > 0) lines.push(`${undecided} known by handle only: X knows the id, which decides the variant\n`);
  if (failed > 0) lines.push(`${failed} not tried again after a failure, unless by reachlog recipients retry\n`);
  if (survey.asked !== undefined) lines.push(`${askedText(survey.asked)}\n`);
  lines.push(...notes.map((line) => `${printable(line)}\n`), skipsText(survey), `(${describeMoment(place)})\n`);
  return lines.join("");
}

/** A survey for programs: texts are null where there is none. */
export function surveyAsJson({ skips, asked, ...rest }: Survey, place: Place): object {
  const variants = rest.variants.map(({ variant, recipients, sample }) => ({
    variant,
    recipients,
    person: sample?.person ?? null,
    text: sample?.rendered.ok === true ? sample.rendered.text : null,
    missing: sample === undefined || sample.rendered.ok ? [] : sample.rendered.missing,
  }));
  const skipped = [...skips].map(([reason, { count, people }]) => ({ reason, count, people }));
  return { ...rest, variants, skips: skipped, asked: asked ?? null, as_of: toAsOfJson(place) };
}

function variantText({ variant, recipients, sample }: VariantSample): string {
  const people = `${recipients} ${recipients === 1 ? "person gets" : "people get"} it`;
  if (sample === undefined) return `\nvariant ${variant}: ${people}; no recipient is left to show it for\n`;
  const { person, rendered } = sample;
  const head = `\nvariant ${variant} for ${printable(formatRecipient(person))}; ${people}\n`;
  if (rendered.ok) return head + indented(rendered.text);
  const fault =
    rendered.reason === "too_long"
      ? `it would be ${rendered.length} characters long, which is too long`
      : `it cannot be written: ${rendered.missing.join(", ")} missing`;
  return head + indented(fault);
}

/** A message's own line breaks stay; nothing else of it may steer the terminal. */
function indented(text: string): string {
  return text
    .split("\n")
    .map((line) => `  ${printable(line)}\n`)
    .join("");
}

function askedText({ verdict, variant }: NonNullable<Survey["asked"]>): string {
  switch (verdict.verdict) {
    case "ask":
      return `this person would get ${variant === undefined ? "one of them" : `variant ${variant}`}, unless X says that they cannot`;
    case "pass":
      return "this person is not tried again after a failure, unless by reachlog recipients retry";
    case "skip": {
      const detail = verdict.detail === undefined ? "" : ` (${printable(verdict.detail)})`;
      return `this person would be skipped: ${verdict.reason}${detail}`;
    }
  }
}

function skipsText({ skips }: Survey): string {
  if (skips.size === 0) return "no recipient would be skipped before X is asked\n";
  const rows = [...skips].toSorted(([, a], [, b]) => b.count - a.count);
  return `\n${table(
    ["would be skipped", "people", "who"],
    rows.map(([reason, skipped]) => [reason, skipped.count, peopleText(skipped)]),
  )}`;
}

function peopleText({ count, people }: Skipped): string {
  const more = count - people.length;
  const names = people.map(formatRecipient).join(", ");
  if (more === 0) return names;
  return names === "" ? "" : `${names} and ${more} more`;
}
