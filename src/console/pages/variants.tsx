/** @jsxImportSource preact */
import type { VNode } from "preact";
import { clicksByPeople, clicksOfVariant, type VariantClicks } from "../../../projections/variants.ts";
import { wilsonInterval } from "../../platform/wilson-interval.ts";
import { ConsoleDocument, grouped } from "../document.tsx";
import type { View } from "../view.ts";
import { NumberCells, numbers, Table } from "../parts/table.tsx";

const COUNTS = ["sent", "failed", "in doubt"] as const;
const RATES = ["replied", "opted out"] as const;

/** What came of each variant of each template, with how sure that is. */
export function variantsPage(view: View): VNode {
  const { groups } = view.state("variants");
  return (
    <ConsoleDocument title="Experiments" path="/variants" view={view}>
      <h1>Experiments</h1>
      <p>
        The results of each variant of each message. A bar is the 95 % interval of a rate (Wilson): while the bars of
        two variants overlap, it is open which one is better. Clicks count for a variant whose messages hold a link that
        no other variant's do; how many people clicked is known where each of them got a link of their own.
      </p>
      {groups.length === 0 ? (
        <p class="empty">
          No message was attempted yet. A message with <code>||</code> between its variants makes an experiment.
        </p>
      ) : (
        <Results view={view} />
      )}
    </ConsoleDocument>
  );
}

function Results({ view }: { readonly view: View }): VNode {
  const state = view.state("variants");
  const clicksOf = clicksByPeople(view.state("clicks"), view.state("suspected"));
  return (
    <Table label="Results per variant" columns={["template", "variant", ...numbers(...COUNTS), ...RATES, "clicked"]}>
      {state.groups.map((results) => (
        <tr>
          <td>
            <code>{results.template === "" ? "unknown" : results.template}</code>
          </td>
          <th scope="row">{results.variant}</th>
          <NumberCells of={[results.sent, results.failed, results.in_doubt]} />
          <td>
            <Rate hits={results.replied} trials={results.sent} />
          </td>
          <td>
            <Rate hits={results.opted_out} trials={results.sent} />
          </td>
          <td>
            <Clicked clicked={clicksOfVariant(view.state("referrers"), results, clicksOf)} sent={results.sent} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Clicked({ clicked, sent }: { readonly clicked: VariantClicks | undefined; readonly sent: number }): VNode {
  if (clicked === undefined) return <span class="quiet">no link of its own</span>;
  const { clicks, people } = clicked;
  // More people than messages that are known to have arrived, where some are in doubt.
  if (people !== undefined && people <= sent) return <Rate hits={people} trials={sent} />;
  return <>{clicks === 1 ? "1 click" : `${grouped(clicks)} clicks`}</>;
}

const WIDTH = 100;

/** A rate with its interval, drawn from 0 to 100 %. */
function Rate({ hits, trials }: { readonly hits: number; readonly trials: number }): VNode {
  const interval = wilsonInterval(hits, trials);
  if (interval === undefined) return <span class="quiet">nothing sent</span>;
  const { low, high } = interval;
  const rate = hits / trials;
  return (
    <span class="rate">
      <svg viewBox={`0 0 ${WIDTH} 10`} aria-hidden="true" preserveAspectRatio="none">
        <rect class="track" x={0} y={4} width={WIDTH} height={2} />
        <rect class="interval" x={low * WIDTH} y={2} width={(high - low) * WIDTH} height={6} />
        <rect class="point" x={rate * WIDTH - 1} y={0} width={2} height={10} />
      </svg>
      {grouped(hits)}, {percent(rate)}{" "}
      <span class="quiet">
        ({percent(low)} to {percent(high)})
      </span>
    </span>
  );
}

function percent(rate: number): string {
  return `${(rate * 100).toFixed(1)} %`;
}
