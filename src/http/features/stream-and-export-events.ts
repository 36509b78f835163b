import { EVENT_TYPES } from "../../../events/event-types-and-codec.ts";
import { hideCodes } from "../../networks/hide-personal-codes.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { whole } from "../server/http-response.ts";
import { route, textReply } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";
import { openEventStream, openPositionStream, identifyReader, type EventStreamQuery } from "../streams/event-stream.ts";
import { filterIn, FILTER_WORDS, toSelection } from "../../history/log-filter.ts";
import { storedEvents } from "../../history/select-events.ts";
import { FORMAT_NAMES, EXPORT_FORMATS, type Format } from "../../log/export-formats.ts";
import { exportText, shownBy, type Show } from "../../log/export-formats/write-export-text.ts";
import { discloseRecipient } from "../../privacy/record-personal-data-read.ts";
import { choiceIn, parseGiven, refuseQuery } from "../server/refuse-invalid-query.ts";
import { sendFile } from "../streams/file-stream.ts";

export function eventEndpoints(context: HttpContext) {
  const { eventLog, load, stopping, projector, streamPace } = context;
  return feature("events", "").get(
    "/events",
    ({ request, call }) => {
      const { name, isKnown } = identifyReader(context, call);
      const query = parseQuery(request, projector.position);
      const headers = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };
      if (query.isOfPositions) call.disclosed = "nothing";
      // A HEAD request has no body, so the stream would have no reader to end it.
      if (request.method === "HEAD") return whole({ status: 200, headers, body: "" });
      const onGone = load.openStream(name);
      const stream = query.isOfPositions
        ? openPositionStream(() => projector.position, query.from, stopping, { isKnown, onGone })
        : openEventStream(eventLog.store, query, stopping, { isKnown, onGone, pace: streamPace });
      return whole({ status: 200, headers, body: "", stream });
    },
    route("followEvents", "service", ["session", "read"], {
      response: { 200: textReply("The events.", { mediaType: "text/event-stream" }) },
      personalRead: "stream",
      summary: "Follows the log.",
      description:
        "Server-Sent Events: each event of the log is a message with its position as `id` and the event as JSON. Begins with " +
        "the next event, or at `from` or `Last-Event-ID`, without gaps or repeats. Needs a token or a console session once a " +
        "token is configured, and ends when that is revoked.",
      query: {
        from: "The first position; `Last-Event-ID`, which browsers send when they reconnect, takes precedence.",
        type: "Only events of this type; may be given several times.",
        stream: "Only events of this stream.",
        only: "`position`: sends only the log's position, at most once a second, and no events.",
      },
      problems: ["invalid", "tooManyStreams"],
      isSlow: true,
    }),
  );
}

/** Parses the query of an event stream. Throws the problem 422 if it is invalid. */
function parseQuery(
  { url, headers }: Request,
  position: number,
): EventStreamQuery & { readonly isOfPositions: boolean } {
  const { searchParams } = new URL(url);
  const last = headers.get("last-event-id") ?? "";
  const from = searchParams.get("from");
  if (from !== null && !POSITION.test(from))
    throw problems.invalid([{ path: "?from", message: "Expected a position" }]);
  const only = searchParams.get("only");
  if (only !== null && only !== "position") throw problems.invalid([{ path: "?only", message: "Expected position" }]);
  const types = searchParams.getAll("type").map((wanted) => {
    const type = EVENT_TYPES.find((known) => known === wanted);
    if (type === undefined) throw problems.invalid([{ path: "?type", message: "Expected a type of event" }]);
    return type;
  });
  const stream = searchParams.get("stream");
  return {
    isOfPositions: only !== null,
    from: POSITION.test(last) ? Number(last) + 1 : Number(from ?? position + 1),
    ...(types.length === 0 ? {} : { types }),
    ...(stream === null ? {} : { stream }),
  };
}

const POSITION = /^\d{1,15}$/;

/** Media type and file name of an export of events, by its format. */
const FILES: Readonly<Record<Format, { readonly type: string; readonly name: string }>> = {
  jsonl: { type: "application/x-ndjson", name: "reachlog-events.jsonl" },
  csv: { type: "text/csv; charset=utf-8", name: "reachlog-events.csv" },
  cloudevents: { type: "application/x-ndjson", name: "reachlog-events.cloudevents.jsonl" },
};

export function exportEndpoints(context: HttpContext) {
  return feature("exports", "/api/audit").get(
    "/export",
    async ({ request, call }) => {
      const { encryptedLog } = context;
      const { searchParams } = new URL(request.url);
      const format = choiceIn(searchParams, "format", FORMAT_NAMES, "jsonl");
      const selection = await selectionIn(searchParams, context);
      call.disclosed = discloseRecipient(selection.recipient);
      const openStored = shownBy(encryptedLog.open);
      const show: Show = async (stored) => (await openStored(stored)).map(hideCodes);
      const open = () => exportText(storedEvents(encryptedLog, selection, show), EXPORT_FORMATS[format]);
      return sendFile(context, call, { ...FILES[format], open });
    },
    route("exportEvents", "service", ["session", "read"], {
      response: {
        200: textReply("The events.", {
          mediaType: "application/x-ndjson",
          otherMediaTypes: ["text/csv"],
          headers: ["content-disposition"],
        }),
      },
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
  );
}

/** Parses the query of an export into a selection of events. Throws the problem 422 for an invalid filter. */
async function selectionIn(query: URLSearchParams, { encryptedLog: store, projector, config }: HttpContext) {
  const { timezone } = config.outreach;
  const reading = { store, contacts: () => projector.state("contacts"), timezone, position: projector.position };
  return parseGiven(() => toSelection(filterIn(query), reading), refuseQuery);
}
