/** @jsxImportSource preact */
import type { VNode } from "preact";
import { searchLog, type SearchGroup, type SearchResult } from "../../history/search-by-id-or-name.ts";
import { nameRun } from "../../history/run-list-and-page.ts";
import { grouped } from "../../platform/format-numbers-and-lists.ts";
import { campaignHref, eventHref, hrefForLink, recipientHref, runHref } from "../hrefs.ts";
import { ConsoleDocument } from "../document.tsx";
import { toSpaces } from "../parts/action-form.tsx";
import { Icon, type IconName } from "../parts/icon-and-badge.tsx";
import { suppressHref } from "../parts/recipient-actions.tsx";
import { formatContactName } from "./people.tsx";
import { consolePage, type DisclosingPage, type OtherPage, readText, type View } from "../page-context.ts";
import { A } from "../parts/links-forms-and-tabs.tsx";
import { Time } from "../parts/time.tsx";

/** Maximum number of results of one kind, on the page and among the suggestions while an operator types. */
const SHOWN_MAX = 20;
const SUGGESTED_MAX = 4;

/** Maximum number of suggestions of all kinds together, so that the list needs no scrolling. */
const SUGGESTED_IN_ALL_MAX = 9;

/**
 * Page that searches. It redirects to the recipient, link, run or event that the text names, even if a handle is part
 * of a question; otherwise it lists everything with the text in its name, by kind.
 */
export const findPage = consolePage({
  reads: ["account", "campaigns", "clicks", "contacts", "links", "referrers", "results", "runs"],
  render: renderFind,
});

type Searched = View<"account" | "campaigns" | "clicks" | "contacts" | "links" | "referrers" | "results" | "runs">;

async function renderFind(view: Searched): Promise<DisclosingPage | OtherPage> {
  const wanted = readText(view, "q");
  const isSuggesting = view.query.has("suggest");
  const empty = { exact: [], groups: [], part: "" };
  const found = wanted === undefined ? empty : await searchLog(view, wanted, isSuggesting ? SUGGESTED_MAX : SHOWN_MAX);
  const groups = isSuggesting ? limitAll(found.groups) : found.groups;
  const disclosed = { records: groups.reduce((sum, { results }) => sum + results.length, 0) };
  const [only, ...others] = found.exact.flatMap((result) => toLink(view, result)[1] ?? []);
  if (!isSuggesting && only !== undefined && others.length === 0) return { location: only, disclosed: { records: 1 } };
  const page = (
    <ConsoleDocument title="Find" view={view}>
      <h1>{wanted === undefined ? "Find" : `“${wanted}”`}</h1>
      <div id="found" class="stack">
        {groups.map((group) => (
          <Group
            view={view}
            group={group}
            part={found.part}
            exact={found.exact}
            rest={isSuggesting ? `/find?${new URLSearchParams({ q: wanted ?? "" })}` : undefined}
          />
        ))}
      </div>
      {wanted === undefined || groups.length > 0 ? null : (
        <p class="empty">The log has nothing with that name. Search for a shorter part of it.</p>
      )}
    </ConsoleDocument>
  );
  return { page, disclosed };
}

function limitAll(groups: readonly SearchGroup[]): readonly SearchGroup[] {
  let left = SUGGESTED_IN_ALL_MAX;
  return groups.flatMap((group) => {
    const results = group.results.slice(0, left);
    left -= results.length;
    return results.length === 0 ? [] : [{ ...group, results }];
  });
}

const KINDS: Readonly<Record<SearchResult["kind"], readonly [heading: string, icon: IconName]>> = {
  recipient: ["People", "users"],
  run: ["Runs", "send"],
  campaign: ["Campaigns", "megaphone"],
  template: ["Templates", "fileText"],
  link: ["Links", "link"],
  event: ["Events", "list"],
};

interface GroupProps {
  readonly view: View<"runs">;
  readonly group: SearchGroup;
  readonly part: string;
  /** Results whose whole name is the searched text. */
  readonly exact: readonly SearchResult[];
  /** Address of the page with all results. Undefined on this page itself. */
  readonly rest: string | undefined;
}

function Group({ view, group: { kind, total, results }, part, exact, rest }: GroupProps): VNode {
  const [heading, icon] = KINDS[kind];
  const people = `/people?${new URLSearchParams({ search: part })}`;
  const all = kind === "recipient" ? people : rest;
  const count = results.length === total ? "" : `${results.length} of ${grouped(total)}`;
  const id = `found-${kind}`;
  return (
    <section class="card found" aria-labelledby={id}>
      <h2 id={id}>
        {heading} {kind === "recipient" && count !== "" ? <A href={people}>{count}</A> : <small>{count}</small>}
      </h2>
      <ul>
        {results.map((result) => {
          const [name, href] = toLink(view, result);
          return href === undefined ? null : (
            <li>
              <A class="option" href={href}>
                <Icon name={icon} />
                <span>
                  <b>
                    <Marked text={name} part={part} />
                  </b>
                  <Details result={result} />
                </span>
                {result.kind === "recipient" ? <small>{toStatus(result.recipient.status)}</small> : null}
              </A>
              {exact.includes(result) ? <SuppressLink view={view} result={result} /> : null}
            </li>
          );
        })}
      </ul>
      {count === "" || all === undefined ? null : (
        <A class="option" href={all}>
          <Icon name="search" />
          <b>
            All {grouped(total)} {heading.toLowerCase()}
          </b>
        </A>
      )}
    </section>
  );
}

/**
 * Link to a page that asks whether to suppress this recipient. Renders nothing for other results, and for recipients
 * who are suppressed already.
 */
function SuppressLink({ view, result }: { readonly view: View; readonly result: SearchResult }): VNode | null {
  if (result.kind !== "recipient" || result.recipient.status === "suppressed") return null;
  const href = suppressHref(result.recipient);
  if (href === undefined || view.formToken === undefined) return null;
  const { name: _, ...names } = result.recipient;
  return (
    <A class="option" href={href}>
      <Icon name="ban" />
      <span>
        <b>
          Suppress <bdi>{formatContactName(names)}</bdi>…
        </b>
        <small>No run ever writes to them again</small>
      </span>
    </A>
  );
}

function toStatus(status: string): string {
  return status === "open" ? "not contacted yet" : toSpaces(status);
}

function Details({ result }: { readonly result: SearchResult }): VNode | null {
  if (result.kind !== "recipient" || result.recipient.attemptedAt === undefined) return null;
  const { variant, attemptedAt } = result.recipient;
  return (
    <small>
      {variant === undefined ? "Message" : `Variant ${variant}`} · <Time at={attemptedAt} />
    </small>
  );
}

/** Shows a name, in which the searched part is marked. */
function Marked({ text, part }: { readonly text: string; readonly part: string }): VNode {
  const at = part === "" ? -1 : text.toLowerCase().indexOf(part);
  if (at === -1) return <bdi>{text}</bdi>;
  return (
    <bdi>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + part.length)}</mark>
      {text.slice(at + part.length)}
    </bdi>
  );
}

/** Returns the name of a search result, and the address of its page if it has one. */
function toLink(view: View<"runs">, result: SearchResult): readonly [name: string, href: `/${string}` | undefined] {
  switch (result.kind) {
    case "recipient":
      return [formatContactName(result.recipient), recipientHref(result.recipient)];
    case "run":
      return [nameRun(view.state("runs"), result.runId), runHref(result.runId)];
    case "campaign":
      return [result.name, campaignHref(result.name)];
    case "template":
      return [result.name, "/results"];
    case "link":
      return [result.link, hrefForLink(result.link)];
    case "event":
      return [result.id ?? `Position ${grouped(result.position)}`, eventHref(result.position)];
  }
}
