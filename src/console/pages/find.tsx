/** @jsxImportSource preact */
import { findContact } from "../../../projections/contacts.ts";
import { splitLink } from "../../../projections/link-address.ts";
import { toLinkKey } from "../../../projections/sent-links.ts";
import { EVENT_ID, findEventNear } from "../../history/find-event.ts";
import { findRunStart } from "../../history/run-events.ts";
import { eventHref, hrefForLink, recipientHref, runHref } from "../hrefs.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { ConsoleDocument } from "../document.tsx";
import { formatRun } from "../parts/events.tsx";
import { formatContactName } from "./people.tsx";
import { consolePage, type DisclosingPage, type OtherPage, readText, toReading, type View } from "../page-context.ts";
import { A } from "../parts/link.tsx";

/**
 * Redirects to the recipient, link, run or event that the text names; a handle may be part of a question. If the text
 * may name several, lists them.
 */
export const findPage = consolePage({
  reads: ["account", "clicks", "contacts", "referrers", "runs"],
  render: renderFind,
});

async function renderFind(
  view: View<"account" | "clicks" | "contacts" | "referrers" | "runs">,
): Promise<DisclosingPage | OtherPage> {
  const wanted = readText(view, "q");
  const found = wanted === undefined ? [] : await find(view, wanted);
  const disclosed = { records: found.length };
  const [only, ...others] = found;
  if (only !== undefined && others.length === 0) return { location: only.href, disclosed };
  const page = (
    <ConsoleDocument title="Find" path="/" view={view}>
      <h1>Find</h1>
      {wanted === undefined ? null : found.length === 0 ? (
        <p class="empty">
          The log has nothing with that name. <A href={`/people?${new URLSearchParams({ search: wanted })}`}>People</A>{" "}
          are also found by a part of their name.
        </p>
      ) : (
        <ul>
          {found.map(({ what, name, href }) => (
            <li class="breakable">
              {what}{" "}
              <A href={href}>
                <bdi>{name}</bdi>
              </A>
            </li>
          ))}
        </ul>
      )}
    </ConsoleDocument>
  );
  return { page, disclosed };
}

interface Found {
  readonly what: "Person" | "Link" | "Run" | "Event";
  readonly name: string;
  readonly href: `/${string}`;
}

/** Finds everything that the text may name: a number may be a position and a recipient's id. */
async function find(
  view: View<"clicks" | "contacts" | "referrers" | "runs">,
  wanted: string,
): Promise<readonly Found[]> {
  const found = [findRecipient(view, wanted), linkCalled(view, wanted), eventAt(view, wanted)];
  if (EVENT_ID.test(wanted)) found.push(await withId(view, wanted.toLowerCase()));
  return found.filter((one) => one !== undefined);
}

function findRecipient(view: View<"contacts">, wanted: string): Found | undefined {
  const contacts = view.state("contacts");
  const contact =
    findContact(contacts, { id: wanted }) ??
    findContact(contacts, { username: /(?<!\w)@(\w+)/.exec(wanted)?.[1] ?? wanted });
  const href = contact && recipientHref(contact);
  return contact === undefined || href === undefined
    ? undefined
    : { what: "Person", name: formatContactName(contact), href };
}

/** Finds a link by its address, with or without a scheme. */
function linkCalled(view: View<"clicks" | "referrers">, wanted: string): Found | undefined {
  if (splitLink(wanted).includes("")) return undefined;
  const link = toLinkKey(wanted);
  const isKnown = view.state("clicks").links.has(link) || view.state("referrers").links.has(link);
  return isKnown ? { what: "Link", name: link, href: hrefForLink(link) } : undefined;
}

function eventAt(view: View, wanted: string): Found | undefined {
  const position = /^\d{1,15}$/.test(wanted) ? Number(wanted) : 0;
  if (position < 1 || position > view.position) return undefined;
  return { what: "Event", name: `at position ${grouped(position)}`, href: eventHref(position) };
}

async function withId(view: View<"runs">, id: string): Promise<Found | undefined> {
  const reading = toReading(view);
  if ((await findRunStart(reading, id)) !== undefined)
    return { what: "Run", name: formatRun(view, id), href: runHref(id) };
  const event = await findEventNear(reading, id);
  return event && { what: "Event", name: id, href: eventHref(event.position) };
}
