/** @jsxImportSource preact */
import type { VNode } from "preact";
import { CHANNELS, type ChannelName } from "../../../events/channel.ts";
import { LETTERS_MAX } from "../../../projections/dead-letters.ts";
import { drainInWords, measureLags, type ChannelLag } from "../../delivery/lag.ts";
import {
  listDeadLetters,
  listInDoubt,
  type ListCursor,
  type ListedDispatch,
  type ListPage,
} from "../../delivery/list-dispatches.ts";
import { formatDuration } from "../../platform/format-duration.ts";
import { eventHref } from "../hrefs.ts";
import { ChannelStatus } from "../parts/channel-status.tsx";
import { DecideAllLetters, DecideLetter } from "../parts/dead-letter-actions.tsx";
import { ConsoleDocument, grouped, Section } from "../document.tsx";
import { EventSentence } from "../parts/events.tsx";
import { ActionForm, Select } from "../parts/action-form.tsx";
import { Time } from "../parts/time.tsx";
import { readChoice, type View } from "../view.ts";
import { numbers, Table } from "../parts/table.tsx";

/** Events read for one figure at the most: some milliseconds of a page that a browser fetches again each second. */
const TAIL_EVENTS_MAX = 2_000;

/** How far each channel is, and what did not get through. */
export async function deliveriesPage(view: View): Promise<VNode> {
  const channel = readChoice(view, "channel", CHANNELS);
  const channels = channel === undefined ? CHANNELS : [channel];
  const lags = await measureLags(
    {
      store: view.store,
      deliveries: () => view.state("deliveries"),
      isConfigured: (name) => view.settings.configured.includes(name),
      tail: { to: view.position, eventsMax: TAIL_EVENTS_MAX },
    },
    channels,
    view.now,
  );
  const letters = await listDeadLetters(view.store, view.state("deliveries"), {
    channels,
    after: readCursor(view, "letters_after"),
  });
  const inDoubt = await listInDoubt(view.store, {
    channels,
    after: readCursor(view, "in_doubt_after"),
    to: view.position,
  });
  return (
    <ConsoleDocument title="Deliveries" path="/deliveries" view={view}>
      <h1>Deliveries</h1>
      <form class="filter" method="get" action="/deliveries">
        <Select name="channel" label="Channel" values={CHANNELS} chosen={channel} />
        <button>Show</button>
      </form>
      <LagTable view={view} lags={lags} />
      <Section id="letters" title="Dead letters">
        <DeadLetters view={view} channels={channels} page={letters} />
        <Turn view={view} cursor="letters_after" page={letters} />
      </Section>
      <Section id="in-doubt" title="In doubt">
        <p class="quiet">Each may or may not have arrived. None is sent again, since that could double it.</p>
        {inDoubt.dispatches.length === 0 ? (
          <p class="empty">{inDoubt.next === undefined ? "Nothing is in doubt." : "None among those looked at."}</p>
        ) : (
          <ol class="events">
            {inDoubt.dispatches.map((one) => (
              <Dispatch one={one} />
            ))}
          </ol>
        )}
        <Turn view={view} cursor="in_doubt_after" page={inDoubt} />
      </Section>
    </ConsoleDocument>
  );
}

function LagTable({ view, lags }: { readonly view: View; readonly lags: readonly ChannelLag[] }): VNode {
  return (
    <Table
      label="Channels"
      columns={[
        "channel",
        "state",
        ...numbers("pending", "oldest click", "settled a minute", "requested a minute", "drained in"),
      ]}
    >
      {lags.map((lag) => (
        <tr>
          <th scope="row">{lag.channel}</th>
          <td>
            <ChannelStatus view={view} name={lag.channel} failuresInARow={lag.failures_in_a_row} />{" "}
            {lag.suspended === null ? null : (
              <ActionForm
                view={view}
                back={deliveriesHref(view)}
                action="/console/deliveries/resume"
                fields={{ channel: lag.channel }}
              >
                <button>Resume {lag.channel}</button>
              </ActionForm>
            )}
          </td>
          {toFigures(lag).map((figure) => (
            <td class="number">{figure}</td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

function toFigures(lag: ChannelLag): readonly string[] {
  const { backlog, oldest_click_seconds: age } = lag;
  return [
    grouped(backlog),
    age === null ? "–" : formatDuration(age),
    grouped(lag.settled_per_minute),
    grouped(lag.requested_per_minute),
    drainInWords(lag),
  ];
}

interface DeadLettersProps {
  readonly view: View;
  readonly channels: readonly ChannelName[];
  readonly page: ListPage;
}

function DeadLetters({ view, channels, page }: DeadLettersProps): VNode {
  const states = view.state("deliveries");
  const dead = channels.reduce((sum, name) => sum + states[name].dead, 0);
  const unlisted = channels.reduce((sum, name) => sum + states[name].dead - states[name].letters.listed.size, 0);
  if (dead === 0) return <p class="empty">No dead letters: nothing was given up, or all of it is decided.</p>;
  return (
    <>
      <p>
        {grouped(dead)} {dead === 1 ? "dispatch was" : "dispatches were"} given up.
        {unlisted > 0 ? (
          <>
            {" "}
            The newest {grouped(LETTERS_MAX)} of each channel are listed here; <code>reachlog deliveries list</code> has
            all of them.
          </>
        ) : null}
      </p>
      {channels.map((name) => (
        <DecideAllLetters view={view} back={deliveriesHref(view)} channel={name} />
      ))}
      <ol class="events">
        {page.dispatches.map((one) => (
          <Dispatch one={one}>
            <DecideLetter view={view} back={deliveriesHref(view)} letter={one} />
          </Dispatch>
        ))}
      </ol>
    </>
  );
}

/** What was to be delivered, and why it was not. */
function Dispatch({ one, children }: { readonly one: ListedDispatch; readonly children?: VNode }): VNode {
  const { channel, source, outcome } = one;
  const [request] = outcome.data.requests;
  if (request === undefined) throw new Error(`the outcome at ${outcome.position} has no request`);
  const doubtful = "doubtful_since" in request ? request.doubtful_since : undefined;
  return (
    <li id={`${channel}-${source.position}`}>
      <a href={eventHref(source.position)}>{grouped(source.position)}</a> <EventSentence event={source} />
      <p class="quiet">
        <b>{channel}</b>, {describeEnd(request)}, <Time at={outcome.time} /> (
        <a href={eventHref(outcome.position)}>event {grouped(outcome.position)}</a>
        {request.status === undefined ? null : `, status ${request.status}`}): <bdi>{request.detail}</bdi>
        {doubtful === undefined ? null : (
          <>
            {"; "}an attempt of <Time at={doubtful} /> may have arrived
          </>
        )}
      </p>
      {children}
    </li>
  );
}

function describeEnd(request: ListedDispatch["outcome"]["data"]["requests"][number]): string {
  const { attempt } = request;
  if (!("refused" in request)) return `in doubt at attempt ${attempt}`;
  return request.refused
    ? `refused for good at attempt ${attempt}`
    : `out of attempts after ${attempt === 1 ? "the first" : attempt}`;
}

type CursorName = "letters_after" | "in_doubt_after";

interface TurnProps {
  readonly view: View;
  readonly cursor: CursorName;
  readonly page: ListPage;
}

/** To the next page of a list, and back to its first. */
function Turn({ view, cursor, page: { next } }: TurnProps): VNode {
  return (
    <p>
      {view.query.has(cursor) ? <a href={deliveriesHref(view, cursor, undefined)}>Newest</a> : null}{" "}
      {next === undefined ? null : <a href={deliveriesHref(view, cursor, next)}>Older</a>}
    </p>
  );
}

function readCursor({ query }: View, name: CursorName): ListCursor | undefined {
  const [, position, source] = /^(\d{1,15})-(\d{1,15})$/.exec(query.get(name) ?? "") ?? [];
  return position === undefined ? undefined : { position: Number(position), source: Number(source) };
}

/** This page; `cursor`, when it is named, is where one of its lists begins. */
function deliveriesHref({ query }: View, cursor?: CursorName, at?: ListCursor): string {
  const next = new URLSearchParams(query);
  if (cursor !== undefined) next.delete(cursor);
  if (cursor !== undefined && at !== undefined) next.set(cursor, `${at.position}-${at.source}`);
  return next.size === 0 ? "/deliveries" : `/deliveries?${next}`;
}
