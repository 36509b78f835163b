/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Instances } from "../instance-control-interface.ts";
import { NETWORKS, type Network } from "../network-origins-and-refusals.ts";
import type { World } from "../world.ts";
import { Arrived, nounOf } from "./received-messages.tsx";
import { counted, pathOf, SandboxDocument, TITLES } from "./document.tsx";
import { AllOff, kindsOn } from "./faults.tsx";
import { arrivedAt } from "./shown-messages.ts";

/** Maximum number of messages, conversations or events to show of each network. */
const SHOWN = 3;

/** Renders the overview: the newest messages or events that each network received, and how many faults are on. */
export function overviewPage(world: World): VNode {
  return (
    <SandboxDocument title="reachlog sandbox" path="/" now={world.clock.now()}>
      <h1>Sandbox</h1>
      <p>
        What the networks would have received; nothing leaves this machine. Here are the newest {SHOWN} of each, long
        texts cut short. The page of a network has more, whole, and its faults.
      </p>
      {world.instances === undefined ? null : <InstanceList instances={world.instances} />}
      <AllOff path="/" />
      <div class="networks">
        {NETWORKS.map((network) => (
          <NetworkCard world={world} network={network} />
        ))}
      </div>
    </SandboxDocument>
  );
}

function NetworkCard({ world, network }: { readonly world: World; readonly network: Network }): VNode {
  const on = kindsOn(world.faults, network).length;
  return (
    <section class="card" aria-labelledby={network}>
      <h2 id={network}>
        <a href={pathOf(network)}>{TITLES[network]}</a>
      </h2>
      <p class="quiet">
        {counted(arrivedAt(world, network), nounOf(network))}, {counted(world.tally[network].requests, "request")}{" "}
        {on === 0 ? null : <span class="status red">{counted(on, "fault")} on</span>}
      </p>
      <Arrived world={world} network={network} limit={SHOWN} newest={1} />
    </section>
  );
}

/** Shows the instances of the service on one log, each with a button to kill or restart it. */
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
