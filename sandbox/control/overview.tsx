/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Instances } from "../instances.ts";
import { NETWORKS, type Network } from "../network.ts";
import type { ControlledWorld } from "../world.ts";
import { Chat } from "./chat.tsx";
import { Conversations, conversationsOf } from "./conversations.tsx";
import { counted, pathOf, SandboxDocument, TITLES } from "./document.tsx";
import { ActiveFaults, AllOff, kindsOn } from "./faults.tsx";
import { MetaEvents } from "./meta-events.tsx";
import { arrivedAt, chatMessages, toMessagePage } from "./shown-messages.ts";

/** Messages, conversations or events shown of each network. */
const SHOWN = 3;

/** The newest arrivals at each network, and the active faults. */
export function overviewPage(world: ControlledWorld): VNode {
  return (
    <SandboxDocument title="reachlog sandbox" path="/" now={world.clock.now()}>
      <h1>Sandbox</h1>
      <p>
        What the networks would have received; nothing leaves this machine. Here are the newest {SHOWN} of each, long
        texts cut short. The page of a network has the others, whole, and its faults.
      </p>
      {world.instances === undefined ? null : <InstanceList instances={world.instances} />}
      <section aria-labelledby="faults">
        <h2 id="faults">Faults</h2>
        <ActiveFaults faults={world.faults} />
        <AllOff path="/" />
      </section>
      <div class="networks">
        {NETWORKS.map((network) => (
          <NetworkCard world={world} network={network} />
        ))}
      </div>
    </SandboxDocument>
  );
}

interface NetworkProps {
  readonly world: ControlledWorld;
  readonly network: Network;
}

function NetworkCard({ world, network }: NetworkProps): VNode {
  const on = kindsOn(world.faults, network).length;
  return (
    <section class="card" aria-labelledby={network}>
      <h2 id={network}>
        <a href={pathOf(network)}>{TITLES[network]}</a>
      </h2>
      <p class="quiet">
        {counted(arrivedAt(world, network), network === "meta" ? "event" : "message")},{" "}
        {counted(world.tally[network].requests, "request")}
        {on === 0 ? null : (
          <>
            {" "}
            <span class="status red">{counted(on, "fault")} on</span>
          </>
        )}
      </p>
      <Newest world={world} network={network} />
    </section>
  );
}

function Newest({ world, network }: NetworkProps): VNode {
  if (network === "meta") {
    const { messages } = toMessagePage(world.meta.events, { limit: SHOWN }, (event, number) => ({ event, number }));
    return messages.length === 0 ? <Nothing noun="event" /> : <MetaEvents events={messages} />;
  }
  if (network === "x") {
    const conversations = conversationsOf(world.x).slice(0, SHOWN);
    if (conversations.length === 0) return <Nothing noun="message" />;
    return <Conversations x={world.x} conversations={conversations} newest={1} />;
  }
  const { messages } = chatMessages(world, network, { limit: SHOWN });
  return messages.length === 0 ? <Nothing noun="message" /> : <Chat network={network} messages={messages} />;
}

export function Nothing({ noun }: { readonly noun: string }): VNode {
  return <p class="empty">No {noun} has arrived yet.</p>;
}

/** The instances of one log, each with a button to kill or restart it. */
function InstanceList({ instances }: { readonly instances: Instances }): VNode {
  return (
    <section aria-labelledby="instances">
      <h2 id="instances">Instances</h2>
      <p>
        Each of them serves the same log. One that is killed hands nothing over: another takes its part within 17
        seconds, and a run goes on with the next trigger.
      </p>
      <ul class="instances">
        {instances.list().map(({ url, isRunning }) => (
          <li>
            <form method="post" action={`/_sandbox/instances/${isRunning ? "kill" : "start"}`}>
              <input type="hidden" name="page" value="/" />
              <input type="hidden" name="url" value={url} />
              <span class={`status ${isRunning ? "green" : "red"}`}>
                <a href={url}>{url}</a> {isRunning ? "runs" : "was killed"}
              </span>{" "}
              <button aria-label={`${isRunning ? "Kill" : "Start"} ${url}`}>{isRunning ? "Kill" : "Start"}</button>
            </form>
          </li>
        ))}
      </ul>
    </section>
  );
}
