import { filterIn, FILTER_WORDS, toSelection } from "../../history/log-filter.ts";
import { storedEvents, type Selection } from "../../history/select-events.ts";
import { FORMAT_NAMES, EXPORT_FORMATS, type Format } from "../../log/export-formats.ts";
import { exportText, shownBy, type ExportChunk } from "../../log/export-formats/format.ts";
import { errorFields, requestFields, withFields } from "../../platform/logger.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { discloseRecipient } from "../../privacy/read-audit.ts";
import { feature, type AppDeps } from "../deps.ts";
import { whole, type HttpResponse } from "../server/answer.ts";
import { operation, textReply } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";
import { admitStreamReader, type StreamReader } from "../streams/event-stream.ts";

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
      const reader = admitStreamReader(deps, call);
      const { searchParams } = new URL(request.url);
      const format = formatIn(searchParams);
      const selection = await selectionIn(searchParams, deps);
      call.disclosed = request.method === "HEAD" ? "nothing" : discloseRecipient(selection.recipient);
      const { type, name } = FILES[format];
      const headers = {
        "content-type": type,
        "cache-control": "no-store",
        "content-disposition": `attachment; filename="${name}"`,
      };
      if (request.method === "HEAD") return whole({ status: 200, headers, body: "" });
      // An export that has begun can only be cut off.
      await Promise.all([deps.encryptedLog.head(), deps.encryptedLog.keyring.keys.revision()]);
      const logger = withFields(deps.logger, requestFields(call.metadata));
      const stream = openStream({ ...deps, logger }, reader, selection, format);
      return whole({ status: 200, headers, body: "", stream });
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

const EITHER = new Intl.ListFormat("en-GB", { type: "disjunction" });

function formatIn(query: URLSearchParams): Format {
  const format = FORMAT_NAMES.find((name) => name === (query.get("format") ?? "jsonl"));
  if (format !== undefined) return format;
  throw problems.invalid([{ path: "?format", message: `Expected ${EITHER.format(FORMAT_NAMES)}` }]);
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

/** Each chunk is read when its reader takes it. Half an export must not pass for a whole one, so it is cut off then. */
function openStream(
  deps: AppDeps,
  { name, isKnown }: StreamReader,
  selection: Selection,
  format: Format,
): NonNullable<HttpResponse["stream"]> {
  const { encryptedLog, load, stopping, streamPace, logger } = deps;
  const onGone = load.openStream(name);
  const shown = storedEvents(encryptedLog, selection, shownBy(encryptedLog.open));
  const chunks: AsyncGenerator<ExportChunk, void, void> = exportText(shown, EXPORT_FORMATS[format]);
  const encoder = new TextEncoder();
  const end = async (): Promise<void> => {
    onGone();
    await chunks.return();
  };
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const sent = await streamPace.turn(stopping);
          stopping.throwIfAborted();
          const { done, value } = await chunks.next();
          sent(done === true ? 0 : value.events);
          if (!isKnown()) {
            await end();
            return controller.error();
          }
          if (done === true) {
            onGone();
            return controller.close();
          }
          controller.enqueue(encoder.encode(value.text));
        } catch (fault) {
          await end();
          if (!stopping.aborted) logger.error("an export failed", errorFields(fault));
          // Without a reason: the server would write it to stderr.
          controller.error();
        }
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  );
}
