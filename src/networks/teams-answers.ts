import { Type } from "@sinclair/typebox";
import { readJson } from "./json-answer.ts";
import type { DispatchResult } from "./network.ts";
import { retryAfterOf } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

const REFUSED = Type.Object({ error: Type.Object({ code: Type.String({ pattern: "^[A-Za-z]{1,80}$" }) }) });

/** Signature refused, flow or environment gone. */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405, 410]);

/** With other statuses: the flow is switched off, or its address wants another way of signing in. */
const CHANNEL_CODES = /^(?:DirectApi|Workflow\w*(?:Disabled|NotEnabled|NotFound|Suspended))/;

/** What a run is found by in the flow's history. */
const RUN = /^\w{1,100}$/;

/**
 * What a workflow's answer means. A 202 says that the workflow took the message: whether it posted it shows in its run
 * history alone, where `networkId` names the run. It does not de-duplicate: only a 429 and a plain refusal prove that
 * nothing was started. A 200 counts where the flow was built to answer by itself, which its header tells.
 */
export function classifyTeamsAnswer(answer: NetworkAnswer): DispatchResult {
  const { status, headers } = answer;
  const run = RUN.exec(headers.get("x-ms-workflow-run-id") ?? "")?.[0];
  if (status === 202 || (status === 200 && run !== undefined)) {
    return { outcome: "delivered", status, ...(run === undefined ? {} : { networkId: run }) };
  }
  const detail = describeTeams(answer);
  if (status === 429) {
    const pause = retryAfterOf(headers);
    return { outcome: "retryable", status, detail, ...(pause === undefined ? {} : { retryAfterMs: pause }) };
  }
  // 408 leaves open how much the server had understood.
  if (status < 400 || status === 408 || status >= 500) return { outcome: "in_doubt", status, detail };
  const channel = CHANNEL_STATUSES.has(status) || CHANNEL_CODES.test(codeOf(answer) ?? "");
  return { outcome: "refused", status, detail, channel };
}

/** The status with the code; never the words, which can name the flow's address. */
function describeTeams(answer: NetworkAnswer): string {
  const code = codeOf(answer);
  return `The Teams workflow answered ${answer.status}${code === undefined ? "" : ` ${code}`}`;
}

function codeOf({ text }: NetworkAnswer): string | undefined {
  return readJson(REFUSED, text)?.error.code;
}
