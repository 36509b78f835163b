import { type Static, Type } from "@sinclair/typebox";
import { basis } from "../../../events/outreach.ts";
import { importPage } from "../../console/pages/import.tsx";
import { count, named, oneOf, orNull, text } from "../../platform/common-schemas.ts";
import { inTimeSlices } from "../../platform/work-in-time-slices.ts";
import { csvHead, csvRecord } from "../../log/export-formats/csv.ts";
import { SENT_BYTES_MAX } from "../../recipients/file/format-and-limits.ts";
import { RECIPIENT_COLUMNS } from "../../recipients/file/header.ts";
import { WHY_MAPPED } from "../../recipients/file/parse-column-choices.ts";
import { DATE_ORDERS } from "../../recipients/parse-day.ts";
import { previewImport } from "../../recipients/preview-import.ts";
import { fieldsUsed } from "../../template/template.ts";
import type { HttpContext } from "../http-context.ts";
import type { Form } from "../server/endpoint.ts";
import { keepFile } from "./keep-file-in-form.ts";
import {
  describeNotes,
  line,
  listUpload,
  notedMembers,
  refusedMembers,
  takeList,
  toNoted,
  toRefused,
  type ListRequest,
} from "./list-import-requests.ts";

const column = named(
  "PreviewedColumn",
  Type.Object({
    name: Type.String({ description: "The name in the file's header.", examples: ["Opt-in date"] }),
    example: Type.String({ description: "The first filled cell.", examples: ["2025-03-02"] }),
    column: Type.Union([Type.String(), Type.Null()], {
      description: "What it becomes: a column, or a template field; null if it is left out.",
      examples: ["consent_at"],
    }),
    why: Type.Union(
      WHY_MAPPED.map((why) => Type.Literal(why)),
      {
        description:
          "`named`: its name says so. `chosen`: the query does. `guessed`: its name suggests it. `field`: the message has this field. `unused`: no message uses it. `opt_out`: it says who must not be contacted.",
      },
    ),
    is_unclear: Type.Boolean({ description: "Whether an operator has to look at it." }),
  }),
);

const dates = Type.Object(
  {
    example: Type.String({ examples: ["03.11.2025"] }),
    dmy: Type.String({ examples: ["2025-11-03"] }),
    mdy: Type.String({ examples: ["2025-03-11"] }),
    order: orNull(oneOf(...DATE_ORDERS)),
    is_proven: Type.Boolean({ description: "Whether other dates of the file fit only this order." }),
  },
  { description: "Dates that may be read in two ways, and how they were read; null refuses them." },
);

const lackingEvidence = named(
  "LackingEvidence",
  Type.Object({
    missing: Type.Array(text("consent_at")),
    count,
    first: Type.Array(
      Type.Object({
        line,
        id: Type.Optional(text("1786543210987654321")),
        username: Type.Optional(text("sara_sells")),
      }),
    ),
  }),
);

const finished = named(
  "PreviewedRecipient",
  Type.Object({
    line,
    id: Type.Optional(text("1786543210987654321")),
    username: Type.Optional(text("sara_sells")),
    name: Type.Optional(text("Sara")),
    basis: Type.Optional(basis),
    consent_at: Type.Optional(text("2025-03-02")),
    consent_source: Type.Optional(text("trade fair")),
    fields: Type.Record(Type.String(), Type.String()),
    message: Type.Optional(Type.String({ description: "The message that they would get.", examples: ["Hi Sara!"] })),
    missing: Type.Optional(Type.Array(Type.String(), { description: "Fields that the message lacks." })),
  }),
);

export const previewReport = Type.Object({
  rows: count,
  delimiter: Type.Optional(text(";")),
  columns: Type.Array(column),
  fields: Type.Array(text("company"), { description: "The template fields that the message uses." }),
  dates: Type.Optional(dates),
  fault: Type.Optional(
    Type.String({
      description: "Why no row can be imported.",
      examples: ["no column is named username, handle or id"],
    }),
  ),
  added: count,
  updated: count,
  unchanged: count,
  without_consent: count,
  without_evidence: count,
  without_basis: Type.Integer({
    minimum: 0,
    description: "Rows that are refused because they have evidence of a consent, but no basis.",
  }),
  lacking_evidence: Type.Array(lackingEvidence, {
    description:
      "People with a consent that lacks its date or source: one entry for each kind, with the first of them.",
  }),
  revoked: count,
  finished: Type.Array(finished, { description: "The first people of the file, as they would be stored." }),
  ...refusedMembers,
  duplicates: count,
  ...notedMembers,
});

/**
 * Console form that previews a file. The page it shows has a form with the file and the operator's choices, for the
 * import.
 */
export const PREVIEW_FORM: Form = {
  path: "/console/recipients/preview",
  description: "Answers with a page that shows what the import would do; nothing is written.",
  ...listUpload(SENT_BYTES_MAX),
  page: async (
    preview: Static<typeof previewReport>,
    { dates: order = "", basis: stated = "", consent_source: source = "" },
    file,
  ) =>
    importPage({
      preview: {
        ...describeNotes(preview),
        known: [...RECIPIENT_COLUMNS.known],
        kept: await keepFile(file),
        isDated: order !== "",
        stated: { basis: stated, source },
        refusedCsv: toCsv(preview.refused_rows),
      },
    }),
  refused: (notice) => importPage({ notice }),
};

/** Maximum number of characters of the refused lines in a page. */
const REFUSED_CHARS_MAX = 40_000;

/** Writes refused lines as CSV, as many as fit in a page. */
function toCsv(rows: Static<typeof previewReport>["refused_rows"]): { readonly text: string; readonly lines: number } {
  let text = csvHead(["line", "value", "reason"]);
  let lines = 0;
  for (const { line, value, reason } of rows) {
    if (text.length > REFUSED_CHARS_MAX) break;
    text += csvRecord([String(line), value, reason]);
    lines++;
  }
  return { text, lines };
}

/** Reads a list and returns what its import would do. Writes nothing. */
export async function previewList(context: HttpContext, sent: ListRequest): Promise<Static<typeof previewReport>> {
  const { template } = context.config.outreach;
  const fields = template && fieldsUsed(template);
  const contacts = () => context.projector.state("contacts");
  const { taken, refused, duplicates, notes, preview, ...counts } = await takeList(
    context,
    sent,
    { preview: { fields } },
    async (rows) => ({ taken: rows.length, ...(await inTimeSlices(previewImport(contacts, rows, template))) }),
  );
  if (preview === undefined) throw new Error(`the preview of ${taken} rows has no columns`);
  return {
    ...preview,
    fields: fields ?? [],
    ...counts,
    ...toRefused(refused),
    duplicates: duplicates.count,
    ...toNoted(notes),
  };
}
