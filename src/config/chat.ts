import { secret } from "../platform/secret.ts";
import { readSetting, type RawEnvironment } from "./environment.ts";
import type { Report } from "./error.ts";
import type { Environment } from "./schema.ts";
import { parseHttpUrl, readUrl } from "./urls.ts";

type ChatProvider = Environment["CHAT_PROVIDER"];

export type ChatConfig = NonNullable<ReturnType<typeof readChat>>;

export function readChat(values: Environment, env: RawEnvironment, report: Report) {
  const { CHAT_PROVIDER: provider, CHAT_WEBHOOK_URL: raw } = values;
  if (raw === undefined) {
    if (readSetting(env, "CHAT_PROVIDER") !== undefined) {
      report.warn("CHAT_PROVIDER has no effect: CHAT_WEBHOOK_URL is not set.");
    }
    return undefined;
  }
  const webhookUrl = readUrl("CHAT_WEBHOOK_URL", raw, report, { query: takesQuery(provider) });
  checkWebhook(provider, raw, report);
  return { provider, webhookUrl: secret(webhookUrl) };
}

const HOSTS: readonly (readonly [RegExp, ChatProvider])[] = [
  [/^hooks\.slack(?:-gov)?\.com$/, "slack"],
  [/^(?:ptb\.|canary\.)?discord(?:app)?\.com$/, "discord"],
  [/^chat\.googleapis\.com$/, "google_chat"],
  [/\.logic\.azure\.com$|\.api\.powerplatform\.com$/, "teams"],
];

/** Microsoft turned the connectors of Office 365 off in 2026: https://aka.ms/O365ConnectorDeprecation */
const RETIRED_HOST = /\.webhook\.office\.com$|^outlook\.office(?:365)?\.com$/;

interface Form {
  readonly path: RegExp;
  /** Parts of the query that the network needs to authenticate us. */
  readonly query: readonly string[];
  readonly wanted: string;
}

const FORMS: Readonly<Record<ChatProvider, Form>> = {
  // Slack's workflows have addresses of the same host, and take no messages: they answer `ok` to nothing.
  slack: { path: /^\/(?!triggers\/|workflows\/)/, query: [], wanted: "https://hooks.slack.com/services/T…/B…/…" },
  discord: {
    path: /\/api(?:\/v\d+)?\/webhooks\/\d+\/[\w-]+$/,
    query: [],
    wanted: "https://discord.com/api/webhooks/ID/TOKEN, and ?thread_id=ID where a thread is meant",
  },
  google_chat: {
    path: /\/v1\/spaces\/[^/]+\/messages$/,
    query: ["key", "token"],
    wanted: "https://chat.googleapis.com/v1/spaces/SPACE/messages?key=…&token=…",
  },
  teams: { path: /\/paths\/invoke$/, query: ["sig"], wanted: "the URL of the workflow's trigger, with its sig=…" },
};

/** Webhooks of two networks carry their secret in the query, and Discord's may name a thread there. */
function takesQuery(provider: ChatProvider): boolean {
  return provider !== "slack";
}

/** Refuses an address of another network, which would look like a dead channel. */
function checkWebhook(provider: ChatProvider, raw: string, report: Report): void {
  const url = parseHttpUrl(raw);
  if (url === undefined) return;
  const { path, query, wanted } = FORMS[provider];
  const owner = HOSTS.find(([host]) => host.test(url.hostname))?.[1];
  if (owner !== undefined && owner !== provider) {
    report.fault("CHAT_WEBHOOK_URL", `an address of ${owner}, but CHAT_PROVIDER is ${provider}`, wanted);
  } else if (RETIRED_HOST.test(url.hostname)) {
    report.fault("CHAT_WEBHOOK_URL", "an Office 365 connector, which Microsoft has turned off", FORMS.teams.wanted);
  } else if (!path.test(url.pathname) || query.some((name) => !url.searchParams.has(name))) {
    report.fault("CHAT_WEBHOOK_URL", `no address of a ${provider} webhook`, wanted);
  }
}
