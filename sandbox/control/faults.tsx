/** @jsxImportSource preact */
import type { VNode } from "preact";
import { faultKindsOf, isTransportFault, type FaultBoard, type FaultKind } from "../faults.ts";
import type { Network } from "../network-origins-and-refusals.ts";
import { pathOf, TITLES, type PagePath } from "./document.tsx";
import { FAULT_WORDS } from "./fault-words.ts";

interface AllOffProps {
  /** Path of the page that the browser shows again after the button is pressed. */
  readonly path: PagePath;
}

/** Shows a button that switches all faults off and resets all limits. */
export function AllOff({ path }: AllOffProps): VNode {
  return (
    <form class="all-off" method="post" action="/_sandbox/all-off">
      <input type="hidden" name="page" value={path} />
      <button aria-describedby="all-off">All off</button>
      <p id="all-off" class="quiet">
        Switches off every fault of every network, ends the requests that one keeps waiting, and puts all limits back as
        they were, unused. What arrived stays. A service that was told to wait waits on by itself.
      </p>
    </form>
  );
}

interface FaultsProps {
  readonly faults: FaultBoard;
  readonly network: Network;
}

/** Shows a switch for each fault that the network can have, with its effect. */
export function FaultSwitches({ faults, network }: FaultsProps): VNode {
  const kinds = faultKindsOf(network);
  const on = kindsOn(faults, network);
  const groups = [
    [`What ${TITLES[network]} answers`, kinds.filter((kind) => !isTransportFault(kind))],
    ["What happens on the way", kinds.filter(isTransportFault)],
  ] as const;
  return (
    <form class="faults" method="post" action="/_sandbox/faults">
      <input type="hidden" name="network" value={network} />
      <input type="hidden" name="page" value={pathOf(network)} />
      {groups.map(([title, members]) => (
        <fieldset>
          <legend>{title}</legend>
          <ul class="switches">
            {members.map((kind) => (
              <FaultSwitch network={network} kind={kind} isOn={on.includes(kind)} />
            ))}
          </ul>
        </fieldset>
      ))}
    </form>
  );
}

interface FaultSwitchProps {
  readonly network: Network;
  readonly kind: FaultKind;
  readonly isOn: boolean;
}

function FaultSwitch({ network, kind, isOn }: FaultSwitchProps): VNode {
  const { title, does } = FAULT_WORDS[kind];
  return (
    <li>
      <button
        role="switch"
        aria-checked={isOn}
        aria-describedby={`does-${kind}`}
        name="kind"
        value={kind}
        formaction={isOn ? `/_sandbox/faults/clear?${new URLSearchParams({ network, kind })}` : undefined}
      >
        {title}
      </button>
      <span class={isOn ? "status red" : "quiet"}>{isOn ? "on" : "off"}</span>
      <p id={`does-${kind}`} class="quiet">
        {does}
      </p>
    </li>
  );
}

/** Returns the kinds of faults that are on at a network, each once. */
export function kindsOn(faults: FaultBoard, network: Network): readonly FaultKind[] {
  const on = faults.list().filter((fault) => fault.network === network);
  return faultKindsOf(network).filter((kind) => on.some((fault) => fault.kind === kind));
}
