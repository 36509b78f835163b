/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Network } from "../network.ts";
import type { ControlledWorld } from "../world.ts";
import { Chat, Phone } from "./chat.tsx";
import { Bubbles, ConversationName, Conversations, conversationsOf, type Conversation } from "./conversations.tsx";
import { counted, grouped, pathOf, SandboxDocument, TITLES } from "./document.tsx";
import { AllOff, FaultSwitches, kindsOn } from "./faults.tsx";
import { MetaEvents } from "./meta-events.tsx";
import { Nothing } from "./overview.tsx";
import { chatMessages, toMessagePage, type ChatNetwork, type MessagePage } from "./shown-messages.ts";

/** Messages or events on one page; a text has up to 10,000 characters. */
const SHOWN = 25;

/** Conversations on one page, and messages of each. */
const CONVERSATIONS_SHOWN = 20;
const CONVERSATION_NEWEST = 3;

/** Selects the messages to show; by default the newest. */
export interface NetworkQuery {
  /** Only messages before this one. */
  readonly before: number | undefined;
  /** X: one conversation only. */
  readonly conversation: string | undefined;
}

/**
 * The messages or events that arrived at a network, by pages, and its faults. Undefined if there is no such
 * conversation.
 */
export function networkPage(world: ControlledWorld, network: Network, query: NetworkQuery): VNode | undefined {
  const arrived = arrivedAtNetwork(world, network, query);
  if (arrived === undefined) return undefined;
  const requests = counted(world.tally[network].requests, "request");
  const on = kindsOn(world.faults, network).length;
  return (
    <SandboxDocument title={TITLES[network]} path={pathOf(network)} now={world.clock.now()}>
      <h1>
        {TITLES[network]} <small>{requests} so far</small>
      </h1>
      <p>
        <a href="#faults">Faults</a>:{" "}
        {on === 0 ? "none is on." : <span class="status red">{counted(on, "fault")} on.</span>}
      </p>
      <div class={network === "meta" ? "network wide" : "network"}>
        <section aria-label={network === "meta" ? "Events" : "Messages"}>{arrived}</section>
        <section aria-labelledby="faults">
          <h2 id="faults">Faults</h2>
          <FaultSwitches faults={world.faults} network={network} />
          <AllOff path={pathOf(network)} />
        </section>
      </div>
    </SandboxDocument>
  );
}

function arrivedAtNetwork(world: ControlledWorld, network: Network, query: NetworkQuery): VNode | undefined {
  if (network === "meta") return <MetaArrived world={world} before={query.before} />;
  if (network !== "x") return <ChatArrived world={world} network={network} before={query.before} />;
  const conversations = conversationsOf(world.x);
  if (query.conversation === undefined) {
    return <AllConversations world={world} conversations={conversations} before={query.before} />;
  }
  const conversation = conversations.find(({ id }) => id === query.conversation);
  return conversation && <OneConversation world={world} conversation={conversation} before={query.before} />;
}

interface ArrivedProps {
  readonly world: ControlledWorld;
  readonly before: number | undefined;
}

function ChatArrived({ world, network, before }: ArrivedProps & { readonly network: ChatNetwork }): VNode {
  const stretch = chatMessages(world, network, { limit: SHOWN, before });
  return (
    <>
      {stretch.total === 0 ? (
        <Nothing noun="message" />
      ) : (
        <>
          <Part stretch={stretch} before={before} noun="message" path={pathOf(network)} />
          <Phone label={`Messages in ${TITLES[network]}`}>
            <Chat network={network} messages={stretch.messages} />
          </Phone>
        </>
      )}
      {network === "teams" ? <NotPosted world={world} /> : null}
    </>
  );
}

/** Messages that Teams accepted but never posted. */
function NotPosted({ world }: Pick<ArrivedProps, "world">): VNode | null {
  const { messages, total } = toMessagePage(world.teams.failures, { limit: SHOWN }, (failure, number) => ({
    ...failure,
    number,
  }));
  if (total === 0) return null;
  return (
    <>
      <h2>Accepted and not posted</h2>
      <p>
        {messages.length === total ? counted(total, "message") : `The newest ${SHOWN} of ${grouped(total)} messages`}
      </p>
      <ul>
        {messages.toReversed().map(({ number, text }) => (
          <li id={`not-posted-${number}`}>
            <bdi>{text}</bdi>
          </li>
        ))}
      </ul>
    </>
  );
}

function MetaArrived({ world, before }: ArrivedProps): VNode {
  const stretch = toMessagePage(world.meta.events, { limit: SHOWN, before }, (event, number) => ({ event, number }));
  if (stretch.total === 0) return <Nothing noun="event" />;
  return (
    <>
      <Part stretch={stretch} before={before} noun="event" path={pathOf("meta")} />
      <MetaEvents events={stretch.messages} />
    </>
  );
}

function AllConversations({
  world: { x },
  conversations,
  before = Infinity,
}: ArrivedProps & { readonly conversations: readonly Conversation[] }): VNode {
  if (conversations.length === 0) return <Nothing noun="message" />;
  const found = conversations.filter(({ last }) => last < before);
  const shown = found.slice(0, CONVERSATIONS_SHOWN);
  const isNewest = found.length === conversations.length;
  return (
    <>
      <p>
        {shown.length === conversations.length
          ? counted(conversations.length, "conversation")
          : `${isNewest ? "The newest" : "Older:"} ${shown.length} of ${counted(conversations.length, "conversation")}`}
        , {counted(x.messages.total, "message")}. Of each, the newest {CONVERSATION_NEWEST} messages.
      </p>
      <p>
        {isNewest ? null : <a href={pathOf("x")}>Newest conversations</a>}{" "}
        {shown.length === found.length ? null : (
          <a href={`${pathOf("x")}?before=${shown.at(-1)?.last ?? 0}`}>Older conversations</a>
        )}
      </p>
      <Conversations x={x} conversations={shown} newest={CONVERSATION_NEWEST} />
    </>
  );
}

function OneConversation({
  world: { x },
  conversation: { id, messages },
  before,
}: ArrivedProps & { readonly conversation: Conversation }): VNode {
  const found = messages.filter(({ number }) => number < (before ?? Infinity));
  const shown = found.slice(-SHOWN);
  const stretch = { messages: shown, total: messages.length, isOldest: shown.length === found.length };
  return (
    <>
      <h2>
        <ConversationName x={x} id={id} />
      </h2>
      <p>
        <a href={pathOf("x")}>All conversations</a>
      </p>
      <Part stretch={stretch} before={before} noun="message" path={`${pathOf("x")}?conversation=${id}`} />
      <Phone label="Messages of this conversation">
        <Bubbles x={x} messages={shown} />
      </Phone>
    </>
  );
}

interface PartProps {
  readonly stretch: MessagePage<{ readonly number: number }>;
  readonly before: number | undefined;
  readonly noun: string;
  /** Path of the page with the newest entries. */
  readonly path: string;
}

/** Tells which part is shown and links to the others. */
function Part({ stretch: { messages, total, isOldest }, before, noun, path }: PartProps): VNode {
  const oldest = messages[0]?.number ?? 1;
  const others = path.includes("?") ? "&" : "?";
  const isWhole = messages.length === total;
  return (
    <p>
      {isWhole
        ? `${counted(total, noun)}.`
        : `${before === undefined ? "The newest" : "Older:"} ${grouped(messages.length)} of ${counted(total, noun)}.`}{" "}
      {before === undefined ? null : <a href={path}>Newest {noun}s</a>}{" "}
      {isOldest ? null : <a href={`${path}${others}before=${oldest}`}>Older {noun}s</a>}
      {isOldest && !isWhole && before === undefined ? "Older ones are kept no longer." : null}
    </p>
  );
}
