import type { ExportChunk } from "../../log/export-formats/format.ts";
import { errorFields, requestFields } from "../../platform/logger.ts";
import type { AppDeps } from "../deps.ts";
import { attachment, whole, type HttpResponse } from "../server/answer.ts";
import type { RequestContext } from "../server/endpoint.ts";
import { identifyReader } from "./event-stream.ts";

export interface Download {
  /** Media type. */
  readonly type: string;
  readonly name: string;
  /** Makes the text, chunk by chunk. */
  readonly open: () => AsyncGenerator<ExportChunk, void, void>;
}

/**
 * Answers with a file, reading each chunk when its reader takes it. A fault cuts the answer off: half an export must
 * not pass for a whole one. Throws the problem 429 if the reader has too many streams open.
 */
export async function sendFile(deps: AppDeps, call: RequestContext, { type, name, open }: Download) {
  const { load, stopping, streamPace, encryptedLog, logger } = deps;
  const { request, metadata } = call;
  const { name: reader, isKnown } = identifyReader(deps, call);
  const headers = attachment(type, name);
  if (request.method === "HEAD") return whole({ status: 200, headers, body: "" });
  // Checked first, because an export that has begun can only be cut off.
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
          // Without a reason, which the server would write to stderr.
          controller.error();
        }
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  );
  return whole({ status: 200, headers, body: "", stream });
}
