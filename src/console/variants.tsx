/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { VariantResults } from "../../projections/variants.ts";
import { wilsonInterval } from "../platform/wilson-interval.ts";
import { ConsoleDocument, grouped } from "./document.tsx";
import type { View } from "./view.ts";

const HEAD = ["sent", "failed", "in doubt", "replied", "opted out"] as const;

/** What came of each variant of each template, with how sure that is. */
export function variantsPage(view: View): VNode {
  const { groups } = view.state("variants");
  return (
    <ConsoleDocument title="Experiments" path="/variants" view={view}>
      <h1>Experiments</h1>
      <p>
        What came of each variant of each message. The bar is the 95 % interval of the reply rate (Wilson): while two
        bars overlap, nobody knows which variant is better.
      </p>
      {groups.length === 0 ? (
        <p class="empty">
          No message was attempted yet. A message with <code>||</code> between its variants makes an experiment.
        </p>
      ) : (
        <Results groups={groups} />
      )}
    </ConsoleDocument>
  );
}

function Results({ groups }: { readonly groups: readonly VariantResults[] }): VNode {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Results per variant">
      <table>
        <thead>
          <tr>
            <th scope="col">template</th>
            <th scope="col">variant</th>
            {HEAD.map((head) => (
              <th scope="col" class="number">
                {head}
              </th>
            ))}
            <th scope="col">reply rate</th>
          </tr>
        </thead>
        <tbody>
          {groups.map(({ template, variant, sent, failed, in_doubt, replied, opted_out }) => (
            <tr>
              <td>
                <code>{template === "" ? "unknown" : template}</code>
              </td>
              <th scope="row">{variant}</th>
              {[sent, failed, in_doubt, replied, opted_out].map((count) => (
                <td class="number">{grouped(count)}</td>
              ))}
              <td>
                <Rate hits={replied} trials={sent} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
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
      {percent(rate)}{" "}
      <span class="quiet">
        ({percent(low)} to {percent(high)})
      </span>
    </span>
  );
}

function percent(rate: number): string {
  return `${(rate * 100).toFixed(1)} %`;
}
