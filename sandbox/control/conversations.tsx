/** @jsxImportSource preact */
import type { VNode } from "preact";
import { conversationOf } from "../x/messages.ts";
import type { DirectMessage, XState } from "../x/state.ts";
import { DayHeading, MessageText } from "./chat.tsx";
import { counted, pathOf, Time } from "./document.tsx";

interface NumberedMessage extends DirectMessage {
  /** Its number among all messages that X received, from 1. */
  readonly number: number;
}

/** The kept messages between two people, oldest first. */
export interface Conversation {
  /** Both ids, in the form of X's conversation ids. */
  readonly id: string;
  readonly messages: readonly NumberedMessage[];
  /** Number of the newest message. */
  readonly last: number;
}

/** Returns the conversations, the most recently used one first. */
export function conversationsOf({ messages: { total, kept } }: XState): readonly Conversation[] {
  const dropped = total - kept.length;
  const found = new Map<string, NumberedMessage[]>();
  for (const [at, message] of kept.entries()) {
    const id = conversationOf(message);
    const before = found.get(id);
    const numbered = { ...message, number: dropped + at + 1 };
    if (before === undefined) found.set(id, [numbered]);
    else before.push(numbered);
  }
  return [...found]
    .map(([id, messages]) => ({ id, messages, last: messages.at(-1)?.number ?? 0 }))
    .sort((one, other) => other.last - one.last);
}

/** Lists conversations, each with its newest messages. */
export function Conversations({
  x,
  conversations,
  newest,
}: {
  readonly x: XState;
  readonly conversations: readonly Conversation[];
  /** Number of messages shown of each. */
  readonly newest: number;
}): VNode {
  return (
    <ul class="conversations">
      {conversations.map(({ id, messages }) => (
        <li id={`conversation-${id}`}>
          <p class="with">
            <ConversationName x={x} id={id} />{" "}
            <a href={`${pathOf("x")}?conversation=${id}`}>
              {counted(messages.length, "message")}
              <span class="unseen">
                {" "}
                with <ConversationName x={x} id={id} />
              </span>
            </a>
          </p>
          <Bubbles x={x} messages={messages.slice(-newest)} />
          <Reply x={x} id={id} />
        </li>
      ))}
    </ul>
  );
}

/** The other person, by name and handle. */
export function ConversationName({ x, id }: { readonly x: XState; readonly id: string }): VNode {
  const ids = id.split("-");
  const other = ids.find((one) => x.people.get(one)?.can_authorize !== true) ?? ids[0] ?? "";
  const person = x.people.get(other);
  return (
    <>
      <bdi>{person?.name ?? other}</bdi> {person === undefined ? null : <span class="quiet">@{person.username}</span>}
    </>
  );
}

/** A form to answer as the recipient. Shown only if exactly one of the two people may authorize. */
export function Reply({ x, id }: { readonly x: XState; readonly id: string }): VNode | null {
  const people = id.split("-").flatMap((one) => x.people.get(one) ?? []);
  const [us, them] = [true, false].map((isOurs) => people.find((one) => (one.can_authorize === true) === isOurs));
  if (us === undefined || them === undefined) return null;
  return (
    <form class="reply" method="post" action="/_sandbox/inbound">
      <input type="hidden" name="page" value={pathOf("x")} />
      <input type="hidden" name="from" value={them.id} />
      <input type="hidden" name="to" value={us.id} />
      <label>
        Answer as @{them.username} <input name="text" required maxLength={500} placeholder="STOP" />
      </label>{" "}
      <button>Send</button>
    </form>
  );
}

/** Shows our messages on one side and theirs on the other. */
export function Bubbles({ x, messages }: { readonly x: XState; readonly messages: readonly NumberedMessage[] }): VNode {
  return (
    <ol class="chat bubbles">
      {messages.map(({ number, sender_id, text, created_at }, at) => {
        const sender = x.people.get(sender_id);
        return (
          <>
            <DayHeading at={created_at} previous={messages[at - 1]?.created_at} />
            <li id={`x-${number}`} class={sender?.can_authorize === true ? "message own" : "message"}>
              <p class="author">
                <b>@{sender?.username ?? sender_id}</b> <Time at={created_at} />
              </p>
              <MessageText text={text} />
            </li>
          </>
        );
      })}
    </ol>
  );
}
