// Checks a range of a log in a PostgreSQL database; started by start-verification-thread.ts.
import { answerTask } from "../thread-task.ts";
import type { Range } from "../sqlite/verify/check-result-types.ts";
import { checkRange } from "./verify-event-range.ts";
import { openReader, TASK_MS_MAX } from "./database-reader.ts";

export interface CheckOrder extends Range {
  readonly url: string;
  readonly schema: string;
}

await answerTask(async ({ url, schema, ...range }: CheckOrder, onProgress) => {
  const reader = openReader(url, schema, { role: "verifier", statementMs: TASK_MS_MAX });
  try {
    return await checkRange(reader, range, onProgress);
  } finally {
    await reader.close();
  }
});
