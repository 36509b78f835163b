import { Type, type TObject } from "@sinclair/typebox";
import { basis } from "../../../events/outreach.ts";
import { FILTER_NAMES, FILTER_SENTENCES, type FilterName } from "../../delivery/dead-letter-filter.ts";
import { closedObject } from "../../platform/common-schemas.ts";
import type { MakeCommand } from "../shared/command.ts";
import { lag, list } from "../deliveries.ts";
import { showDispatchCommand as deliveriesShow } from "../deliveries/show.ts";
import { preview } from "../outreach/preview.ts";
import { listTokens } from "../token.ts";

/** Rows of an answer about all recipients: an assistant reads no more, and gets the number of the others. */
export const ANSWERS_MAX = 200;

/** What an assistant says to a tool. */
export type Input = { readonly [Member in TextMember]?: string };

type TextMember = FilterName | "recipient" | "event_id" | "variant" | "basis";

/** What an assistant may ask: a command of the command line that reads, with `--json`. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: TObject;
  readonly command: MakeCommand;
  /** The members that are options of its command, beside those that are so everywhere. */
  readonly filter?: readonly FilterName[];
}

/** Members that are options of every command that has them. */
const OPTIONS = ["variant", "basis"] as const;

/** The arguments of a tool's command, beside `--json`. What follows a `--` is no option, whatever it looks like. */
export function toArguments(input: Input, { filter = [] }: Pick<Tool, "filter">): readonly string[] {
  const { recipient: named, event_id, link } = input;
  const options = [...new Set([...OPTIONS, ...filter])].filter((name) => input[name] !== undefined);
  const operand = named ?? event_id ?? (filter.includes("link") ? undefined : link);
  return [
    ...options.map((name) => `--${name.replace("_", "-")}=${input[name]}`),
    ...(operand === undefined ? [] : ["--", operand]),
  ];
}

const optionalText = (description: string) => Type.Optional(Type.String({ description }));
const recipient = Type.String({ description: "A recipient: id, handle or @handle." });

/** None of them sends, spends or erases. */
export const TOOLS: readonly Tool[] = [
  {
    name: "what_became_of_click",
    title: "The dispatches of a click",
    description:
      "Each dispatch of one click, notification or message: its attempts on every channel, and where it is now.",
    input: closedObject({
      event_id: Type.String({ description: "As the service answered it, or its position in the log." }),
    }),
    command: deliveriesShow,
  },
  {
    name: "who_may_call",
    title: "Who may call the service",
    description: "The tokens of callers by name and id: what each may do, when it expires, and when it was last used.",
    input: closedObject({}),
    command: listTokens,
  },
  {
    name: "dead_letters",
    title: "What is pending and what was given up",
    description:
      "Of each channel what is pending and whether it is suspended; and the dead letters, or the dispatches in doubt, " +
      "that match the filter, with their number.",
    input: closedObject(Object.fromEntries(FILTER_NAMES.map((name) => [name, optionalText(FILTER_SENTENCES[name])]))),
    command: list,
    filter: FILTER_NAMES,
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
