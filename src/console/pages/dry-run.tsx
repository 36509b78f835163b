/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Usage } from "../../../events/outreach.ts";
import { describeSelection } from "../../history/words/outreach.ts";
import { formatSentence, plain } from "../../history/words/sentence.ts";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import type { DryRun } from "../../outreach/execute-run.ts";
import { momentIn } from "../../outreach/quota-day.ts";
import { showUnseen } from "../../template/visible-text.ts";
import { remaining, type RunSelection } from "../../outreach/run-limits.ts";
import { ConfirmedAction } from "../parts/action-form.tsx";
import { ConsoleDocument, Section } from "../document.tsx";
import { RecipientLink, shorten } from "../parts/events.tsx";
import { ENDS } from "../parts/run-card.tsx";
import { Time } from "../parts/time.tsx";
import { formatContactName } from "./people.tsx";
import { consolePage, type ConsolePage, type View } from "../page-context.ts";
import { breakable, OnlyFirst, Table } from "../parts/table.tsx";
import { A } from "../parts/link.tsx";

/** The result of a dry run, as the API answers it. */
export interface DryRunAnswer extends RunSelection, DryRun {
  /** Upper bounds of what the network charges for the dry run. */
  readonly usage: Usage;
  /** Upper bounds of what the network would charge for the run. */
  readonly estimate: Usage;
}

/** Most recipients in a table; below a longer list it says how many there are. */
export const ROWS_SHOWN = 100;

/** Characters of a text in the table: it may be 10,000 long. */
const CHARACTERS_SHOWN = 500;

/**
 * The recipients of a run that starts now. They are recorded nowhere, so the page answers the form and never reloads.
 */
export function dryRunPage(found: DryRunAnswer): ConsolePage {
  return consolePage({
    reads: ["account", "quota"],
    render: (view) => (
      <ConsoleDocument title="Dry run" path="/" view={view} isStill>
        <h1>Dry run</h1>
        <p>
          A run{formatSentence(describeSelection(found))} would write to <b>{people(found.would_send.length)}</b> now
          and skip {people(found.would_skip.length)}. It would end there: {ENDS[found.reason]}
          <Time before=" until " at={found.until} isExact />. Nothing was sent.
        </p>
        <p>
          The run costs at most <b>{dollars(found.estimate)}</b>. This dry run cost at most {dollars(found.usage)}; what
          was read is not charged again today.
        </p>
        <Run view={view} found={found} />
        <Sends found={found} />
        <Skips found={found} />
      </ConsoleDocument>
    ),
  });
}

function Run({ view, found }: FoundProps & { readonly view: View<"account" | "quota"> }): VNode {
  const { length: count } = found.would_send;
  if (count === 0) {
    return (
      <p class="empty">
        No recipient is due: <A href="/people">import people</A>, or see below why they are skipped.
      </p>
    );
  }
  const { settings } = view;
  const left = remaining({ quota: view.state("quota") }, settings, momentIn(settings.timezone, view.now));
  const most = Math.min(left, found.limit ?? Infinity);
  const user = view.state("account").user?.username;
  return (
    <ConfirmedAction
      view={view}
      back="/"
      action="/console/run/start"
      fields={toFields(found)}
      label="Run"
      says={
        <>
          This sends real messages as <bdi>@{user}</bdi>: to {people(count)}, and to others who become due by then. It
          sends at most {grouped(most)}, {most < left ? "its limit" : "the rest of the day's quota"}. You can stop a
          run, but you cannot unsend its messages.
        </>
      }
    >
      <button class="primary">Send messages</button>
    </ConfirmedAction>
  );
}

/** The selection of the dry run, as fields for the run that it rehearses. */
function toFields({ limit, variant, basis, source }: RunSelection): Record<string, string> {
  const given = Object.entries({ limit, variant, basis, source }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
}

interface FoundProps {
  readonly found: DryRunAnswer;
}

function Sends({ found: { would_send: sends } }: FoundProps): VNode | null {
  if (sends.length === 0) return null;
  return (
    <Section id="sends" title="Would get a message">
      <Table
        label="Table of messages"
        columns={["recipient", "variant", ...breakable("text")]}
        rows={sends
          .slice(0, ROWS_SHOWN)
          .map(({ recipient, variant, text }) => [
            <RecipientLink recipient={recipient} name={formatContactName(recipient)} />,
            variant,
            <bdi class="message">
              {shorten(showUnseen(text), CHARACTERS_SHOWN, ` (${grouped(text.length)} characters)`)}
            </bdi>,
          ])}
        isTall
      />
      <Cut count={sends.length} />
    </Section>
  );
}

function Skips({ found: { would_skip: skips } }: FoundProps): VNode | null {
  if (skips.length === 0) return null;
  const reasons = Map.groupBy(skips, ({ reason }) => reason);
  return (
    <Section id="skips" title="Would be skipped">
      <ul>
        {[...reasons].map(([reason, of]) => (
          <li>
            {plain(reason)}: {grouped(of.length)}
          </li>
        ))}
      </ul>
      <Table
        label="Table of those skipped"
        columns={["recipient", "reason"]}
        rows={skips
          .slice(0, ROWS_SHOWN)
          .map(({ recipient, reason, detail }) => [
            <RecipientLink recipient={recipient} name={formatContactName(recipient)} />,
            detail === undefined ? plain(reason) : `${plain(reason)}: ${detail}`,
          ])}
        isTall
      />
      <Cut count={skips.length} />
    </Section>
  );
}

/** Says that there are more than the table shows. */
function Cut({ count }: { readonly count: number }): VNode {
  return (
    <OnlyFirst shown={ROWS_SHOWN} count={count}>
      ; <code>POST /social/run</code> with <code>{'{"dry_run":true}'}</code> answers all.
    </OnlyFirst>
  );
}

function people(count: number): string {
  return countInWords(count, "person", "people");
}

function dollars({ usd }: Usage): string {
  return `${usd.toFixed(2)} USD`;
}
