/** @jsxImportSource preact */
import type { VNode } from "preact";
import { readCampaign, readCampaigns, type ShownCampaign } from "../../outreach/campaigns/read-campaigns.ts";
import { countInWords, formatPercent, grouped } from "../../platform/format-numbers-and-lists.ts";
import { describeSkip, SKIP_REASONS } from "../../recipients/recipient-list-and-page.ts";
import { ConsoleDocument, FaultNotice, Head, Section } from "../document.tsx";
import { campaignHref } from "../hrefs.ts";
import { consolePage, type View } from "../page-context.ts";
import { ConfirmedAction, toSpaces } from "../parts/action-form.tsx";
import { CampaignForm, FollowUpButton } from "../parts/campaign-form.tsx";
import { RunName } from "../parts/event-sentence.tsx";
import { Badge, type BadgeState } from "../parts/icon-and-badge.tsx";
import { RunForm } from "../parts/run-form.tsx";
import { breakable, NamedValues, numbers, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { A } from "../parts/links-forms-and-tabs.tsx";
import { missingPage } from "./error-page.tsx";

/** Page of all campaigns: the audience of each, what it sent, and the form that creates one. */
export const campaignsPage = consolePage({ reads: ["account", "campaigns", "stats"], render: renderCampaigns });

function renderCampaigns(view: View<"account" | "campaigns" | "stats">): VNode {
  const campaigns = readCampaigns(view, view.settings.campaigns);
  const isActing = view.formToken !== undefined;
  return (
    <ConsoleDocument title="Campaigns" path="/campaigns" view={view}>
      <Head
        title="Campaigns"
        says={`Each recipient gets at most one message of a campaign. Between two messages of any campaign lie ${countInWords(view.settings.gapDays, "day")} at least.`}
      >
        <CampaignForm names={campaigns.map(({ name }) => name)} />
      </Head>
      <Table
        label="Campaigns"
        columns={[
          ...breakable("campaign", "audience"),
          ...numbers("sent"),
          "changed",
          { head: "state", kind: "state" },
          ...(isActing ? ["next"] : []),
        ]}
        rows={campaigns.map((campaign) => [
          <A href={campaignHref(campaign.name)}>
            <bdi>{campaign.name}</bdi>
          </A>,
          <bdi>{campaign.who}</bdi>,
          campaign.sent,
          campaign.changed_at === null ? "by the settings" : <Time at={campaign.changed_at} />,
          <Badge state={toState(campaign)} />,
          ...(isActing ? [<FollowUpButton campaign={campaign} />] : []),
        ])}
        isTall
      />
    </ConsoleDocument>
  );
}

function toState({ ended_at, fault }: ShownCampaign): BadgeState {
  if (ended_at !== null) return ["neutral", "pause", "ended"];
  if (fault !== null) return ["bad", "triangleAlert", "unusable text"];
  return ["good", "check", "open"];
}

const READS = [
  ...(["account", "campaigns", "contacts", "conversions", "links", "quota"] as const),
  ...(["results", "run", "runs", "visits"] as const),
];
type CampaignView = View<(typeof READS)[number]>;
type Found = NonNullable<Awaited<ReturnType<typeof readCampaign>>>;

/** Page of one campaign: its text, audience, runs and results, and the forms that change and end it. */
export const campaignPage = consolePage({ reads: READS, render: renderCampaign });

async function renderCampaign(view: CampaignView) {
  const name = view.parameters["name"] ?? "";
  const found = await readCampaign(view, view.settings.campaigns, name);
  if (found === undefined) {
    const link = <A href="/campaigns">All campaigns</A>;
    const words = (
      <>
        The log has no campaign called {<bdi>{name}</bdi>}. {link}
      </>
    );
    return missingPage(view, "/campaigns", "Unknown campaign", words);
  }
  const { campaign, names, count } = found;
  const isOwn = !campaign.isDefault;
  const isOpen = campaign.ended_at === null;
  const href = campaignHref(name);
  return (
    <ConsoleDocument title={name} path="/campaigns" view={view}>
      <Head
        title={<bdi>{name}</bdi>}
        says={
          <>
            {isOwn ? "For " : "As the settings say: for "}
            <bdi>{campaign.who}</bdi>.
            <Time before=" Ended " at={campaign.ended_at ?? undefined} />
          </>
        }
      >
        <div class="actions">
          {isOpen && view.state("run").current === null ? (
            <RunForm limits={isOwn ? { campaign: name } : {}} back={href} isFirst />
          ) : null}
          {isOwn && isOpen ? <CampaignForm names={names} campaign={campaign} /> : null}
          {campaign.followUpName === undefined ? null : <CampaignForm names={names} follows={campaign} />}
          {isOwn && isOpen ? <EndForm name={name} back={href} /> : null}
        </div>
      </Head>
      <FaultNotice>
        {campaign.fault === null
          ? undefined
          : `No run of it can start, because the settings cannot send its text: ${campaign.fault}.`}
      </FaultNotice>
      <div class="columns">
        <div class="stack">
          <Section id="text" title="Message" class="card">
            {campaign.text === null ? (
              <p class="empty">MESSAGE_TEMPLATE is not set.</p>
            ) : (
              <pre class="bubble message" tabIndex={0}>
                <bdi>{campaign.text}</bdi>
              </pre>
            )}
          </Section>
          <Runs view={view} found={found} />
          <Results figures={found.results} verdict={found.verdicts[0]} />
        </div>
        <div class="stack">
          <Facts campaign={campaign} />
          <Counted count={count} />
        </div>
      </div>
    </ConsoleDocument>
  );
}

function Facts({ campaign }: { readonly campaign: ShownCampaign }): VNode {
  const { gap_days, topic, follow_up, variants, created_at, changed_at } = campaign;
  return (
    <NamedValues
      of={[
        ["gap", `${countInWords(gap_days, "day")} after any earlier message`],
        ["follow-up", follow_up === 0 ? "no: a first message" : `number ${follow_up} of its chain`],
        ["variants", variants.join(", ") || "none"],
        ["topic", topic === null ? "none" : <bdi>{topic}</bdi>],
        ["created", created_at === null ? "by the settings" : <Time at={created_at} />],
        ["changed", changed_at === null ? "by the settings" : <Time at={changed_at} />],
      ]}
    />
  );
}

/**
 * Shows the audience of a campaign: how many of the known recipients belong to it, how many may get a message now, and
 * why the others may not.
 */
function Counted({ count: { known, matching, due, left_out, not_due } }: { readonly count: Found["count"] }): VNode {
  const rows = [
    ...not_due.map(({ reason, recipients }) => [describeReason(reason), recipients, "in the audience, but not now"]),
    ...left_out.map(({ reason, recipients }) => [describeReason(reason), recipients, "left out"]),
  ];
  return (
    <Section id="audience" title="Audience">
      <p class="figure">
        {grouped(due)} <small>may get a message now</small>
      </p>
      <p>
        {grouped(matching)} of {countInWords(known, "known recipient")} belong to the audience. X may still refuse some.
      </p>
      {rows.length === 0 ? null : (
        <Table label="Why others get none" columns={["why", ...numbers("recipients"), "who"]} rows={rows} />
      )}
    </Section>
  );
}

function describeReason(reason: string): string {
  const known = SKIP_REASONS.find((one) => one === reason);
  return known === undefined ? toSpaces(reason) : describeSkip(known);
}

function Runs({ view, found: { runs, runCount } }: { readonly view: View<"runs">; readonly found: Found }): VNode {
  return (
    <Section id="runs" title="Runs">
      <Table
        label="Runs of the campaign"
        columns={["run", "started", ...numbers("sent", "skipped", "failed", "in doubt"), "ended"]}
        rows={runs.map(([runId, { started_at, end }]) => [
          <RunName view={view} runId={runId} />,
          <Time at={started_at} />,
          end?.sent,
          end?.skipped,
          end?.failed,
          end?.in_doubt,
          end === null ? "in progress" : toSpaces(end.reason),
        ])}
        empty="There was no run of it yet."
      />
      {runCount > runs.length ? (
        <p>
          The newest {runs.length}; <A href="/runs">all runs</A>.
        </p>
      ) : null}
    </Section>
  );
}

interface ResultsProps {
  readonly figures: Found["results"];
  readonly verdict: Found["verdicts"][number] | undefined;
}

function Results({ figures, verdict }: ResultsProps): VNode {
  return (
    <Section id="results" title="Results">
      {figures === undefined ? (
        <p class="empty">It sent no message yet.</p>
      ) : (
        <NamedValues
          of={[
            ["sent", grouped(figures.sent)],
            ["failed", grouped(figures.failed)],
            ["in doubt", grouped(figures.in_doubt)],
            [
              "replied",
              grouped(figures.replied) +
                (figures.reply_rate === null ? "" : ` (${formatPercent(figures.reply_rate.rate)})`),
            ],
            ["opted out", grouped(figures.opted_out)],
            [
              "clicks by people",
              figures.clicks === null ? "not told apart from those of others" : grouped(figures.clicks.total),
            ],
          ]}
        />
      )}
      {verdict === undefined ? null : (
        <p>
          <strong>{verdict.title}.</strong> {verdict.explanation}
        </p>
      )}
      <p>
        <A href="/results?by=campaign">Results by campaign</A>, <A href="/results">by variant</A>
      </p>
    </Section>
  );
}

function EndForm({ name, back }: { readonly name: string; readonly back: string }): VNode {
  return (
    <ConfirmedAction
      back={back}
      action="/console/campaigns/end"
      fields={{ name }}
      label="End campaign"
      isDangerous
      says="No run of it starts again, and its name stays taken. This cannot be undone."
    >
      <button>End campaign</button>
    </ConfirmedAction>
  );
}
