import { Type, type TObject } from "@sinclair/typebox";
import { basis } from "../../../events/outreach.ts";
import { closedObject } from "../../platform/common-schemas.ts";
import type { MakeCommand } from "../shared/command.ts";
import { lag } from "../deliveries.ts";
import { preview } from "../outreach/preview.ts";
import { listTokens } from "../token.ts";

/** Rows of an answer about all recipients: an assistant reads no more, and gets the number of the others. */
export const ANSWERS_MAX = 200;

/** What an assistant says to a tool. */
export type Input = { readonly [Member in TextMember]?: string };

type TextMember = "recipient" | "variant" | "basis";

/** What an assistant may ask: a command of the command line that reads, with `--json`. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: TObject;
  readonly command: MakeCommand;
}

/** Members that are options of every command that has them. */
const OPTIONS = ["variant", "basis"] as const;

/** The arguments of a tool's command, beside `--json`. What follows a `--` is no option, whatever it looks like. */
export function toArguments(input: Input): readonly string[] {
  const { recipient: operand } = input;
  const options = OPTIONS.filter((name) => input[name] !== undefined);
  return [
    ...options.map((name) => `--${name.replace("_", "-")}=${input[name]}`),
    ...(operand === undefined ? [] : ["--", operand]),
  ];
}

const recipient = Type.String({ description: "A recipient: id, handle or @handle." });

/** None of them sends, spends or erases. */
export const TOOLS: readonly Tool[] = [
  {
    name: "who_may_call",
    title: "Who may call the service",
    description: "The tokens of callers by name and id: what each may do, when it expires, and when it was last used.",
    input: closedObject({}),
    command: listTokens,
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
