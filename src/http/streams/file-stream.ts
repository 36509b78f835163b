import type { ExportChunk } from "../../log/export-formats/write-export-text.ts";
import { errorFields, requestFields } from "../../platform/logger.ts";
import type { HttpContext } from "../http-context.ts";
import { attachment, whole, type HttpResponse } from "../server/http-response.ts";
import type { RequestContext } from "../server/endpoint.ts";
import { identifyReader } from "./event-stream.ts";

export interface Download {
  /** Media type of the file. */
  readonly type: string;
  readonly name: string;
  /** Starts the file's text, and returns it in chunks. */
  readonly open: () => AsyncGenerator<ExportChunk, void, void>;
}

/**
 * Answers with a file, each chunk of which is made when the caller reads it. After a fault the response breaks off,
 * because half an export must not look complete. Throws the problem 429 if the caller has too many streams open.
 */
export async function sendFile(context: HttpContext, call: RequestContext, { type, name, open }: Download) {
  const { load, stopping, streamPace, encryptedLog, logger } = context;
  const { request, metadata } = call;
  const { name: reader, isKnown } = identifyReader(context, call);
  const headers = attachment(type, name);
  if (request.method === "HEAD") return whole({ status: 200, headers, body: "" });
  // The log and the keys are checked first, because an export that has begun can only be broken off.
  await Promise.all([encryptedLog.head(), encryptedLog.keyring.keys.revision()]);
  const onGone = load.openStream(reader);
  const chunks = open();
  const encoder = new TextEncoder();
  const end = async (): Promise<void> => {
    onGone();
    await chunks.return();
  };
  const stream: HttpResponse["stream"] = new ReadableStream(
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
          if (!stopping.aborted)
            logger.error("an export failed", { ...requestFields(metadata), ...errorFields(fault) });
          // No reason is given, because the server would write it to stderr.
          controller.error();
        }
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  );
  return whole({ status: 200, headers, body: "", stream });
}
