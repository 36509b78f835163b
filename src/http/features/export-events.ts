import { filterIn, FILTER_WORDS, toSelection } from "../../history/log-filter.ts";
import { storedEvents, type Selection } from "../../history/select-events.ts";
import { FORMAT_NAMES, EXPORT_FORMATS, type Format } from "../../log/export-formats.ts";
import { exportText, shownBy } from "../../log/export-formats/format.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { discloseRecipient } from "../../privacy/read-audit.ts";
import { feature, type AppDeps } from "../deps.ts";
import { operation, textReply } from "../server/endpoint.ts";
import { choiceIn } from "../server/query.ts";
import { problems } from "../server/problem.ts";
import { admitStreamReader } from "../streams/event-stream.ts";
import { sendFile } from "../streams/file-stream.ts";

/** Media types, and how a file of it is called. */
const FILES: Readonly<Record<Format, { readonly type: string; readonly name: string }>> = {
  jsonl: { type: "application/x-ndjson", name: "reachlog-events.jsonl" },
  csv: { type: "text/csv; charset=utf-8", name: "reachlog-events.csv" },
  cloudevents: { type: "application/x-ndjson", name: "reachlog-events.cloudevents.jsonl" },
};

export function exportEndpoints(deps: AppDeps) {
  return feature("exports", "/api/audit").get(
    "/export",
    async ({ request, call }) => {
      const { encryptedLog } = deps;
      const reader = admitStreamReader(deps, call);
      const { searchParams } = new URL(request.url);
      const format = choiceIn(searchParams, "format", FORMAT_NAMES, "jsonl");
      const selection = await selectionIn(searchParams, deps);
      call.disclosed = discloseRecipient(selection.recipient);
      const open = () =>
        exportText(storedEvents(encryptedLog, selection, shownBy(encryptedLog.open)), EXPORT_FORMATS[format]);
      return sendFile(deps, call, reader, { ...FILES[format], open });
    },
    {
      response: {
        200: textReply("The events.", {
          mediaType: "application/x-ndjson",
          otherMediaTypes: ["text/csv"],
          headers: ["content-disposition"],
        }),
      },
      detail: operation("exportEvents", "service", ["session", "read"], {
        personalRead: "export",
        summary: "Exports events of the log, one per line.",
        description:
          "Like `reachlog audit export`: in the order of the log, up to its end at the time of the request, at the reader's " +
          "pace. An incomplete answer is cut off, not closed. Needs a token or a console session once a token is configured, " +
          "and is cut off when that is revoked.",
        query: { ...FILTER_WORDS, format: "`jsonl` (JSON Lines, the default), `csv` or `cloudevents`." },
        problems: ["invalid", "tooManyStreams"],
        isSlow: true,
      }),
    },
  );
}

/** Throws the problem 422. */
async function selectionIn(
  query: URLSearchParams,
  { encryptedLog: store, projector, timezone }: AppDeps,
): Promise<Selection> {
  try {
    const contacts = () => projector.state("contacts");
    return await toSelection(filterIn(query), { store, contacts, timezone, position: projector.position });
  } catch (fault) {
    if (!(fault instanceof ServiceError) || fault.kind !== "usage") throw fault;
    throw problems.invalid([{ path: "?", message: fault.message }]);
  }
}
