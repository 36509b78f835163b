import type { Secret } from "../platform/secret.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import type { Channel } from "./network.ts";
import { JSON_BODY, type SafeFetch } from "./safe-fetch.ts";
import { classifyTeamsAnswer } from "./teams-answers.ts";
import { teamsMessage } from "./teams-card.ts";
import { wordDispatch } from "./wording.ts";

export interface TeamsOptions {
  /** The trigger's URL, whose `sig` is the credential. */
  readonly webhookUrl: Secret;
  readonly safeFetch: SafeFetch;
}

/**
 * A Teams workflow as the chat channel. What is delivered was taken by the workflow; whether it then posted it, only
 * its run history tells.
 */
export function createTeamsChannel({ webhookUrl, safeFetch }: TeamsOptions): Channel {
  return {
    name: "chat",
    network: "teams",
    credential: webhookUrl,
    async send(dispatch, { timeoutMs }) {
      try {
        const answer = await safeFetch(webhookUrl.reveal(), {
          method: "POST",
          headers: JSON_BODY,
          body: teamsMessage(wordDispatch(dispatch)),
          timeoutMs,
        });
        return classifyTeamsAnswer(answer);
      } catch (fault) {
        return resultOfFault(fault, { deduplicates: false });
      }
    },
    async check(timeoutMs) {
      try {
        // Any request to the address itself would start the workflow, so only its host is asked.
        const { origin } = new URL(webhookUrl.reveal());
        await safeFetch(`${origin}/`, { method: "GET", timeoutMs });
        return {
          ok: true,
          detail:
            "the host answers; a workflow cannot be asked without posting: send a test (POST /api/tracking/test) and look for it in the channel",
        };
      } catch (fault) {
        return checkOfFault(fault);
      }
    },
  };
}
