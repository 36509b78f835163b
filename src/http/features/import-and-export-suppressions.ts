import { Type, type Static } from "@sinclair/typebox";
import { suppressionsReportPage } from "../../console/pages/import.tsx";
import { formatDuration } from "../../platform/format-numbers-and-lists.ts";
import {
  exportSuppressions,
  SUPPRESSIONS_FORMATS,
  type SuppressionsFormat,
} from "../../recipients/export-suppressions.ts";
import { SENT_SUPPRESSIONS_BYTES_MAX } from "../../recipients/file/format-and-limits.ts";
import { READ_MS_MAX } from "../../recipients/file/read-in-worker.ts";
import { REASON_CHARS_MAX } from "../../recipients/file/suppression-row.ts";
import { importSuppressions } from "../../recipients/import-suppressions.ts";
import { nameHashKey } from "../../recipients/suppress.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { fileBody } from "../server/body.ts";
import { route, reply, textReply, type Form } from "../server/endpoint.ts";
import { choiceIn } from "../server/refuse-invalid-query.ts";
import { sendFile } from "../streams/file-stream.ts";
import { closed, count, named } from "../../platform/common-schemas.ts";
import {
  cell,
  describeNotes,
  listFormats,
  listQuery,
  listUpload,
  nameColumns,
  notedMembers,
  refusedMembers,
  takeList,
  toNoted,
  toRefused,
} from "./list-import-requests.ts";

const importReport = Type.Object({
  added: count,
  repeated: Type.Integer({ minimum: 0, description: "Rows that were suppressed before; their first record stays." }),
  ...refusedMembers,
  ...notedMembers,
});

const row = named(
  "SuppressionRow",
  Type.Object(
    {
      ...nameColumns,
      hash: Type.Optional(
        Type.String({ description: "From an export of a log with the same key. It names no recipient." }),
      ),
      reason: Type.Optional(cell),
      suppressed_at: Type.Optional(
        Type.String({
          description: "A day, or a time with its offset (ISO 8601); not in the future.",
          examples: ["2025-03-02", "2025-03-02T10:15:00+01:00"],
        }),
      ),
    },
    { ...closed, examples: [{ username: "sara_sells", reason: "opt_out", suppressed_at: "2025-03-02" }] },
  ),
);

const FORMATS = listFormats("suppression", row, {
  header: "(?:username|handle|id|hash)(?:,reason)?(?:,suppressed_at)?",
  csv: "username,reason,suppressed_at\nsara_sells,opt_out,2025-03-02",
  json: '{"username":"sara_sells","reason":"opt_out"}',
});

/**
 * Console form that imports a suppression list from a file. Its report is shown once and never stored, because it
 * quotes rows about people.
 */
const IMPORT_FORM: Form = {
  path: "/console/suppressions",
  description: "Answers with a page that lists refused rows; an unreadable file redirects back.",
  ...listUpload(SENT_SUPPRESSIONS_BYTES_MAX),
  page: (report: Static<typeof importReport>) => suppressionsReportPage(describeNotes(report)),
};

/** Media type and file name of an exported suppression list, by its format. */
const FILES: Readonly<Record<SuppressionsFormat, { readonly type: string; readonly name: string }>> = {
  csv: { type: "text/csv; charset=utf-8", name: "reachlog-suppressions.csv" },
  jsonl: { type: "application/x-ndjson", name: "reachlog-suppressions.jsonl" },
};

export function suppressionEndpoints(context: HttpContext) {
  return feature("suppressions", "/social")
    .post(
      "/suppressions",
      async ({ request, body, call: { metadata } }) => {
        const hashed = { hashKey: nameHashKey(context.hashesOf) };
        const { taken, added, refused, notes } = await takeList(context, { request, body }, hashed, (rows, options) =>
          importSuppressions(context, rows, metadata, options),
        );
        return { added, repeated: taken - added, ...toRefused(refused), ...toNoted(notes) };
      },
      route("importSuppressions", "outreach", ["token", "recipients"], {
        body: fileBody(FORMATS, SENT_SUPPRESSIONS_BYTES_MAX),
        response: { 200: reply("How many rows were added, and which were refused.", importReport) },
        summary: "Suppresses the recipients of a list for good.",
        description:
          "Columns, as on the command line: `id`, `username` (or `handle`), `hash`, `reason`, `suppressed_at`. A row has at least one of the first three. " +
          `\`reason\` is \`by_hand\`, \`opt_out\`, \`opt_out_page\`, or any text of up to ${REASON_CHARS_MAX} characters. ` +
          "Unusable rows are refused one by one, and the others are imported. From the answer on, no run writes to any of them. A repeat changes nothing. One list is imported at a time (503 `overloaded` for others). " +
          `Reading takes ${formatDuration(READ_MS_MAX / 1_000)} at most, and ends when the caller hangs up.`,
        isSlow: true,
        query: listQuery,
        problems: ["unreadableFile"],
        form: IMPORT_FORM,
      }),
    )
    .get(
      "/suppressions",
      ({ request, call }) => {
        const { searchParams } = new URL(request.url);
        const format = choiceIn(searchParams, "format", SUPPRESSIONS_FORMATS, "csv");
        // A value other than `true` or `false` is refused, because a typo that counted as `false` would disclose names.
        const isHashed = choiceIn(searchParams, "hashed", ["true", "false"], "false") === "true";
        const { encryptedLog, projector, hashesOf } = context;
        const open = () => {
          const [contacts, to] = [projector.state("contacts"), projector.position];
          return exportSuppressions(encryptedLog, { contacts, to, hashesOf, format, isHashed });
        };
        return sendFile(context, call, { ...FILES[format], open });
      },
      route("exportSuppressions", "outreach", ["session", "read"], {
        response: {
          200: textReply("The suppressions.", {
            mediaType: "text/csv",
            otherMediaTypes: ["application/x-ndjson"],
            headers: ["content-disposition"],
          }),
        },
        summary: "Exports the list of suppressions.",
        description:
          "Like `reachlog suppressions export`: recipients by name where the log knows it, all others by hash, each with reason and date. An import reads it. " +
          "An incomplete answer is cut off, not closed. Needs a token or a console session once a token is configured, and is cut off when that is revoked.",
        query: {
          format: "`csv` (the default) or `jsonl` (JSON Lines).",
          hashed: "`true`: all as hashes, which name no recipient; reason texts of lists stay. Default: `false`.",
        },
        problems: ["invalid", "tooManyStreams"],
        personalRead: "suppressions",
        isSlow: true,
      }),
    );
}
