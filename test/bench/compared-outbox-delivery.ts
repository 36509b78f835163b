/** Delivery of the compared outboxes: one POST to a channel with Node's own fetch. */
import type { Click } from "./receive-outbox-clicks.ts";

export const CHANNELS = ["ads", "chat", "messaging"] as const;
export type Channel = (typeof CHANNELS)[number];

const TIMEOUT_MS = 5_000;

/** Throws if the channel refuses the click. */
export async function deliver(sinks: string, channel: Channel, id: string, click: Click): Promise<void> {
  const { path, content } = requestOf(channel, id, click);
  const answer = await fetch(sinks + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(content),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  await answer.text();
  if (!answer.ok) throw new Error(`${channel} answered ${answer.status}`);
}

function requestOf(channel: Channel, id: string, click: Click): { path: string; content: object } {
  const words = `Link event: ${click.event}\nLink: ${click.domain}/${click.short_code}\nTarget: ${click.original_url}`;
  if (channel === "chat") return { path: "/slack/webhook", content: { text: words } };
  if (channel === "messaging") return { path: "/bot1:token/sendMessage", content: { chat_id: "1", text: words } };
  const user_data = { client_user_agent: click.user_agent, client_ip_address: click.ip };
  const event = {
    event_name: "PageView",
    event_time: Math.floor(Date.now() / 1000),
    event_id: id,
    event_source_url: click.original_url,
    action_source: "website",
    user_data,
  };
  return { path: "/v27.0/1/events", content: { data: [event], access_token: "token" } };
}
