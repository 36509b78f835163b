/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Contact, ContactStatus } from "../../projections/contacts.ts";
import type { Basis } from "../../events/outreach.ts";
import { personHref } from "./addresses.ts";
import { ConsoleDocument, grouped } from "./document.tsx";
import { Linked } from "./linked.tsx";
import { Time } from "./time.tsx";
import { defined, numberOf, oneOf, textOf, type View } from "./view.ts";

/** Rows of one page of the list. */
export const PEOPLE_SHOWN = 100;

/** What a person may be looked for by; `suppressed` is shown in place of how far we got. */
type PersonStatus = ContactStatus | "suppressed";

const PERSON_STATUSES: readonly PersonStatus[] = ["open", "attempted", "in_doubt", "sent", "failed", "suppressed"];

/** Words for whoever reads them. */
export const STATUS_WORDS: Readonly<Record<PersonStatus, string>> = {
  open: "not written to yet",
  attempted: "being written to",
  in_doubt: "in doubt",
  sent: "sent",
  failed: "failed",
  suppressed: "suppressed",
};

export const BASIS_WORDS: Readonly<Record<Basis, string>> = {
  dm_first: "wrote first",
  opt_in: "opted in",
  none: "none",
};

const BASES = Object.keys(BASIS_WORDS) as Basis[];

interface PeopleFilter {
  /** Part of a handle, name or id. */
  readonly search?: string;
  readonly status?: PersonStatus;
  readonly basis?: Basis;
}

/** Everybody known, and how far we got with them. */
export function peoplePage(view: View): VNode {
  const filter = filterOf(view);
  const skip = numberOf(view, "skip") ?? 0;
  const { people: contacts } = view.state("contacts");
  const known = contacts.size;
  const all = [...contacts.values()].filter((contact) => isFound(contact, filter));
  const found = all.length;
  const people = all.slice(skip, skip + PEOPLE_SHOWN);
  return (
    <ConsoleDocument title="People" path="/people" view={view}>
      <h1>People</h1>
      <Filter filter={filter} />
      {known === 0 ? (
        <p class="empty">
          Nobody is known yet. <code>reachlog recipients import FILE</code> takes a CSV or JSON file.
        </p>
      ) : (
        <p>
          {grouped(found)} of {grouped(known)} {known === 1 ? "person" : "people"}.
        </p>
      )}
      {people.length === 0 ? null : <PeopleTable people={people} />}
      {skip + PEOPLE_SHOWN >= found ? null : (
        <p>
          <a href={`/people?${queryOf(filter, skip + PEOPLE_SHOWN)}`}>More people</a>
        </p>
      )}
    </ConsoleDocument>
  );
}

function Filter({ filter }: { readonly filter: PeopleFilter }): VNode {
  return (
    <form class="filter" method="get" action="/people">
      <label>
        Search <input name="search" value={filter.search ?? ""} maxLength={100} placeholder="handle, name or id" />
      </label>
      <label>
        Status{" "}
        <select name="status">
          <option value="">all</option>
          {PERSON_STATUSES.map((status) => (
            <option value={status} selected={status === filter.status}>
              {STATUS_WORDS[status]}
            </option>
          ))}
        </select>
      </label>
      <label>
        Basis{" "}
        <select name="basis">
          <option value="">all</option>
          {BASES.map((basis) => (
            <option value={basis} selected={basis === filter.basis}>
              {BASIS_WORDS[basis]}
            </option>
          ))}
        </select>
      </label>
      <button>Show</button>
    </form>
  );
}

function PeopleTable({ people }: { readonly people: readonly Contact[] }): VNode {
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="People">
      <table>
        <thead>
          <tr>
            {["person", "status", "basis", "skipped for", "last message"].map((head) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {people.map((contact) => (
            <tr>
              <th scope="row" class="breakable">
                <Linked href={personHref(contact)}>
                  <bdi>{nameOf(contact)}</bdi>
                </Linked>
              </th>
              <td>{STATUS_WORDS[statusOf(contact)]}</td>
              <td>{contact.inbound ? BASIS_WORDS.dm_first : BASIS_WORDS[contact.basis]}</td>
              <td>{contact.skipped.join(", ").replaceAll("_", " ")}</td>
              <td>{contact.attempted_at === undefined ? null : <Time at={contact.attempted_at} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function filterOf(view: View): PeopleFilter {
  return defined({
    search: textOf(view, "search"),
    status: oneOf(view, "status", PERSON_STATUSES),
    basis: oneOf(view, "basis", BASES),
  });
}

/** Those who fit the filter. */
function isFound(contact: Contact, { search = "", status, basis }: PeopleFilter): boolean {
  if (status !== undefined && statusOf(contact) !== status) return false;
  if (basis !== undefined && contact.basis !== basis) return false;
  const wanted = search.replace(/^@/, "").toLowerCase();
  if (wanted === "") return true;
  const { id = "", username = "", name = "" } = contact;
  return id === wanted || username.toLowerCase().includes(wanted) || name.toLowerCase().includes(wanted);
}

export function statusOf({ suppressed, status }: Contact): PersonStatus {
  return suppressed ? "suppressed" : status;
}

/** As people call them. */
export function nameOf({ id, username, name }: Contact): string {
  const handle = username === undefined ? (id ?? "somebody") : `@${username}`;
  return name === undefined ? handle : `${handle} (${name})`;
}

function queryOf({ search, status, basis }: PeopleFilter, skip: number): string {
  const query = new URLSearchParams();
  if (search !== undefined) query.set("search", search);
  if (status !== undefined) query.set("status", status);
  if (basis !== undefined) query.set("basis", basis);
  query.set("skip", String(skip));
  return query.toString();
}
