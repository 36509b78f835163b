/** @jsxImportSource preact */
import type { VNode } from "preact";
import { conversationOf } from "../x/messages.ts";
import type { XState } from "../x/state.ts";
import { Chat } from "./message-thread.tsx";
import { pathOf } from "./document.tsx";
import type { ShownMessage } from "./shown-messages.ts";

interface ConversationsProps {
  readonly x: XState;
  /** Maximum number of conversations to show. */
  readonly limit: number;
  readonly newest: number;
}

/** Lists the conversations on X, the most recently used one first, each with its newest messages. */
export function Conversations({ x, limit, newest }: ConversationsProps): VNode {
  const found = [...conversationsIn(x)].toReversed().slice(0, limit);
  return (
    <ul class="conversations">
      {found.map(([id, messages]) => (
        <li id={`conversation-${id}`}>
          <ConversationName x={x} id={id} />
          <Chat network="x" messages={messages.slice(-newest)} />
          <Reply x={x} id={id} />
        </li>
      ))}
    </ul>
  );
}

/** Returns the kept messages by conversation id, the most recently used conversation last. */
function conversationsIn({ people, messages: { total, kept } }: XState): ReadonlyMap<string, readonly ShownMessage[]> {
  const found = new Map<string, ShownMessage[]>();
  for (const [at, message] of kept.entries()) {
    const id = conversationOf(message);
    const messages = found.get(id) ?? [];
    const { sender_id, text, created_at } = message;
    const sender = people.get(sender_id);
    const author = { name: `@${sender?.username ?? sender_id}`, isOwn: sender?.can_authorize === true };
    messages.push({ number: total - kept.length + at + 1, text, at: created_at, notes: [], author });
    found.delete(id);
    found.set(id, messages);
  }
  return found;
}

/** Shows the name and handle of the person who talks with the service's account. */
function ConversationName({ x, id }: { readonly x: XState; readonly id: string }): VNode {
  const ids = id.split("-");
  const other = ids.find((one) => x.people.get(one)?.can_authorize !== true) ?? ids[0] ?? "";
  const person = x.people.get(other);
  return (
    <p class="with">
      <bdi>{person?.name ?? other}</bdi> {person === undefined ? null : <span class="quiet">@{person.username}</span>}
    </p>
  );
}

/**
 * A form by which the other person in a conversation answers the service's account. Shown only if exactly one of the
 * two people, who is then that account, can authorize the service.
 */
function Reply({ x, id }: { readonly x: XState; readonly id: string }): VNode | null {
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
      <button>Send</button>{" "}
      <button name="kind" value="read" formaction="/_sandbox/signal" formnovalidate>
        Read our messages
      </button>{" "}
      <button name="kind" value="chat" formaction="/_sandbox/signal" formnovalidate>
        Write in X Chat
      </button>
    </form>
  );
}
