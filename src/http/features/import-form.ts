import { importReportPage } from "../../console/import.tsx";
import { formatOfName, type RecipientsFormat } from "../../outreach/recipients-file/format.ts";
import { SENT_BYTES_MAX } from "../../outreach/recipients-file/limits.ts";
import { redirect } from "../server/answer.ts";
import { checkFormToken, commonFields, faultNotice, showInPlace, type FormDeps } from "./console-form.ts";
import { post } from "../server/endpoint.ts";
import { Problem, problems } from "../server/problem.ts";
import { importList, takeList, type RecipientsDeps } from "./recipients.ts";
import { uploadBody } from "../server/upload.ts";

/** Of the fields and the marks between them, beside the file. */
const FORM_BYTES_MAX = 64 * 1024;

const upload = uploadBody(commonFields, SENT_BYTES_MAX + FORM_BYTES_MAX);

const MIB = 1024 * 1024;

/** For people: they chose a file, and know of no body. */
function explain(fault: unknown): never {
  if (!(fault instanceof Problem) || fault.status !== 413) throw fault;
  const words = `The file is larger than ${SENT_BYTES_MAX / MIB} MiB. Nothing was taken: send it in parts, or import it by the command line.`;
  throw fault.with({}, { words, wayOn: { href: "/people", label: "Back to the people" } });
}

/** Chosen in a browser. Its report is the answer, and kept nowhere: it repeats what stands in other people's rows. */
export const importByForm = post({
  id: `${importList.id}ByForm`,
  does: importList.id,
  tag: "console",
  summary: `${importList.summary} As a form of the console.`,
  description: "Answers the page that says what was taken and what was refused; a file that cannot be read leads back.",
  body: { ...upload, read: (request) => upload.read(request).catch(explain) },
  isSlow: true,
  answers: {
    200: { says: "The page that says what was taken.", mediaType: "text/html" },
    303: { says: "Back to the page.", headers: ["location", "set-cookie"] },
  },
  problems: ["unauthorized", "foreignSite"],
  async handle(deps: RecipientsDeps & FormDeps, { request, body: { fields, file }, metadata }) {
    checkFormToken(deps, request, fields.form_token);
    try {
      const { signal } = request;
      const report = await takeList(deps, { file: file.bytes, format: formatOf(file.kind), signal, metadata });
      return await showInPlace(deps, request, importReportPage(report));
    } catch (fault) {
      return redirect(303, fields.back, { "set-cookie": deps.notices.give(faultNotice(fault)) });
    }
  },
});

/** Throws the problem 422 for what is none by its name. */
function formatOf(name: string): RecipientsFormat {
  const format = formatOfName(name);
  if (format === "workbook") throw problems.unreadableFile('this is a workbook: save it as CSV ("CSV UTF-8")');
  if (format === undefined) throw problems.unreadableFile("the file's name does not end in .csv, .json or .jsonl");
  return format;
}
