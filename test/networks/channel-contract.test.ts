// These tests call the code directly.
import type { Rendered } from "../../sandbox/render-chat-markup.ts";
import { describeChannel } from "./channel-contract.ts";

/**
 * Look-alike of a formatting character -> the character. Networks without an escape character get the look-alike
 * instead.
 */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  "∗": "*",
  ˍ: "_",
  "∼": "~",
  ˋ: "`",
  "‹": "<",
  "›": ">",
  "‐": "-",
};

function asWritten({ text, marks }: Rendered): Rendered {
  return { text: text.replace(/[∗ˍ∼ˋ‹›‐]/gu, (mark) => LOOK_ALIKES[mark] ?? mark), marks };
}

const textOnly = ({ text }: { readonly text: string }): Rendered => ({ text, marks: [] });

/** Returns a function that spoils a credential: it replaces the last character of the setting `name`. */
const withWrong = (name: string) => (settings: Record<string, string>) => ({
  ...settings,
  [name]: (settings[name] ?? "").replace(/.$/, (last) => (last === "0" ? "1" : "0")),
});

describeChannel({
  network: "slack",
  channel: "chat",
  choice: { chat: "slack" },
  deduplicates: false,
  permanent: ["channel_archived", "action_prohibited"],
  wrong: withWrong("CHAT_WEBHOOK_URL"),
  texts: ({ slack }) => slack.messages.kept.map(({ shown, marks }) => ({ text: shown, marks })),
  arrived: ({ slack }) => slack.messages.total,
  secrets: ({ slack }) => [slack.path, "sandboxWebhookSecret"],
  limit: ({ slack }, most) => (slack.limit = most),
  checks: true,
});

describeChannel({
  network: "discord",
  channel: "chat",
  choice: { chat: "discord" },
  deduplicates: false,
  permanent: ["webhook_deleted"],
  wrong: withWrong("CHAT_WEBHOOK_URL"),
  texts: ({ discord }) => discord.messages.kept.map(({ text, marks }) => ({ text, marks })),
  arrived: ({ discord }) => discord.messages.total,
  secrets: ({ discord }) => [discord.webhookToken],
  limit: ({ discord }, most) => (discord.limit = most),
  checks: true,
});

describeChannel({
  network: "google_chat",
  channel: "chat",
  choice: { chat: "google_chat" },
  deduplicates: false,
  permanent: ["space_deleted"],
  wrong: withWrong("CHAT_WEBHOOK_URL"),
  texts: ({ googleChat }) => googleChat.messages.kept.map(asWritten),
  arrived: ({ googleChat }) => googleChat.messages.total,
  secrets: ({ googleChat }) => [googleChat.key, googleChat.token],
  limit: ({ googleChat }, most) => (googleChat.limit = most),
  checks: true,
});

describeChannel({
  network: "teams",
  channel: "chat",
  choice: { chat: "teams" },
  deduplicates: false,
  statusSuffices: true,
  permanent: ["workflow_deleted", "workflow_off"],
  wrong: withWrong("CHAT_WEBHOOK_URL"),
  // The channel sends an empty line as a non-breaking space.
  texts: ({ teams }) => teams.messages.kept.map(({ text, marks }) => ({ text: text.replace(/^\u00a0$/gm, ""), marks })),
  // The workflow accepted some messages without posting them. These have not arrived.
  arrived: ({ teams }) => teams.messages.total - teams.failures.total,
  secrets: ({ teams }) => [teams.signature, teams.workflow],
  limit: ({ teams }, most) => (teams.limit = most),
  checks: false,
});

describeChannel({
  network: "telegram",
  channel: "messaging",
  choice: { messaging: "telegram" },
  deduplicates: false,
  permanent: ["channel_archived", "bot_blocked"],
  wrong: withWrong("TELEGRAM_BOT_TOKEN"),
  // The channel may encode an `@` in an address. The address leads to the same page.
  texts: ({ telegram }) =>
    telegram.messages.kept.map(({ shown, marks }) => ({ text: shown.replaceAll("%40", "@"), marks })),
  arrived: ({ telegram }) => telegram.messages.total,
  secrets: ({ telegram }) => [telegram.botToken],
  limit: ({ telegram }, most) => (telegram.limit = most),
  checks: true,
});

describeChannel({
  network: "line",
  channel: "messaging",
  choice: { messaging: "line" },
  deduplicates: true,
  permanent: ["monthly_limit"],
  wrong: withWrong("LINE_CHANNEL_ACCESS_TOKEN"),
  texts: ({ line }) => line.messages.kept.map(textOnly),
  arrived: ({ line }) => line.messages.total,
  secrets: ({ line }) => [line.accessToken, line.to],
  limit: ({ line }, most) => (line.limit = most),
  checks: true,
});

describeChannel({
  network: "whatsapp",
  channel: "messaging",
  choice: { messaging: "whatsapp" },
  deduplicates: false,
  pauseMs: 1_000,
  permanent: ["window_closed", "account_locked"],
  wrong: withWrong("WHATSAPP_ACCESS_TOKEN"),
  texts: ({ whatsapp }) => whatsapp.messages.kept.map(({ shown, marks }) => asWritten({ text: shown, marks })),
  arrived: ({ whatsapp }) => whatsapp.messages.total,
  secrets: ({ whatsapp }) => [whatsapp.accessToken, whatsapp.to],
  limit: ({ whatsapp }, most) => (whatsapp.limit = most),
  checks: true,
});

describeChannel({
  network: "meta",
  channel: "ads",
  choice: {},
  deduplicates: true,
  pauseMs: 60_000,
  permanent: [],
  wrong: withWrong("META_ACCESS_TOKEN"),
  arrived: ({ meta }) => meta.events.total,
  secrets: ({ meta }) => [meta.accessToken],
  checks: true,
});

/**
 * Returns the number of tests at an ads network. The event by which a check asks if the credential is valid does not
 * count.
 */
const countTests = (ids: ReadonlySet<string>): number => [...ids].filter((id) => !id.endsWith("reachlog-check")).length;

describeChannel({
  network: "openai",
  channel: "ads-openai",
  choice: { ads: ["openai"] },
  deduplicates: true,
  statusSuffices: true,
  permanent: [],
  wrong: withWrong("OPENAI_ADS_API_KEY"),
  arrived: ({ openai }) => openai.events.total + countTests(openai.validated),
  secrets: ({ openai }) => [openai.accessToken],
  checks: true,
});

describeChannel({
  network: "snap",
  channel: "ads-snap",
  choice: { ads: ["snap"] },
  deduplicates: true,
  statusSuffices: true,
  permanent: [],
  wrong: withWrong("SNAP_ACCESS_TOKEN"),
  arrived: ({ snap }) => snap.events.total + countTests(snap.validated),
  secrets: ({ snap }) => [snap.accessToken],
  checks: true,
});
