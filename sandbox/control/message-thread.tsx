/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Network } from "../network-origins-and-refusals.ts";
import { Time } from "./document.tsx";
import type { ShownMessage } from "./shown-messages.ts";

interface ChatProps {
  readonly network: Network;
  readonly messages: readonly ShownMessage[];
}

/**
 * Shows messages as readers see them, oldest first. On X, messages of the service's account and those of other people
 * are on opposite sides.
 */
export function Chat({ network, messages }: ChatProps): VNode {
  return (
    <ol class="chat">
      {messages.map(({ number, text, at, notes, author }, index) => (
        <>
          <DayHeading at={at} previous={messages[index - 1]?.at} />
          <li id={`${network}-${number}`} class={author?.isOwn === true ? "message own" : "message"}>
            <p class="author">
              {author === undefined ? null : <b>{author.name}</b>} <Time at={at} />
            </p>
            {/* A separate paragraph, so that the text's direction marks do not affect its surroundings. */}
            <p class="text" dir="auto">
              {text}
            </p>
            {notes.map((note) => (
              <p class="note">
                <bdi>{note}</bdi>
              </p>
            ))}
          </li>
        </>
      ))}
    </ol>
  );
}

/** Shows the date above the first message of a day. */
function DayHeading({ at, previous }: { readonly at: number; readonly previous: number | undefined }) {
  const day = formatDay(at);
  if (previous !== undefined && formatDay(previous) === day) return null;
  return <li class="day">{day}</li>;
}

function formatDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
