/** @jsxImportSource preact */
import type { VNode } from "preact";
import { faultKindsOf, isTransportFault, type Fault, type FaultBoard, type FaultKind } from "../faults.ts";
import { NETWORKS, type Network } from "../network.ts";
import { grouped, pathOf, TITLES, type PagePath } from "./document.tsx";
import { FAULT_WORDS } from "./fault-words.ts";

interface AllOffProps {
  /** The page to return to. */
  readonly path: PagePath;
}

/** One button that switches off all obstacles. */
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

/** The faults that are on, each with a button that ends it. */
export function ActiveFaults({ faults }: { readonly faults: FaultBoard }): VNode {
  const active = NETWORKS.flatMap((network) => kindsOn(faults, network).map((kind) => ({ network, kind })));
  if (active.length === 0) return <p class="empty">No fault is on: every network answers as it should.</p>;
  return (
    <ul class="active">
      {active.map(({ network, kind }) => (
        <li>
          <form method="post" action={clearPath(network, kind)}>
            <input type="hidden" name="page" value="/" />
            <span class="status red">
              <a href={`${pathOf(network)}#faults`}>{TITLES[network]}</a>: {FAULT_WORDS[kind].title},{" "}
              <FaultState found={faultsOf(faults, network, kind)} />
            </span>{" "}
            <button aria-label={`Switch off ${FAULT_WORDS[kind].title} of ${TITLES[network]}`}>Switch off</button>
          </form>
        </li>
      ))}
    </ul>
  );
}

interface FaultsProps {
  readonly faults: FaultBoard;
  readonly network: Network;
}

/** A switch for each fault that a network can have, with its effect. */
export function FaultSwitches({ faults, network }: FaultsProps): VNode {
  const kinds = faultKindsOf(network);
  const groups = [
    [`What ${TITLES[network]} answers`, kinds.filter((kind) => !isTransportFault(kind))],
    ["What happens on the way", kinds.filter(isTransportFault)],
  ] as const;
  return (
    <form class="faults" method="post" action="/_sandbox/faults">
      <input type="hidden" name="network" value={network} />
      <input type="hidden" name="page" value={pathOf(network)} />
      <div class="filter">
        <label>
          A fault switched on hits{" "}
          <select name="count">
            <option value="">every request</option>
            <option value="1">the next request</option>
            <option value="3">the next 3 requests</option>
            <option value="10">the next 10 requests</option>
          </select>
        </label>
        <label>
          Too many requests asks to wait <input name="retryAfter" type="number" min={0} max={86_400} placeholder="—" />{" "}
          seconds
        </label>
      </div>
      {groups.map(([title, members]) => (
        <fieldset>
          <legend>{title}</legend>
          <ul class="switches">
            {members.map((kind) => (
              <FaultSwitch network={network} kind={kind} found={faultsOf(faults, network, kind)} />
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
  readonly found: readonly Fault[];
}

function FaultSwitch({ network, kind, found }: FaultSwitchProps): VNode {
  const { title, does } = FAULT_WORDS[kind];
  const isOn = found.length > 0;
  return (
    <li>
      <button
        role="switch"
        aria-checked={isOn}
        aria-describedby={`does-${kind}`}
        name="kind"
        value={kind}
        formaction={isOn ? clearPath(network, kind) : undefined}
      >
        {title}
      </button>
      {isOn ? (
        <span class="status red">
          <FaultState found={found} />
        </span>
      ) : (
        <span class="quiet">off</span>
      )}
      <p id={`does-${kind}`} class="quiet">
        {does}
      </p>
    </li>
  );
}

/** Describes how long a fault stays on, such as "on for every request" or "on for 2 more requests". */
function FaultState({ found }: Pick<FaultSwitchProps, "found">): VNode {
  const lasting = found.some(({ count }) => count === undefined);
  const left = found.reduce((sum, { count = 0 }) => sum + count, 0);
  const paths = found.flatMap(({ path }) => path ?? []);
  return (
    <>
      on for {lasting ? "every request" : `${grouped(left)} more ${left === 1 ? "request" : "requests"}`}
      {paths.length === 0 ? null : (
        <>
          {" "}
          to <bdi>{[...new Set(paths)].join(", ")}</bdi>
        </>
      )}
    </>
  );
}

function faultsOf(faults: FaultBoard, network: Network, kind: FaultKind): readonly Fault[] {
  return faults.list().filter((fault) => fault.network === network && fault.kind === kind);
}

/** The kinds of a network's active faults, each once. */
export function kindsOn(faults: FaultBoard, network: Network): readonly FaultKind[] {
  return faultKindsOf(network).filter((kind) => faultsOf(faults, network, kind).length > 0);
}

function clearPath(network: Network, kind: FaultKind): string {
  return `/_sandbox/faults/clear?${new URLSearchParams({ network, kind })}`;
}
