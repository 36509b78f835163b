import { Type, type TObject } from "@sinclair/typebox";
import { basis } from "../../../events/outreach.ts";
import { GROUPINGS } from "../../history/results.ts";
import { closedObject, oneOf } from "../../platform/common-schemas.ts";
import { showHistoryCommand as auditShow } from "../audit/show.ts";
import type { MakeCommand } from "../shared/command.ts";
import { lag } from "../deliveries.ts";
import { preview } from "../outreach/preview.ts";
import { results } from "../results.ts";
import { listTokens } from "../token.ts";

/** Rows of an answer about all recipients: an assistant reads no more, and gets the number of the others. */
export const ANSWERS_MAX = 200;

/** What an assistant says to a tool. */
export type Input = { readonly [Member in TextMember]?: string };

type TextMember = "status" | "from" | "to" | "as_of" | "by" | "recipient" | "subject" | "variant" | "basis";

/** What an assistant may ask: a command of the command line that reads, with `--json`. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: TObject;
  readonly command: MakeCommand;
}

/** Members that are options of every command that has them. */
const OPTIONS = ["as_of", "by", "from", "to", "variant", "basis"] as const;

/** The arguments of a tool's command, beside `--json`. What follows a `--` is no option, whatever it looks like. */
export function toArguments(input: Input): readonly string[] {
  const { recipient: named, subject } = input;
  const options = OPTIONS.filter((name) => input[name] !== undefined);
  const operand = named ?? subject;
  return [
    ...options.map((name) => `--${name.replace("_", "-")}=${input[name]}`),
    ...(operand === undefined ? [] : ["--", operand]),
  ];
}

const optionalText = (description: string) => Type.Optional(Type.String({ description }));
const as_of = optionalText("An earlier moment: a time or day in ISO 8601, or a position of the log. Absent: now.");
const recipient = Type.String({ description: "A recipient: id, handle or @handle." });

/** None of them sends, spends or erases. */
export const TOOLS: readonly Tool[] = [
  {
    name: "what_happened",
    title: "What happened to a recipient, a link, an event or a run",
    description: "All events about one subject, in the order of the log.",
    input: closedObject({
      subject: Type.String({
        description: "An id or handle, a link (domain/short_code), a position, or the id of an event or run.",
      }),
      as_of,
    }),
    command: auditShow,
  },
  {
    name: "who_may_call",
    title: "Who may call the service",
    description: "The tokens of callers by name and id: what each may do, when it expires, and when it was last used.",
    input: closedObject({}),
    command: listTokens,
  },
  {
    name: "results",
    title: "Outcomes of messages",
    description:
      "Sent, failed, in doubt, replied, opted out, and clicks (total, unique, suspected, bots), with the interval of the " +
      "same length before where `from` is given. By run, source and basis clicks are those of recipients who granted tracking.",
    input: closedObject({
      by: Type.Optional(Type.Union(oneOf(...GROUPINGS).anyOf, { description: "What to group by. Absent: variant." })),
      from: optionalText("First day (UTC), or a time in it. Absent: from the beginning."),
      to: optionalText("Last day (UTC), or a time in it. Absent: now."),
      as_of,
    }),
    command: results,
  },
  {
    name: "delivery_lag",
    title: "How far each channel is behind",
    description: "Backlog, age of the oldest click, rates, and when each channel will have caught up.",
    input: closedObject({}),
    command: lag,
  },
  {
    name: "dry_run",
    title: "What a run would do",
    description:
      "Which imported recipients would get which text, and which would be skipped and why. Asks no network, since each " +
      "question to X is paid for: what only X knows does not show.",
    input: closedObject({
      recipient: Type.Optional(recipient),
      variant: Type.Optional(Type.String({ pattern: "^[A-Z]$", description: "Only recipients who get this variant." })),
      basis: Type.Optional(Type.Union(basis.anyOf, { description: "Only recipients with this ground." })),
    }),
    command: preview,
  },
];
