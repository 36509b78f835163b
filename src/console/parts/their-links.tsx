/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../../events/catalog.ts";
import { linksIn } from "../../../projections/sent-links.ts";
import { linkHrefOf } from "../addresses.ts";
import { grouped } from "../document.tsx";
import type { View } from "../view.ts";
import { numbers, Table } from "./table.tsx";

interface TheirLinksProps {
  readonly view: View;
  /** The messages that one person was sent. */
  readonly sent: readonly Recorded<"DirectMessageAttempted">[];
}

/** The links of the messages to a person, with their clicks: those of a link in one message alone come from that person. */
export function TheirLinks({ view, sent }: TheirLinksProps): VNode | null {
  const links = [...new Set(sent.flatMap(({ data: { links: known, text } }) => known ?? linksIn(text)))];
  if (links.length === 0) return null;
  return (
    <section aria-labelledby="their-links">
      <h2 id="their-links">Links sent to them</h2>
      <Table
        label="Clicks of the links sent to them"
        columns={["link", "sent to", ...numbers("people", "suspected", "bots")]}
      >
        {links.map((link) => (
          <Row view={view} link={link} />
        ))}
      </Table>
    </section>
  );
}

function Row({ view, link }: { readonly view: View; readonly link: string }): VNode {
  const messages = view.state("referrers").links.get(link)?.messages ?? 0;
  const { clicks = 0, bots = 0, suspected = 0 } = view.state("suspected").links.get(link) ?? {};
  return (
    <tr>
      <th scope="row" class="breakable">
        <a href={linkHrefOf(link)}>
          <bdi>{link}</bdi>
        </a>
      </th>
      <td>{messages === 0 ? "not known" : messages === 1 ? "them alone" : `${grouped(messages)} people`}</td>
      {[clicks - suspected, suspected, bots].map((count) => (
        <td class="number">{grouped(count)}</td>
      ))}
    </tr>
  );
}
