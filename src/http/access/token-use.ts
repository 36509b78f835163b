import { DAY_MS, toDay } from "../../../projections/parse-log-times.ts";
import { toTokenId, type ApiToken } from "../../config/parse-api-tokens.ts";
import { SERVICE_METADATA, STREAMS, type LogContext } from "../../log/event-log.ts";
import { errorFields } from "../../platform/logger.ts";

/**
 * Time in ms after a failed record until the token's next use is recorded, so that an unreachable log causes few log
 * lines.
 */
const RETRY_MS = 60_000;

/**
 * Records the first use of each API token on each UTC day, once for all instances of a log. `note` returns at once.
 * Disposing it waits until all noted uses are recorded.
 */
export function recordTokenUse({ eventLog, sleep, logger }: LogContext) {
  let noted = new Set<ApiToken>();
  let dayEnd = -Infinity;
  const stopping = new AbortController();
  let recording = Promise.resolve();

  const record = async (token: ApiToken, day: string): Promise<void> => {
    const { name, sha256 } = token;
    const token_id = toTokenId(sha256);
    try {
      const key = `token-used/${token_id}/${day}`;
      await eventLog.append(STREAMS.access, [{ type: "TokenUsed", data: { name, token_id, day } }], SERVICE_METADATA, {
        key,
      });
    } catch (fault) {
      logger.warn("the use of a token could not be recorded", errorFields(fault));
      await sleep(RETRY_MS, stopping.signal);
      noted.delete(token);
    }
  };

  return {
    note(token: ApiToken, now: number): void {
      if (now < dayEnd && noted.has(token)) return;
      if (now >= dayEnd) noted = new Set();
      noted.add(token);
      dayEnd = (Math.floor(now / DAY_MS) + 1) * DAY_MS;
      const recorded = record(token, toDay(now));
      recording = recording.then(() => recorded);
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await recording;
    },
  };
}
