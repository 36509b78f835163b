/** @jsxImportSource preact */
import type { VNode } from "preact";
import { useContext } from "preact/hooks";
import { READ_USD } from "../../history/run-list-and-page.ts";
import { listOpenCampaigns } from "../../outreach/campaigns/read-campaigns.ts";
import {
  readDryRunCost,
  readMessage,
  readRunRefusal,
  separateVariant,
  type ShownDryRun,
} from "../../outreach/run-and-dry-run-page-data.ts";
import { ALL_OF, countInWords, formatDuration, formatUsd, grouped } from "../../platform/format-numbers-and-lists.ts";
import { BASES } from "../../recipients/recipient-list-and-page.ts";
import { addressWith, runHref } from "../hrefs.ts";
import { useView, type View } from "../page-context.ts";
import { ActionForm, Asked, Confirmation, Field, Hindered, Select, type Hindrance } from "./action-form.tsx";
import { Icon } from "./icon-and-badge.tsx";
import { HiddenFields } from "./links-forms-and-tabs.tsx";

/** Returns why nothing can be asked at X now. Undefined if it can. An authorization leads back to the page `back`. */
export function hindranceAtX({ settings, stateNow }: View, back = "/"): Hindrance | undefined {
  const { user, authorized } = stateNow("account");
  if (!settings.parts.x.isConfigured) return { why: "The X app is not configured", nextStep: SET_UP };
  if (authorized) return undefined;
  const label = user === null ? "Authorize an X account" : "Authorize again";
  const why = user === null ? "No X account is authorized" : "X no longer accepts our authorization";
  return { why, nextStep: { href: `/social/auth${back === "/" ? "" : `?${new URLSearchParams({ back })}`}`, label } };
}

const SET_UP = { href: "/setup", label: "What to set up" } as const;

/** Returns why neither a run nor a dry run may start now; undefined if one may. Ignores a run in progress. */
function hindranceToRun(view: View, back?: string): Hindrance | undefined {
  const hasMessage = view.settings.template !== undefined || listOpenCampaigns(view.stateNow("campaigns")).length > 1;
  return hindranceAtX(view, back) ?? (hasMessage ? undefined : { why: "No message is configured", nextStep: SET_UP });
}

/**
 * Returns why a run would be refused now; undefined if it may start. While a run is in progress, quota and sending
 * window are not checked.
 */
export function hindranceToSend(view: View): Hindrance | undefined {
  return hindranceToRun(view) ?? readRunRefusal(view, view.settings);
}

/**
 * A finished dry run, for the confirmation of a run's start. Cost, duration and variants are given only on the dry
 * run's page.
 */
interface Preview {
  readonly estimateStart: ShownDryRun["estimateStart"];
  readonly costs?: ShownDryRun["costs"];
  readonly seconds?: number;
  readonly variants?: ShownDryRun["variants"];
}

type Limits = Omit<ShownDryRun["limits"], "recipients">;

/** Value of the parameter `confirm` that asks for the confirmation of a run's start. */
const START = "start-run";

/** Names of the form's fields, each a limit of a run. */
const LIMITS = ["limit", "variant", "campaign", "basis", "source"] as const;

/** Limits as the form's fields hold them. */
type Fields = Partial<Record<(typeof LIMITS)[number], string>>;

interface RunFormProps {
  /** Page with the form. The browser returns to it to confirm a start, and after a refused dry run. */
  readonly back?: string;
  /** Limits that the fields show at first. */
  readonly limits: Limits;
  /** A dry run whose numbers the confirmation of a start may show. Without one, the form makes only dry runs. */
  readonly preview?: Preview | undefined;
  /** Text of the button that makes a dry run. */
  readonly label?: string;
  /** True if the dry run is the page's main button. */
  readonly isFirst?: boolean;
}

/**
 * Form that makes a dry run or, after a confirmation, starts a run. Its fields limit both; empty fields mean all
 * recipients. The server renders the confirmation from the fields.
 */
export function RunForm({ limits, preview, back = "/", label = "Dry run", isFirst = false }: RunFormProps) {
  const view = useView();
  const { formToken, query } = view;
  const asked = useContext(Asked);
  if (formToken === undefined) return null;
  const { current } = view.stateNow("run");
  const running = current ? { href: runHref(current.run_id), label: "The run" } : undefined;
  const given = preview === undefined ? {} : readFields(query);
  const fields = Object.keys(given).length === 0 ? toFields(limits) : given;
  const afterX = preview === undefined ? back : addressWith(back, new URLSearchParams(), { ...fields, confirm: START });
  const hindrance = hindranceToRun(view, afterX) ?? (running && { why: "A run is in progress", nextStep: running });
  const look = isFirst ? "primary" : undefined;
  const text = (
    <>
      <Icon name="eye" />
      {label}
    </>
  );
  if (preview === undefined) {
    return (
      <ActionForm back={back} action="/console/run/dry">
        <button class={look} disabled={hindrance !== undefined}>
          {text}
        </button>
        <DryRunHint hindrance={hindrance} fields={fields} />
      </ActionForm>
    );
  }
  if (asked?.id === START) asked.found = { title: "Start run…", content: <Start fields={given} preview={preview} /> };
  const refusal = hindranceToSend(view);
  // The form is sent by GET, so that the page can show the confirmation. Only the button that makes a dry run sends the
  // CSRF token.
  return (
    <form class="action" method="get" action={back}>
      <HiddenFields of={[["back", back]]} />
      <button
        class="primary"
        name="confirm"
        value={START}
        disabled={(refusal ?? hindrance) !== undefined}
        aria-haspopup="dialog"
      >
        Start run…
      </button>
      <button
        name="form_token"
        value={formToken}
        formMethod="post"
        formAction="/console/run/dry"
        disabled={hindrance !== undefined}
      >
        {text}
      </button>
      {hindrance === undefined ? <Hindered hindrance={refusal} /> : null}
      <DryRunHint hindrance={hindrance} fields={fields} isOpen={Object.keys(fields).length > 0} />
    </form>
  );
}

/** Returns the limits in the page's address, which the form has put there. */
function readFields(query: URLSearchParams): Fields {
  const given = LIMITS.map((name) => [name, query.get(name) ?? ""]).filter(([, value]) => value !== "");
  return separateVariant(Object.fromEntries(given));
}

/** Converts the limits of a run to form fields. */
function toFields(limits: Limits): Fields {
  const given = LIMITS.filter((name) => limits[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, String(limits[name])])) as Fields;
}

/** Sentences on why the numbers of a dry run no longer hold, without the full stop. */
export const SAY_OUTDATED: Readonly<Record<NonNullable<ShownDryRun["outdated"]>, string>> = {
  other_day: "It was made on another day",
  sent_since: "Messages were sent since",
};

type Estimate = ReturnType<ShownDryRun["estimateStart"]>;

/** Sentences on why a dry run does not say who gets a message, without the full stop. */
const SAY_DIFFERENCE: Readonly<Record<NonNullable<Estimate["difference"]>, string>> = {
  other_campaign: "The dry run was of another campaign",
  other_limits: "The dry run had other limits",
  other_day: "The dry run was made on another day",
  sent_since: "Messages were sent since the dry run",
};

interface StartProps {
  readonly fields: Fields;
  readonly preview: Preview;
}

/** Asks whether to start the run that the fields describe, with the numbers of the dry run where they apply to it. */
function Start({ fields, preview }: StartProps): VNode {
  const view = useView();
  const { costs, seconds, variants = [] } = preview;
  const { most, usedAfter, isExact, difference, campaign, textName, only } = preview.estimateStart(fields);
  const parts = isExact ? variants.map(({ variant, count }) => `${grouped(count)} of variant ${variant}`) : [];
  const after = `${grouped(usedAfter)} of today's ${grouped(view.settings.dailyLimit)} messages`;
  return (
    <Confirmation
      Heading="h1"
      back="/"
      action="/console/run/start"
      fields={{ ...fields, limit: String(most) }}
      label="Start run…"
      question={
        isExact
          ? `Start the run for ${countInWords(most, "person", "people")}?`
          : `Start a run of at most ${countInWords(most, "message")}?`
      }
      says={
        <ul class="effects">
          <li>
            Each gets one message
            {campaign && (
              <>
                {" "}
                of the campaign <bdi>{campaign}</bdi>
              </>
            )}
            {textName && (
              <>
                , <bdi>“{textName}”</bdi>,
              </>
            )}{" "}
            as <bdi>@{view.stateNow("account").user?.username}</bdi>
            {parts.length < 2 ? "" : `: ${ALL_OF.format(parts)}`}. A sent message cannot be taken back.
          </li>
          {only === "" ? null : <li>Only{only}.</li>}
          {difference === undefined ? null : (
            <li>{SAY_DIFFERENCE[difference]}, so only a new one shows who gets a message and what the run costs.</li>
          )}
          {!isExact || costs === undefined || seconds === undefined ? (
            <li>You can stop it between two messages.</li>
          ) : (
            <li>
              It costs at most {formatUsd(costs.usd)}, plus at most {formatUsd(READ_USD.message)} for each new reply. It
              takes about {formatDuration(seconds)}, and you can stop it between two messages.
            </li>
          )}
          <li>{isExact ? `${after} are used after it.` : `At most ${after} are used after it.`}</li>
        </ul>
      }
    >
      <button class="primary">
        <Icon name="play" />
        Start run
      </button>
    </Confirmation>
  );
}

/** Returns the variants to which a run of the campaign may be limited; empty if its message has only one. */
function listVariants(view: View, campaign?: string): readonly string[] {
  const labels = readMessage(view.stateNow("campaigns"), view.settings, campaign)?.variants.map(({ label }) => label);
  return labels === undefined || labels.length < 2 ? [] : labels;
}

interface DryRunHintProps {
  readonly hindrance: Hindrance | undefined;
  readonly fields: Fields;
  readonly isOpen?: boolean;
}

/** Says what a dry run costs at most, and has the fields that select recipients. */
function DryRunHint({ hindrance, fields, isOpen = false }: DryRunHintProps): VNode {
  const view = useView();
  if (hindrance !== undefined) return <Hindered hindrance={hindrance} />;
  const { sources, dailyLimit } = view.settings;
  const open = listOpenCampaigns(view.stateNow("campaigns"));
  const { limit, variant, campaign = open[0], basis, source } = fields;
  const labels = listVariants(view);
  const choices = open.flatMap((name) => [name, ...listVariants(view, name).map((label) => `${name} ${label}`)]);
  const { people, usd, isOpenEnded } = readDryRunCost(view, view.settings);
  return (
    <>
      <small class="quiet">
        It sends nothing, and looks people up only until the day's quota is filled. X charges at most {formatUsd(usd)}{" "}
        for {countInWords(people, "look-up")}, and at most {formatUsd(READ_USD.message)} for each message that it reads
        {isOpenEnded ? " and each person that it finds at X" : ""}.
      </small>
      <details open={isOpen}>
        <summary>Only for some…</summary>
        <div class="filter">
          <Field label="Messages, at most" type="number" name="limit" min={1} max={dailyLimit} value={limit} />
          {open.length > 1 ? (
            <Select
              name="campaign"
              label="Campaign"
              values={choices}
              chosen={choices.find((choice) => choice === `${campaign} ${variant}`) ?? campaign}
              inWords={(choice) => choice.replace(" ", ", only variant ")}
              none={null}
            />
          ) : labels.length === 0 ? null : (
            <Select name="variant" label="Variant" values={labels} chosen={variant} />
          )}
          <Select name="basis" label="Basis" values={BASES} chosen={basis} />
          {sources.length < 2 ? null : <Select name="source" label="Source" values={sources} chosen={source} />}
        </div>
      </details>
    </>
  );
}
