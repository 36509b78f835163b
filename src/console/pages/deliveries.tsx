/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { DataOf } from "../../../events/event-types-and-codec.ts";
import {
  countChosen,
  readChannels,
  readUndelivered,
  type UndeliveredDispatch,
  type UndeliveredGroup,
} from "../../delivery/channel-backlog-and-undelivered.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { addressWith, eventHref, linkHref } from "../hrefs.ts";
import { ChannelTile, hindranceToDeliver } from "../parts/channel-status.tsx";
import { DecideLetters, Reason, RetryLetters } from "../parts/dead-letter-actions.tsx";
import { ConsoleDocument, FaultNotice, Head, Section } from "../document.tsx";
import { MINUTE } from "../parts/attention.tsx";
import { EventSentence } from "../parts/event-sentence.tsx";
import { ActionForm, Hindered } from "../parts/action-form.tsx";
import { Time } from "../parts/time.tsx";
import { consolePage, readChoice, readText, type View } from "../page-context.ts";
import { A, HiddenFields, PageForm } from "../parts/links-forms-and-tabs.tsx";

type DeliveriesView = View<"account" | "deliveries" | "runs">;

/**
 * Page Deliveries: the progress of each channel, its dead letters (dispatches given up), and its dispatches in doubt.
 */
export const deliveriesPage = consolePage({ reads: ["account", "deliveries", "runs"], render: renderDeliveries });

/** Query parameters that name the dispatch after which a list continues. */
const CURSORS = { dead: "letters_after", in_doubt: "in_doubt_after" } as const;

async function renderDeliveries(view: DeliveriesView): Promise<VNode> {
  const { timezone, recognisesMs } = view.settings;
  const { texts, fault, lists } = await readUndelivered(view, {
    timezone,
    recognisesMs,
    readText: (name) => readText(view, name),
    readCursor: (status) => view.query.get(CURSORS[status]) ?? "",
  });
  const channels = await readChannels(view);
  const isFiltered = Object.keys(texts).length > 0;
  return (
    <ConsoleDocument title="Deliveries" path="/deliveries" view={view}>
      <Head title="Deliveries" says="What each channel received in the last 24 hours, and what waits for you" />
      <FaultNotice>{fault && `${fault}.`}</FaultNotice>
      <div class="tiles">
        {channels.map((channel) => (
          <ChannelTile view={view} channel={channel} />
        ))}
      </div>
      {isFiltered ? (
        <ul class="chips" aria-label="Chosen filters">
          {Object.entries(texts).map(([name, value]) => (
            <li>
              {name}: <bdi>{value}</bdi>
              <A href={addressWith("/deliveries", view.query, { [name]: undefined })} aria-label={`Without ${name}`}>
                ×
              </A>
            </li>
          ))}
        </ul>
      ) : null}
      {lists.map(({ status, count, groups }) => {
        const { id, title, none, some, List } = LISTS[status];
        const badge = count === 0 ? null : <span class="badge">{grouped(count)}</span>;
        return (
          <Section id={id} title={[title, " ", badge]} class="card letters">
            <p class="quiet">{count === 0 && !isFiltered ? none : some}</p>
            {groups.map((group) => (
              <List view={view} group={group} />
            ))}
          </Section>
        );
      })}
    </ConsoleDocument>
  );
}

/**
 * The two lists of the page, dead letters and dispatches in doubt: each with its id, title and texts, and the component
 * that renders one group of its dispatches.
 */
const LISTS = {
  dead: {
    id: "letters",
    title: "Dead letters",
    none: "No dead letters: nothing was given up, or all of it was decided.",
    some: "Given up after the last attempt; waiting for your decision.",
    List: Cause,
  },
  in_doubt: {
    id: "in-doubt",
    title: "In doubt",
    none: "Nothing is in doubt.",
    some: "They may or may not have arrived. Nothing is sent again by itself.",
    List: Doubts,
  },
} as const;

interface GroupProps {
  readonly view: DeliveriesView;
  readonly group: UndeliveredGroup;
}

const CAUSES: Readonly<Record<string, string>> = {
  no_answer: "No answer",
  no_request: "No request was possible",
};

/**
 * Shows the dead letters of one cause: what happened, a button that retries them all, a box to choose each, and a bar of
 * actions on the chosen ones.
 */
function Cause({ view, group }: GroupProps): VNode {
  const { backlog, error, count, doubles, from, to, detail, until } = group;
  const { name, title } = backlog;
  const hindrance = hindranceToDeliver(view, backlog);
  const back = addressWith("/deliveries", view.query, { confirm: undefined });
  const filter = Object.fromEntries(["link", "from", "to"].map((member) => [member, readText(view, member) ?? ""]));
  const fields = { ...filter, channel: name, error, all: "true", until_position: String(until) };
  const risk =
    doubles === 0
      ? "None arrived, so retrying cannot create duplicates."
      : `${grouped(doubles)} may have arrived, and retrying these can create duplicates.`;
  return (
    <div id={`cause-${name}-${error}`} class="cause">
      <div class="cause-head">
        <h3>
          {CAUSES[error] ?? error} from {title} <span class="badge">{grouped(count)}</span>
        </h3>
        <p>
          <bdi>{detail}</bdi>. {backlog.suspended === null ? risk : <Hindered hindrance={hindrance} />}
        </p>
        <p class="quiet">
          <Time at={from} />
          {from.slice(0, MINUTE) === to.slice(0, MINUTE) ? null : <Time before=" – " at={to} />}
        </p>
        {view.formToken === undefined ? null : (
          <div class="actions">
            <RetryLetters {...{ back, backlog, count, doubles, fields }} />
          </div>
        )}
      </div>
      <PageForm action="/deliveries/decide" aria-label={`${title}, ${CAUSES[error] ?? error}`}>
        <HiddenFields of={Object.entries({ channel: name, error })} />
        {view.formToken === undefined ? null : (
          <div class="bulk" role="group" aria-label="Chosen dead letters">
            <label>
              <input type="checkbox" name="all" value="true" /> All {grouped(count)}
            </label>
            <button name="act" value="discard" class="button dangerous">
              Discard…
            </button>
            {backlog.suspended === null ? (
              <button name="act" value="retry" disabled={hindrance !== undefined}>
                Retry…
              </button>
            ) : null}
            <small id={`untouched-${name}-${error}`} hidden>
              Tick a dead letter first.
            </small>
          </div>
        )}
        <ul class="letter-rows">
          {group.dispatches.map((one) => (
            <Dispatch view={view} one={one}>
              {view.formToken === undefined ? null : (
                <input
                  type="checkbox"
                  name="source"
                  value={one.source.position}
                  aria-label={`Event ${grouped(one.source.position)}`}
                />
              )}
            </Dispatch>
          ))}
        </ul>
      </PageForm>
      <More view={view} group={group} status="dead" />
    </div>
  );
}

/** Shows the dispatches of one channel that are in doubt, with three answers for each and one reason for all. */
function Doubts({ view, group }: GroupProps): VNode {
  const { name, title, whyDouble } = group.backlog;
  const hindrance = hindranceToDeliver(view, group.backlog);
  const answers = [
    ["arrived", "It arrived"],
    ["leave", "Leave it"],
    ["again", "Send again"],
  ] as const;
  const rows = group.dispatches.map((one) => (
    <Dispatch view={view} one={one}>
      {view.formToken === undefined ? null : (
        <fieldset class="answers">
          <legend class="unseen">Your decision on event {grouped(one.source.position)}</legend>
          {answers.map(([value, label]) => (
            <label>
              <input
                type="radio"
                name={`row-${one.source.position}`}
                value={value}
                disabled={value === "again" && hindrance !== undefined}
              />
              {label}
            </label>
          ))}
        </fieldset>
      )}
    </Dispatch>
  ));
  return (
    <div id={`doubts-${group.backlog.name}`} class="cause doubts">
      <div class="cause-head">
        <h3>
          {title} <span class="badge">{grouped(group.count)}</span>
        </h3>
        <p>
          Sending again can create duplicates: {whyDouble}. <Hindered hindrance={hindrance} />
        </p>
      </div>
      {view.formToken === undefined ? (
        <ul class="letter-rows">{rows}</ul>
      ) : (
        <ActionForm
          back={addressWith("/deliveries", view.query, {})}
          action="/console/deliveries/decide"
          fields={{ channel: name }}
        >
          <ul class="letter-rows">{rows}</ul>
          <div class="bulk">
            <Reason label="Reason for all" />
            <button class="primary">Record decisions</button>
            <small id={`undecided-${name}`} hidden>
              Choose a decision first.
            </small>
          </div>
        </ActionForm>
      )}
      <More view={view} group={group} status="in_doubt" />
    </div>
  );
}

/** A dispatch in a list: the event that it delivers, when it ended, and why it failed. */
function Dispatch({ view, one, children }: { view: View<"runs">; one: UndeliveredDispatch; children: VNode | null }) {
  const { channel, source, outcome } = one;
  const [request] = outcome.data.requests;
  const doubt = request !== undefined && "doubtful_since" in request ? request.doubtful_since : undefined;
  return (
    <li id={`${channel}-${source.position}`}>
      {children}
      {source.type === "LinkClicked" ? <Click data={source.data} /> : <EventSentence view={view} event={source} />}
      <p class="quiet">
        <span>
          <Time at={outcome.time} />
        </span>{" "}
        <span>{countInWords(request?.attempt ?? 0, "try", "tries")}</span>{" "}
        <span>
          <A href={eventHref(outcome.position)}>
            {request?.status === undefined ? null : `${request.status}, `}
            <bdi>{request?.detail}</bdi>
          </A>
          <Time before=" · may have arrived " at={doubt} />
        </span>
      </p>
    </li>
  );
}

function Click({ data: { bot, domain, short_code } }: { readonly data: DataOf<"LinkClicked"> }): VNode {
  return (
    <p class="sentence">
      Click by a {bot ? "bot" : "person"} on{" "}
      <A href={linkHref(domain, short_code)}>
        <bdi>
          {domain}/{short_code}
        </bdi>
      </A>
    </p>
  );
}

/** Links to all dispatches of a group, to its next page, or back to its first page. */
function More({ view, group, status }: GroupProps & { readonly status: keyof typeof CURSORS }): VNode | null {
  const { backlog, error, dispatches, count, next } = group;
  const cursor = CURSORS[status];
  const only = { channel: backlog.name, status, ...(error === "" ? {} : { error }) };
  const hrefTo = (changes: Record<string, string | undefined>) => addressWith("/deliveries", view.query, changes);
  if (count === dispatches.length) return null;
  const isAlone = view.query.get("channel") === backlog.name || next !== undefined || view.query.has(cursor);
  return (
    <p class="more">
      {grouped(dispatches.length)} of {grouped(count)}{" "}
      {isAlone && view.query.has(cursor) ? <A href={hrefTo({ [cursor]: undefined })}>Newest</A> : null}{" "}
      {next === undefined ? null : <A href={hrefTo({ [cursor]: next })}>Older</A>}{" "}
      {isAlone ? null : <A href={hrefTo(only)}>Show all {grouped(count)}</A>}
    </p>
  );
}

/** Page that asks the operator once more before many dead letters are retried or discarded, and states their number. */
export const decideLettersPage = consolePage({
  reads: ["account", "deliveries"],
  async render(view) {
    const { timezone, recognisesMs } = view.settings;
    const { query } = view;
    const act = readChoice(view, "act", ["retry", "discard"]) ?? "retry";
    const isAll = query.get("all") === "true";
    const channel = readText(view, "channel");
    const error = readText(view, "error");
    const sources = isAll
      ? undefined
      : query.getAll("source").flatMap((text) => (/^\d{1,15}$/.test(text) ? [Number(text)] : []));
    const chosen = await countChosen(view, { texts: { channel, error }, sources, timezone, recognisesMs });
    const back = addressWith("/deliveries", new URLSearchParams(), {});
    if (chosen === undefined) {
      const text = "Nothing was ticked. Tick dead letters, or all of a cause, and press the button again.";
      return { location: "/deliveries", notice: { text, isFault: true }, disclosed: {} };
    }
    const verb = act === "retry" ? "Retry" : "Discard";
    const title = `${verb} ${countInWords(chosen.count, "dead letter")} of ${chosen.backlog.title}?`;
    const filter = { channel: channel ?? "", error: error ?? "" };
    const fields: Record<string, string> =
      sources === undefined
        ? { ...filter, all: "true", until_position: String(view.position) }
        : { channel: filter.channel, event_ids: sources.join(" ") };
    return (
      <ConsoleDocument title={title} path="/deliveries" view={view} isStill>
        <section class="confirm">
          <h1>{title}</h1>
          <DecideLetters {...{ back, act, fields, ...chosen }} />
        </section>
      </ConsoleDocument>
    );
  },
});
