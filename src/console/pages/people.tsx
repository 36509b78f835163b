/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Basis } from "../../../events/outreach.ts";
import type { Contact } from "../../../projections/contacts.ts";
import { peopleAt } from "../../../projections/rewind-contacts.ts";
import { MomentFolding } from "../../projector/log-reader.ts";
import { inTimeSlices } from "../../platform/time-slices.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { ConsoleDocument } from "../document.tsx";
import { ImportForm, SuppressionsForm } from "./import.tsx";
import { RecipientLink } from "../parts/events.tsx";
import { Badge, type BadgeState } from "../parts/icon.tsx";
import {
  BASES,
  effectiveBasis,
  parseFilter,
  findPeople,
  ORIGINS,
  PEOPLE_COLUMNS,
  SHOWN_STATUSES,
  SKIP_REASONS,
  toShownStatus,
  type FoundPeople,
  type Origin,
  type PeopleFilter,
  type ShownStatus,
} from "../people-filter.ts";
import { Field, Select } from "../parts/action-form.tsx";
import { RecipientActions } from "../parts/recipient-actions.tsx";
import { Time } from "../parts/time.tsx";
import { listHref, readPlace, readSort } from "../sorted-page.ts";
import { consolePage, type DisclosingPage, type View } from "../page-context.ts";
import { createSortedHeads, ListPages, Table } from "../parts/table.tsx";
import { A, PageForm } from "../parts/link.tsx";

/** Rows of one page of the list. */
export const PEOPLE_SHOWN = 100;

const STATUS_BADGES: Readonly<Record<ShownStatus, BadgeState>> = {
  open: ["neutral", "clock", "not contacted yet"],
  attempted: ["info", "send", "being contacted"],
  in_doubt: ["warn", "circle-question-mark", "in doubt"],
  sent: ["good", "send", "sent"],
  failed: ["bad", "triangle-alert", "failed"],
  suppressed: ["warn", "ban", "suppressed"],
  held: ["warn", "pause", "reply held"],
};

export function StatusBadge({ contact }: { readonly contact: Contact }): VNode {
  return <Badge state={STATUS_BADGES[toShownStatus(contact)]} />;
}

function statusInWords(status: ShownStatus): string {
  const [, , words] = STATUS_BADGES[status];
  return words;
}

export const BASIS_WORDS: Readonly<Record<Basis, string>> = {
  dm_first: "wrote first",
  opt_in: "opted in",
  none: "none",
};

export const ORIGIN_WORDS: Readonly<Record<Origin, string>> = {
  imported: "imported",
  wrote_first: "wrote first",
  met: "found by a run",
};

export const peoplePage = consolePage({
  // A list of now that can be put back to the moment spares a copy of all recipients.
  reads: ({ hasNow }) => (hasNow("contacts") ? ["account"] : ["account", "contacts"]),
  render: renderPeople,
});

async function renderPeople(view: View<"account" | "contacts">): Promise<DisclosingPage> {
  const then = view.asOf === undefined ? undefined : peopleAt(() => view.stateNow("contacts"), view.position);
  const isOfNow = view.hasNow("contacts");
  const people = () => {
    if (!isOfNow) return view.state("contacts").people;
    // An import during the search may have dropped changes that the moment needs.
    if (!view.hasNow("contacts")) throw new MomentFolding(view.position);
    return then ?? view.stateNow("contacts").people;
  };
  const filter = parseFilter(view);
  const sort = readSort(view, PEOPLE_COLUMNS, { by: "person", order: "ascending" });
  const after = readPlace(view);
  const find = () => inTimeSlices(findPeople(people, filter, { sort, after, limit: PEOPLE_SHOWN }));
  const found = await find();
  const known = people().size;
  const chosen = Object.keys(filter).length;
  const [only, other] = found.page;
  const head = createSortedHeads(view, "/people", sort);
  const columns = [
    head("person", "person", "ascending", "breakable"),
    head("status", "status", "ascending"),
    head("basis", "basis", "ascending"),
    head("skipped for", "skipped", "ascending"),
    head("last message", "message", "descending"),
  ];
  const page = (
    <ConsoleDocument title="People" path="/people" view={view}>
      <h1>People</h1>
      {known === 0 ? (
        <p class="empty">
          No people yet. Import a CSV or JSON file with <code>reachlog recipients import FILE</code>.
        </p>
      ) : (
        <>
          <details class="folded">
            <summary>Filter{chosen === 0 ? "" : ` (${chosen} chosen)`}</summary>
            <Filter view={view} filter={filter} variants={found.variants} />
          </details>
          <Counts view={view} status={filter.status} counts={found.counts} known={known} />
        </>
      )}
      {found.page.length === 0 ? null : (
        <Table
          label="People"
          columns={columns}
          rows={found.page.map((contact) => [
            <RecipientLink recipient={contact} name={formatContactName(contact)} />,
            <StatusBadge contact={contact} />,
            BASIS_WORDS[effectiveBasis(contact)],
            contact.skipped.join(", ").replaceAll("_", " ") || null,
            contact.attempted_at && <Time at={contact.attempted_at} />,
          ])}
          isTall
        />
      )}
      {only === undefined || other !== undefined || after !== undefined ? null : (
        <RecipientActions view={view} contact={only} back={listHref(view, "/people", {})} />
      )}
      <ListPages view={view} path="/people" rows="people" next={found.next} />
      <ImportForm view={view} />
      <SuppressionsForm view={view} />
    </ConsoleDocument>
  );
  return { page, disclosed: { records: found.page.length } };
}

function Filter({ view, filter, variants }: { view: View; filter: PeopleFilter; variants: readonly string[] }): VNode {
  return (
    <PageForm class="filter" action="/people" data-apply>
      {["sort", "order"].map((name) => {
        const value = view.query.get(name);
        return value === null ? null : <input type="hidden" name={name} value={value} />;
      })}
      <Field
        label="Search"
        name="search"
        value={filter.search ?? ""}
        maxLength={100}
        placeholder="handle, name or id"
      />
      <Select name="status" label="Status" values={SHOWN_STATUSES} chosen={filter.status} inWords={statusInWords} />
      <Select name="basis" label="Basis" values={BASES} chosen={filter.basis} inWords={(one) => BASIS_WORDS[one]} />
      <Select name="skipped" label="Skipped for" values={SKIP_REASONS} chosen={filter.skipped} />
      {variants.length === 0 ? null : (
        <Select name="variant" label="Variant" values={variants} chosen={filter.variant} />
      )}
      <Select
        name="source"
        label="Source"
        values={ORIGINS}
        chosen={filter.source}
        inWords={(one) => ORIGIN_WORDS[one]}
      />
      <button>Show</button>
    </PageForm>
  );
}

interface CountsProps extends Pick<FoundPeople, "counts"> {
  readonly view: View;
  readonly status: ShownStatus | undefined;
  readonly known: number;
}

/** The number of found contacts by status, each with a link to only these. */
function Counts({ view, status, counts, known }: CountsProps): VNode {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <p role="status">
        {grouped(status === undefined ? all : counts[status])} of {grouped(known)} {known === 1 ? "person" : "people"}.
      </p>
      <ul class="counts" aria-label="By status">
        {[undefined, ...SHOWN_STATUSES].map((one) => (
          <li>
            <A href={listHref(view, "/people", { status: one })} aria-current={status === one ? "true" : undefined}>
              {one === undefined ? `all ${grouped(all)}` : `${statusInWords(one)} ${grouped(counts[one])}`}
            </A>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The handle or id of a contact, with the name if it is known. */
export function formatContactName({ id, username, name }: Pick<Contact, "id" | "username" | "name">): string {
  const handle = username === undefined ? (id ?? "unnamed") : `@${username}`;
  return name === undefined ? handle : `${handle} (${name})`;
}
