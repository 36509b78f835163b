/** @jsxImportSource preact */
import type { VNode } from "preact";
import { grouped } from "../../platform/format-numbers-and-lists.ts";
import {
  BASES,
  describeSkip,
  ORIGINS,
  PEOPLE_COLUMNS,
  readPeople,
  SHOWN_STATUSES,
  SKIP_REASONS,
  type FoundPeople,
  type Origin,
  type PeopleFilter,
  type ShownContact,
  type ShownStatus,
} from "../../recipients/recipient-list-and-page.ts";
import { ConsoleDocument, Head } from "../document.tsx";
import type { RecipientNames } from "../hrefs.ts";
import { RecipientLink } from "../parts/event-sentence.tsx";
import { Badge, type BadgeState } from "../parts/icon-and-badge.tsx";
import { CHOICE_WORDS, Field, Select } from "../parts/action-form.tsx";
import { RecipientActions } from "../parts/recipient-actions.tsx";
import { Time } from "../parts/time.tsx";
import { listHref, readListPage, readSort } from "../read-sort-from-address.ts";
import { consolePage, readChoice, readText, type DisclosingPage, type View } from "../page-context.ts";
import { createSortedHeads, ListPages, Table } from "../parts/table.tsx";
import { A, HiddenFields, ImportLink, PageForm, Tabs } from "../parts/links-forms-and-tabs.tsx";

/** Number of rows on one page of the list. */
export const PEOPLE_SHOWN = 50;

const STATUS_BADGES: Readonly<Record<ShownStatus, BadgeState>> = {
  open: ["neutral", "clock", "not contacted yet"],
  attempted: ["info", "send", "being contacted"],
  in_doubt: ["warn", "circleQuestionMark", "in doubt"],
  sent: ["good", "send", "sent"],
  failed: ["bad", "triangleAlert", "failed"],
  suppressed: ["warn", "ban", "suppressed"],
  held: ["warn", "pause", "reply held"],
};

export function StatusBadge({ contact }: { readonly contact: ShownContact }): VNode {
  return <Badge state={STATUS_BADGES[contact.status]} />;
}

function statusInWords(status: ShownStatus): string {
  const [, , words] = STATUS_BADGES[status];
  return words;
}

export const ORIGIN_WORDS: Readonly<Record<Origin, string>> = {
  imported: "imported",
  wrote_first: "wrote first",
  met: "found by a run",
};

export const peoplePage = consolePage({
  // For an earlier moment, the list is computed backwards from the present contacts. If these are not available, the
  // page folds the contacts up to its moment.
  reads: ({ hasNow }) => (hasNow("contacts") ? ["account"] : ["account", "contacts"]),
  render: renderPeople,
});

async function renderPeople(view: View<"account" | "contacts">): Promise<DisclosingPage> {
  const filter = readPeopleFilter(view);
  const sort = readSort(view, PEOPLE_COLUMNS, { by: "person", order: "ascending" });
  const listed = readListPage(view, sort, PEOPLE_SHOWN);
  const found = await readPeople(view, filter, listed);
  const { known } = found;
  const chosen = Object.values(filter).filter((value) => value !== undefined).length;
  const [only, other] = found.page;
  const head = createSortedHeads(view, "/people", sort);
  const columns = [
    head("person", "person", "ascending", "breakable"),
    head("status", "status", "ascending", "state"),
    head("basis", "basis", "ascending"),
    head("skipped for", "skipped", "ascending"),
    head("last message", "message", "descending"),
  ];
  const page = (
    <ConsoleDocument title="People" path="/people" view={view}>
      <Head title="People">
        {view.formToken === undefined ? null : (
          <p class="actions">
            <A class="button" href="/people/import#suppressions">
              Suppression list…
            </A>
            <ImportLink look="button primary" label="Import…" />
          </p>
        )}
      </Head>
      {known === 0 ? (
        <p class="empty">No people yet. Import a CSV or JSON file of recipients to begin.</p>
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
            CHOICE_WORDS[contact.basis],
            contact.skipped.map(describeSkip).join(", ") || null,
            contact.attempted_at && <Time at={contact.attempted_at} />,
          ])}
          isTall
        />
      )}
      {only === undefined || other !== undefined || listed.after !== undefined ? null : (
        <RecipientActions contact={only} back={listHref(view, "/people", {})} />
      )}
      <ListPages path="/people" rows="people" next={found.next} />
    </ConsoleDocument>
  );
  return { page, disclosed: { records: found.page.length } };
}

/** Reads the filter from the page's address. */
function readPeopleFilter(view: View): PeopleFilter {
  return {
    search: readText(view, "search"),
    status: readChoice(view, "status", SHOWN_STATUSES),
    basis: readChoice(view, "basis", BASES),
    skipped: readChoice(view, "skipped", SKIP_REASONS),
    variant: readText(view, "variant"),
    source: readChoice(view, "source", ORIGINS),
  };
}

function Filter({ view, filter, variants }: { view: View; filter: PeopleFilter; variants: readonly string[] }): VNode {
  return (
    <PageForm class="filter" action="/people" data-apply>
      <HiddenFields of={["sort", "order"].map((name) => [name, view.query.get(name) ?? undefined])} />
      <Field label="Search" name="search" value={filter.search} maxLength={100} placeholder="handle, name or id" />
      <Select name="status" label="Status" values={SHOWN_STATUSES} chosen={filter.status} inWords={statusInWords} />
      <Select name="basis" label="Basis" values={BASES} chosen={filter.basis} />
      <Select name="skipped" label="Skipped for" values={SKIP_REASONS} chosen={filter.skipped} inWords={describeSkip} />
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

interface CountsProps {
  readonly counts: FoundPeople["counts"];
  readonly view: View;
  readonly status: ShownStatus | undefined;
  readonly known: number;
}

/** Shows the number of found contacts in each status, with a link that shows only these. */
function Counts({ view, status, counts, known }: CountsProps): VNode {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <p role="status">
        {grouped(status === undefined ? all : counts[status])} of {grouped(known)} {known === 1 ? "person" : "people"}.
      </p>
      <Tabs
        label="By status"
        tabs={[undefined, ...SHOWN_STATUSES].map((one) => [
          listHref(view, "/people", { status: one }),
          one === undefined ? `all ${grouped(all)}` : `${statusInWords(one)} ${grouped(counts[one])}`,
          status === one,
        ])}
      />
    </>
  );
}

interface NamedContact extends RecipientNames {
  readonly name?: string | undefined;
}

/** Returns the handle or id of a contact, with the name if it is known. */
export function formatContactName({ id, username, name }: NamedContact): string {
  const handle = username === undefined ? (id ?? "unnamed") : `@${username}`;
  return name === undefined ? handle : `${handle} (${name})`;
}
