import type { Recorded } from "../../events/catalog.ts";
import { requestFields, type Logger } from "../platform/logger.ts";
import type { Projector } from "../projector/projector.ts";

/**
 * Logs a line for the operator when a channel is suspended or resumed and when a run begins or ends: by this service, by
 * a command, or by another instance.
 */
export function logChanges(projector: Pick<Projector, "listen">, logger: Logger): Disposable {
  return { [Symbol.dispose]: projector.listen((event) => logChange(event, logger)) };
}

function logChange({ type, position, data, meta }: Recorded, logger: Logger): void {
  switch (type) {
    case "ChannelSuspended": {
      const { channel, network, detail } = data;
      return logger.warn("a channel is suspended", { position, channel, network, detail, ...requestFields(meta) });
    }
    case "ChannelResumed":
      return logger.info("a channel is resumed", {
        position,
        channel: data.channel,
        why: data.why,
        ...requestFields(meta),
      });
    case "RunStarted":
      return logger.info("a run has started", {
        position,
        run_id: data.run_id,
        dry_run: data.dry_run,
        ...requestFields(meta),
      });
    case "RunFinished": {
      const { run_id, reason, sent, skipped, failed, in_doubt } = data;
      return logger.info("a run has ended", {
        position,
        run_id,
        reason,
        sent,
        skipped,
        failed,
        in_doubt,
        ...requestFields(meta),
      });
    }
    case "DryRunFinished":
      return logger.info("a dry run has ended", {
        position,
        run_id: data.run_id,
        reason: data.reason,
        ...requestFields(meta),
      });
    case "RunAbandoned": {
      const { run_id, sent, skipped, failed, in_doubt } = data;
      const counts = { sent, skipped, failed, in_doubt };
      return logger.warn("a run has ended with its process", { position, run_id, ...counts, ...requestFields(meta) });
    }
    default:
  }
}
