import type { ExportChunk } from "../../log/export-formats/format.ts";
import { errorFields, requestFields, withFields } from "../../platform/logger.ts";
import type { AppDeps } from "../deps.ts";
import { attachment, whole, type HttpResponse } from "../server/answer.ts";
import type { RequestContext } from "../server/endpoint.ts";
import type { StreamReader } from "./event-stream.ts";

export interface Download {
  /** Media type. */
  readonly type: string;
  readonly name: string;
  /** Makes the text, chunk after chunk. */
  readonly open: () => AsyncGenerator<ExportChunk, void, void>;
}

/** Answers with a file, at the pace of its reader. Throws the problem 429 when the reader has too many streams open. */
export async function sendFile(
  deps: AppDeps,
  call: RequestContext,
  reader: StreamReader,
  { type, name, open }: Download,
) {
  const headers = attachment(type, name);
  if (call.request.method === "HEAD") return whole({ status: 200, headers, body: "" });
  // An export that has begun can only be cut off.
  await Promise.all([deps.encryptedLog.head(), deps.encryptedLog.keyring.keys.revision()]);
  const logger = withFields(deps.logger, requestFields(call.metadata));
  const stream = openStream({ ...deps, logger }, reader, open);
  return whole({ status: 200, headers, body: "", stream });
}

/** Each chunk is read when its reader takes it. Half an export must not pass for a whole one, so it is cut off then. */
function openStream(
  { load, stopping, streamPace, logger }: AppDeps,
  { name, isKnown }: StreamReader,
  open: Download["open"],
): NonNullable<HttpResponse["stream"]> {
  const onGone = load.openStream(name);
  const chunks = open();
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
