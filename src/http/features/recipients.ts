import { Type, type TSchema } from "@sinclair/typebox";
import type { EventLog, EventMetadata } from "../../log/event-log.ts";
import { allowRetry, type RetryRefusal } from "../../outreach/allow-retry.ts";
import { importRecipients } from "../../outreach/import-recipients.ts";
import type { RecipientsFormat } from "../../outreach/recipients-file/format.ts";
import { SENT_BYTES_MAX } from "../../outreach/recipients-file/limits.ts";
import { readApart, type ReadFile } from "../../outreach/recipients-file/read-apart.ts";
import { suppress } from "../../outreach/suppress.ts";
import type { HashesOf } from "../../outreach/suppression-hashes.ts";
import { sleep } from "../../platform/clock.ts";
import { ServiceError } from "../../platform/service-error.ts";
import type { Projector } from "../../projector/projector.ts";
import { json } from "../server/answer.ts";
import { jsonBody } from "../server/body.ts";
import { formOf } from "./console-form.ts";
import { post } from "../server/endpoint.ts";
import type { LoadShedding } from "../access/load-shedding.ts";
import { appendedOrNothing, problems, type Problem } from "../server/problem.ts";
import { closed, count, oneOf, text } from "./schema.ts";
import { fileBody } from "../server/upload.ts";

export interface RecipientsDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly hashesOf: HashesOf;
  readonly load: LoadShedding;
  /** Aborts when the service begins to stop. */
  readonly stopping: AbortSignal;
}

/** Rows appended at once: few milliseconds of the thread that serves requests, keys and folds included. */
const CHUNK_ROWS = 64;

/** Column names that a report lists: a file of JSON objects may have others in each. */
const FIELDS_SHOWN_MAX = 50;

/** A person as an operator names them. What fits can name somebody. */
const person = Type.Object(
  {
    recipient: Type.String({
      pattern: "^(@?[A-Za-z0-9_]{1,15}|[0-9]{16,19})$",
      description: "An id, a handle or @handle.",
      examples: ["@sara_sells", "1786543210987654321"],
    }),
  },
  closed,
);
export const personBody = jsonBody(person);

const line = Type.Integer({ minimum: 1, description: "As an editor shows it." });

const importReport = Type.Object({
  added: count,
  updated: count,
  without_consent: Type.Integer({
    minimum: 0,
    description: "Of those taken: nobody writes to them while REQUIRE_CONSENT is true.",
  }),
  template_fields: Type.Array(text("company"), { description: "Columns that became template fields; the first 50." }),
  refused: count,
  refused_rows: Type.Array(Type.Object({ line, value: text("ada builds"), reason: text("not a handle of X") }), {
    description: "The first 1,000: where, what of the row cannot be used (its first characters), and why.",
  }),
  duplicates: count,
  duplicate_rows: Type.Array(Type.Object({ line, of: line }), {
    description: "The first 1,000: the row at `line` took the place of the one at `of`.",
  }),
});

/** What an import came to. */
export interface ImportReport extends Omit<ReadFile, "rows"> {
  readonly added: number;
  readonly updated: number;
  readonly withoutConsent: number;
  readonly fields: readonly string[];
}

/** A list as a request sent it. */
interface SentList {
  readonly file: Uint8Array;
  readonly format: RecipientsFormat;
  /** Aborts when its client hangs up. */
  readonly signal: AbortSignal;
  readonly metadata: EventMetadata;
}

/** Takes a file of recipients. Throws the problems 422 and 503; after a stop in the midst of it some rows are taken. */
export function takeList(deps: RecipientsDeps, sent: SentList): Promise<ImportReport> {
  return deps.load.whileTaking(() => takeAlone(deps, sent));
}

async function takeAlone(
  { eventLog, projector, stopping }: RecipientsDeps,
  { file, format, signal, metadata }: SentList,
): Promise<ImportReport> {
  const { rows, ...remarks } = await readList(file, format, AbortSignal.any([stopping, signal]));
  const options = { chunkRows: CHUNK_ROWS, signal: stopping };
  const { taken, added, withoutConsent, fields } = await importRecipients(
    { eventLog, projector },
    rows,
    metadata,
    options,
  );
  if (taken < rows.length) throw problems.logUnavailable(taken === 0);
  return { ...remarks, added, updated: taken - added, withoutConsent, fields: fields.slice(0, FIELDS_SHOWN_MAX) };
}

/** As `readApart`, with the problems 422 and 503. */
async function readList(file: Uint8Array, format: RecipientsFormat, signal: AbortSignal): Promise<ReadFile> {
  try {
    return await readApart(file, format, signal);
  } catch (fault) {
    if (signal.aborted) throw problems.logUnavailable(true);
    throw fault instanceof ServiceError && fault.kind === "invalid" ? problems.unreadableFile(fault.message) : fault;
  }
}

const csv = Type.String({
  pattern: String.raw`^(?:username|handle|id)(?:,name)?(?:,basis)?(?:\r?\n[^\u0000-\u001f"]*)*$`,
  description:
    "A header, then a line for each recipient. Other columns, their order, quotes, `;` and tabs are taken too.",
  examples: ["username,name,basis\nsara_sells,Sara,opt_in"],
});

const cell = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]);

const row = Type.Object(
  {
    username: Type.Optional(Type.String({ examples: ["sara_sells"] })),
    handle: Type.Optional(Type.String({ examples: ["sara_sells"] })),
    id: Type.Optional(Type.String({ examples: ["1786543210987654321"] })),
    name: Type.Optional(cell),
    basis: Type.Optional(oneOf("dm_first", "opt_in", "none")),
  },
  {
    additionalProperties: cell,
    examples: [{ username: "sara_sells", name: "Sara", basis: "opt_in", company: "Acme" }],
  },
);

const list = Type.Union([Type.Array(row), Type.Object({ recipients: Type.Array(row) }, closed)]);

const lines = Type.String({
  pattern: String.raw`^[^\u0000-\u0008]*$`,
  description: "An object a line, as those of a list.",
  examples: ['{"username":"sara_sells","name":"Sara"}'],
});

const FORMATS: ReadonlyMap<string, readonly [RecipientsFormat, TSchema]> = new Map([
  ["text/csv", ["csv", csv]],
  ["application/json", ["json", list]],
  ["application/jsonl", ["jsonl", lines]],
  ["application/x-ndjson", ["jsonl", lines]],
]);

export const importList = post({
  id: "importRecipients",
  tag: "outreach",
  summary: "Adds or updates recipients.",
  description:
    "The columns are those of the command line: `username` (or `handle`) and/or `id`, `name`, `basis`; all others are template fields. Rows that cannot be used are refused one by one, and the others are taken. A repeat changes nothing. One list is taken at a time (503 `overloaded` for others), and read for a minute at the most; whoever hangs up before it is read ends that.",
  body: fileBody({
    kinds: FORMATS,
    bytesMax: SENT_BYTES_MAX,
  }),
  isSlow: true,
  answers: { 200: { says: "What was taken, and what was refused.", schema: importReport } },
  problems: ["unreadableFile", "overloaded", "logUnavailable"],
  async handle(deps: RecipientsDeps, { request: { signal }, body: { bytes, kind }, metadata }) {
    const sent = { file: bytes, format: kind, signal, metadata };
    const { withoutConsent, fields, refused, duplicates, ...counts } = await takeList(deps, sent);
    return json(200, {
      ...counts,
      without_consent: withoutConsent,
      template_fields: fields,
      refused: refused.count,
      refused_rows: refused.first,
      duplicates: duplicates.count,
      duplicate_rows: duplicates.first,
    });
  },
});

export const suppressRecipient = post({
  id: "suppressRecipient",
  tag: "outreach",
  summary: "Stops messages to a person for good.",
  description: "Also by a name that nobody known has: whoever has it is never written to. A repeat changes nothing.",
  body: personBody,
  answers: {
    200: {
      says: "Nobody writes to them any more.",
      schema: Type.Object({
        known: Type.Boolean({ description: "False: nobody of that name is known yet." }),
      }),
    },
  },
  problems: ["logUnavailable"],
  async handle(deps: RecipientsDeps, { body: { recipient }, metadata }) {
    const { isKnown } = await appendedOrNothing(suppress(deps, recipient, metadata));
    return json(200, { known: isKnown });
  },
});

const RETRY_PROBLEMS: Readonly<Record<RetryRefusal, () => Problem>> = {
  unknown: problems.unknownPerson,
  suppressed: problems.suppressed,
  not_failed: problems.nothingToRetry,
};

export const retryRecipient = post({
  id: "retryRecipient",
  tag: "outreach",
  summary: "Allows one more message after a failure.",
  description: "The next run tries the person again, unless something else speaks against it.",
  body: personBody,
  answers: {
    200: { says: "They are tried again.", schema: Type.Object({ status: Type.Literal("open") }) },
  },
  problems: ["unknownPerson", "suppressed", "nothingToRetry", "logUnavailable"],
  async handle(deps: RecipientsDeps, { body: { recipient }, metadata }) {
    const retry = { ...deps, sleep, random: Math.random };
    const refusal = await appendedOrNothing(allowRetry(retry, recipient, metadata));
    if (refusal !== undefined) throw RETRY_PROBLEMS[refusal]();
    return json(200, { status: "open" });
  },
});

export const suppressByForm = formOf(suppressRecipient, {
  body: ({ recipient }) => ({ recipient }),
  says: () => "The person will never be written to.",
});

export const retryByForm = formOf(retryRecipient, {
  body: ({ recipient }) => ({ recipient }),
  says: () => "The person is tried again in the next run.",
});
