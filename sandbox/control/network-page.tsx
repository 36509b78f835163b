/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Network } from "../network-origins-and-refusals.ts";
import type { World } from "../world.ts";
import { Arrived, nounOf } from "./received-messages.tsx";
import { counted, pathOf, SandboxDocument, TITLES } from "./document.tsx";
import { AllOff, FaultSwitches } from "./faults.tsx";
import { arrivedAt } from "./shown-messages.ts";

/**
 * Maximum number of messages, events or conversations on the page. It is small, because a message has up to 10,000
 * characters.
 */
const SHOWN = 25;
const CONVERSATION_NEWEST = 10;

/** Renders a network's page: the newest messages or events that it received, and the switches of its faults. */
export function networkPage(world: World, network: Network): VNode {
  const noun = nounOf(network);
  const counts = `${counted(world.tally[network].requests, "request")}, ${counted(arrivedAt(world, network), noun)}`;
  const arrived = <Arrived world={world} network={network} limit={SHOWN} newest={CONVERSATION_NEWEST} />;
  return (
    <SandboxDocument title={TITLES[network]} path={pathOf(network)} now={world.clock.now()}>
      <h1>
        {TITLES[network]} <small>{counts} so far</small>
      </h1>
      <div class="network">
        <section aria-labelledby="arrived">
          <h2 id="arrived">Newest {noun}s</h2>
          {network === "x" ? (
            <>
              <form class="revoke" method="post" action="/_sandbox/revoke">
                <input type="hidden" name="page" value={pathOf("x")} />
                <p class="quiet">
                  For live signals: <code>X_APP_BEARER_TOKEN={world.x.appBearer}</code>
                </p>
                <button>Revoke the app, as the account's owner</button>
              </form>
              {arrived}
            </>
          ) : (
            <div class="phone" tabIndex={0} role="region" aria-label={`In ${TITLES[network]}`}>
              {arrived}
            </div>
          )}
        </section>
        <section aria-labelledby="faults">
          <h2 id="faults">Faults</h2>
          <FaultSwitches faults={world.faults} network={network} />
          <AllOff path={pathOf(network)} />
        </section>
      </div>
    </SandboxDocument>
  );
}
