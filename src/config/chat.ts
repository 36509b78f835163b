import { secret, type Secret } from "../platform/secret.ts";
import { given, type RawEnvironment } from "./environment.ts";
import type { Report } from "./error.ts";
import type { Environment } from "./schema.ts";
import { readUrl } from "./urls.ts";
import { checkWebhook, takesQuery, type ChatProvider } from "./webhook.ts";

export interface ChatConfig {
  readonly provider: ChatProvider;
  readonly webhookUrl: Secret;
}

export function readChat(values: Environment, env: RawEnvironment, report: Report): ChatConfig | undefined {
  const { CHAT_PROVIDER: provider, CHAT_WEBHOOK_URL: raw } = values;
  if (raw === undefined) {
    if (given(env, "CHAT_PROVIDER") !== undefined) {
      report.warn("CHAT_PROVIDER has no effect: CHAT_WEBHOOK_URL is not set.");
    }
    return undefined;
  }
  const webhookUrl = readUrl("CHAT_WEBHOOK_URL", raw, report, { query: takesQuery(provider) });
  checkWebhook(provider, raw, report);
  return { provider, webhookUrl: secret(webhookUrl) };
}
