/** @jsxImportSource preact */
import type { VNode } from "preact";
import { Time } from "./document.tsx";
import type { ChatNetwork, ShownMessage } from "./shown-messages.ts";

/** The sender's name as each chat shows it. */
const AUTHORS: Readonly<Record<ChatNetwork, string>> = {
  slack: "incoming-webhook",
  discord: "Sandbox",
  google_chat: "Webhook",
  teams: "Workflows",
  telegram: "Sandbox",
  line: "Sandbox",
  whatsapp: "Sandbox",
};

/** Networks shown as bubbles, as on a phone; the others are team channels and show rows. */
const BUBBLES: readonly ChatNetwork[] = ["telegram", "line", "whatsapp"];

/** The messages of one chat as its members see them, oldest first. */
export function Chat({
  network,
  messages,
}: {
  readonly network: ChatNetwork;
  readonly messages: readonly ShownMessage[];
}): VNode {
  const author = AUTHORS[network];
  return (
    <ol class={BUBBLES.includes(network) ? "chat bubbles" : "chat rows"}>
      {messages.map((message, at) => (
        <>
          <DayHeading at={message.at} previous={messages[at - 1]?.at} />
          <li id={`${network}-${message.number}`} class="message">
            <p class="author">
              <span class={`avatar ${network}`} aria-hidden="true">
                {author.charAt(0).toUpperCase()}
              </span>
              <b>{author}</b> <span class="badge">{network === "discord" ? "bot" : "app"}</span>{" "}
              <Time at={message.at} />
            </p>
            <MessageText text={message.text} />
            {message.notes.map((note) => (
              <p class="note">{note}</p>
            ))}
          </li>
        </>
      ))}
    </ol>
  );
}

/** Heads the messages of a new day. */
export function DayHeading({ at, previous }: { readonly at: number; readonly previous: number | undefined }) {
  const day = dayOf(at);
  if (previous !== undefined && dayOf(previous) === day) return null;
  return <li class="day">{day}</li>;
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** A message's text. A separate paragraph, so that its direction marks do not affect its surroundings. */
export function MessageText({ text }: { readonly text: string }): VNode {
  return (
    <p class="text" dir="auto">
      {text}
    </p>
  );
}

/** A frame like a phone's, with the newest messages in view. */
export function Phone({ label, children }: { readonly label: string; readonly children: VNode }): VNode {
  return (
    <div class="phone" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
