import { faultKindsOf, type FaultBoard, type FaultKind } from "../faults.ts";
import { escapeHtml } from "../html.ts";
import { NETWORKS, type Network } from "../network.ts";

/** For each network a button for each of its faults, which switches it on or off, and one for all off. */
export function faultSwitches({ faults }: { faults: FaultBoard }): string {
  const rows = NETWORKS.map((network) => {
    const buttons = faultKindsOf(network).map((kind) => faultButton(faults, network, kind));
    return `<tr><th>${network}</th><td><form class="row" method="post" action="/_sandbox/faults">
<input type="hidden" name="network" value="${network}">${buttons.join("")}</form>${clearButton(network)}</td></tr>`;
  });
  return `<h2>Faults</h2><table>${rows.join("")}</table>`;
}

function faultButton(faults: FaultBoard, network: Network, kind: FaultKind): string {
  const active = faults.list().find((fault) => fault.network === network && fault.kind === kind);
  if (active === undefined) return `<button name="kind" value="${kind}">${kind}</button>`;
  const count = active.count === undefined ? "" : `, ${active.count} more`;
  const where = active.path === undefined ? "" : `, ${escapeHtml(active.path)}`;
  const off = `/_sandbox/faults/clear?network=${network}&amp;kind=${kind}`;
  return `<button class="on" formaction="${off}">${kind} (on${count}${where})</button>`;
}

function clearButton(network: Network): string {
  return `<form method="post" action="/_sandbox/faults/clear?network=${network}"><button>all off</button></form>`;
}
