import type { CredentialCheck, DispatchResult } from "./network.ts";
import { NetworkFault } from "./network-fault.ts";
import { parseRetryAfter } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

/** As in {@link DispatchResult}. */
interface Accepted {
  readonly networkId?: string | undefined;
  readonly pauseMs?: number | undefined;
}

/** What the answers of one network mean: all in which it differs from the others. */
export interface AnswerRules {
  /** What a delivered dispatch is recorded with; undefined where the answer does not prove that it was taken. */
  accepted(answer: NetworkAnswer): Accepted | undefined;
  /** The answer in a few words, which hold neither a credential nor personal data. */
  describe(answer: NetworkAnswer): string;
  /** Whether a refusal would meet every other dispatch too: a revoked credential, an archived channel. */
  refusesChannel(answer: NetworkAnswer): boolean;
  /** Whether the network asks to slow down, so that nothing was delivered. Absent: it does so by a 429. */
  isRateLimit?(answer: NetworkAnswer): boolean;
  /** Whether the dispatch may have arrived. Absent: the status decides. */
  isUncertain?(answer: NetworkAnswer): boolean;
  /** How long to wait before the next attempt. Absent: what `Retry-After` asks for. */
  retryAfterMs?(answer: NetworkAnswer): number | undefined;
}

/**
 * What an answer means for a dispatch. Only a rate limit and a plain refusal prove that nothing was delivered; the rest
 * may be repeated only where the network recognises a repeat (`deduplicates`).
 */
export function classifyAnswer(answer: NetworkAnswer, rules: AnswerRules, deduplicates = false): DispatchResult {
  const { status } = answer;
  const accepted = rules.accepted(answer);
  if (accepted !== undefined) return delivered(status, accepted);
  const failed = { status, detail: rules.describe(answer) };
  const wait = rules.retryAfterMs === undefined ? parseRetryAfter(answer.headers) : rules.retryAfterMs(answer);
  const retryable = { outcome: "retryable", ...failed, ...(wait === undefined ? {} : { retryAfterMs: wait }) } as const;
  if (rules.isRateLimit?.(answer) ?? status === 429) return retryable;
  if (rules.isUncertain?.(answer) ?? isUncertainStatus(status)) {
    return deduplicates ? { ...retryable, mayHaveArrived: true } : { outcome: "in_doubt", ...failed };
  }
  return { outcome: "refused", ...failed, channel: rules.refusesChannel(answer) };
}

function delivered(status: number, { networkId, pauseMs }: Accepted): DispatchResult {
  const id = networkId === undefined ? {} : { networkId };
  return { outcome: "delivered", status, ...id, ...(pauseMs === undefined ? {} : { pauseMs }) };
}

/** Everything but a refusal; 408 leaves open how much the server understood. */
function isUncertainStatus(status: number): boolean {
  return status < 400 || status === 408 || status >= 500;
}

/** What one request means for a dispatch, whether an answer comes or not. */
export async function toDispatchResult(
  request: Promise<NetworkAnswer>,
  rules: AnswerRules,
  deduplicates = false,
): Promise<DispatchResult> {
  try {
    return classifyAnswer(await request, rules, deduplicates);
  } catch (fault) {
    const { kind, certainlyNotSent, message: detail } = expectNetworkFault(fault);
    if (kind === "forbidden") return { outcome: "refused", detail, channel: true };
    if (certainlyNotSent) return { outcome: "retryable", detail };
    return deduplicates ? { outcome: "retryable", detail, mayHaveArrived: true } : { outcome: "in_doubt", detail };
  }
}

/** What a check finds; where no answer comes, that is the finding. */
export async function checked(check: () => Promise<CredentialCheck>): Promise<CredentialCheck> {
  try {
    return await check();
  } catch (fault) {
    return { ok: false, detail: expectNetworkFault(fault).message };
  }
}

/** Anything else is a defect of ours and thrown on. */
function expectNetworkFault(fault: unknown): NetworkFault {
  if (fault instanceof NetworkFault) return fault;
  throw fault;
}
