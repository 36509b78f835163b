import { Type, type Static } from "@sinclair/typebox";
import { importReportPage } from "../../console/pages/import.tsx";
import { importRecipients } from "../../recipients/import.ts";
import { REMARKS_MAX, SENT_BYTES_MAX } from "../../recipients/file/format-and-limits.ts";
import { READ_MS_MAX } from "../../recipients/file/read-in-worker.ts";
import { findHeld } from "../../recipients/release-held-recipient.ts";
import { inTimeSlices } from "../../platform/work-in-time-slices.ts";
import { formatDuration } from "../../platform/format-numbers-and-lists.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { fileBody } from "../server/body.ts";
import { route, reply, type Form } from "../server/endpoint.ts";
import { count, named, text } from "../../platform/common-schemas.ts";
import {
  cell,
  describeNotes,
  line,
  listFormats,
  mappedQuery,
  listUpload,
  nameColumns,
  notedMembers,
  refusedMembers,
  toRefused,
  takeList,
  toNoted,
} from "./list-import-requests.ts";
import { PREVIEW_FORM, previewList, previewReport } from "./import-preview.ts";
import { consentMembers } from "../../recipients/parse-consent.ts";

/** Maximum number of column names in an import report, because in a JSON file each object may have other ones. */
const FIELDS_SHOWN_MAX = 50;

const importReport = Type.Object({
  added: count,
  updated: count,
  without_consent: Type.Integer({
    minimum: 0,
    description: "Imported recipients without consent: they get no message while REQUIRE_CONSENT is true or evidence.",
  }),
  without_evidence: Type.Integer({
    minimum: 0,
    description:
      "Imported recipients with consent but without its date or source: they get no message while REQUIRE_CONSENT is evidence.",
  }),
  revoked: Type.Integer({
    minimum: 0,
    description: "Imported recipients who had consent before, which the list revokes by the basis none.",
  }),
  template_fields: Type.Array(text("company"), { description: `The first ${FIELDS_SHOWN_MAX} template fields.` }),
  ...refusedMembers,
  duplicates: count,
  ...notedMembers,
  duplicate_rows: Type.Array(Type.Object({ line, of: line }), {
    description: `The first ${REMARKS_MAX}: the row at \`line\` replaced the one at \`of\`.`,
  }),
});

const row = named(
  "RecipientRow",
  Type.Object(
    {
      ...nameColumns,
      name: Type.Optional(cell),
      timezone: Type.Optional(
        Type.String({
          description: "The IANA name of the zone that they live in, for SEND_WINDOW_ZONE.",
          examples: ["Europe/Berlin"],
        }),
      ),
      ...consentMembers,
    },
    {
      additionalProperties: cell,
      examples: [
        {
          username: "sara_sells",
          name: "Sara",
          timezone: "Europe/Berlin",
          basis: "opt_in",
          consent_at: "2025-03-02",
          consent_source: "https://shop.example/form",
          tracking: "granted",
          company: "Acme",
        },
      ],
    },
  ),
);

const FORMATS = listFormats("recipient", row, {
  header: "(?:username|handle|id)(?:,name)?(?:,basis)?",
  csv: "username,name,basis\nsara_sells,Sara,opt_in",
  json: '{"username":"sara_sells","name":"Sara"}',
});

/**
 * Console form that imports recipients from a file. Its report quotes rows about people, so it is shown once and never
 * stored.
 */
const IMPORT_FORM: Form = {
  path: "/console/recipients",
  description: "Answers with a page that lists imported and refused rows; an unreadable file redirects back.",
  ...listUpload(SENT_BYTES_MAX),
  page: (report: Static<typeof importReport>) => importReportPage(describeNotes(report)),
};

/**
 * Maximum number of held recipients (those whose reply waits for a decision) in one answer. It is more than an operator
 * decides on in a day.
 */
const HELD_SHOWN_MAX = 1_000;

const heldRecipients = Type.Object({
  count,
  held: Type.Array(
    Type.Object({
      id: Type.Optional(text("2244994945")),
      username: Type.Optional(text("ada_builds")),
      held_at: Type.Optional(
        Type.String({ description: "When the reply came.", examples: ["2026-03-01T08:00:00.000Z"] }),
      ),
    }),
  ),
});

export function recipientEndpoints(context: HttpContext) {
  return feature("recipients", "/social")
    .post(
      "/recipients",
      async ({ request, body, call: { metadata } }) => {
        const { taken, added, withoutConsent, withoutEvidence, revoked, fields, ...remarks } = await takeList(
          context,
          { request, body },
          {},
          (rows, options) => importRecipients(context, rows, metadata, options),
        );
        return {
          added,
          updated: taken - added,
          without_consent: withoutConsent,
          without_evidence: withoutEvidence,
          revoked,
          template_fields: fields.slice(0, FIELDS_SHOWN_MAX),
          ...toRefused(remarks.refused),
          duplicates: remarks.duplicates.count,
          duplicate_rows: [...remarks.duplicates.first],
          ...toNoted(remarks.notes),
        };
      },
      route("importRecipients", "outreach", ["token", "recipients"], {
        body: fileBody(FORMATS, SENT_BYTES_MAX),
        response: { 200: reply("How many rows were imported, and which were refused.", importReport) },
        summary: "Adds or updates recipients.",
        description:
          "Columns, as on the command line: `username` (or `handle`) and/or `id`, `name`, `timezone`, `basis`, `consent_at`, `consent_source`, `consent_text`, `consent_for`, `tracking`, `tracking_at`, `tracking_source`, `tracking_text`; all others are template fields. Unusable rows are refused one by one, and the others are imported. A repeat changes nothing. One list is imported at a time (503 `overloaded` for others). " +
          `Reading takes ${formatDuration(READ_MS_MAX / 1_000)} at most, and ends when the caller hangs up.`,
        isSlow: true,
        query: mappedQuery,
        problems: ["unreadableFile"],
        form: IMPORT_FORM,
      }),
    )
    .post(
      "/recipients/preview",
      ({ request, body }) => previewList(context, { request, body }),
      route("previewImport", "outreach", ["token", "recipients"], {
        body: fileBody(FORMATS, SENT_BYTES_MAX),
        response: { 200: reply("What the import would do.", previewReport) },
        summary: "Says what the import of a list would do, and writes nothing.",
        description:
          "Takes the same list and query as the import. Names that are not known get a guess, which the answer lists for each column: pass those that are right as `map`. Rows that the import would refuse are listed with line, value and reason.",
        isSlow: true,
        query: mappedQuery,
        problems: ["unreadableFile"],
        form: PREVIEW_FORM,
      }),
    )
    .get(
      "/recipients/held",
      async ({ call }) => {
        const contacts = context.projector.state("contacts");
        const held = contacts.held === 0 ? [] : await inTimeSlices(findHeld(contacts));
        const shown = held.slice(0, HELD_SHOWN_MAX);
        call.disclosed = { records: shown.length };
        return { count: held.length, held: shown };
      },
      route("listHeldRecipients", "outreach", ["session", "read"], {
        response: { 200: reply(`The first ${HELD_SHOWN_MAX} of them.`, heldRecipients) },
        summary: "Lists recipients whose reply waits for a decision.",
        description:
          "A reply with a stop word that may mean another thing holds its sender: no run contacts them until they are suppressed or released. The log does not hold the text: read it at X.",
        personalRead: "recipients",
      }),
    );
}
