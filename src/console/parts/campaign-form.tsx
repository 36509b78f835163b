/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { ShownCampaign } from "../../outreach/campaigns/read-campaigns.ts";
import { describeSkip, SKIP_REASONS } from "../../recipients/recipient-list-and-page.ts";
import { campaignHref } from "../hrefs.ts";
import { useView } from "../page-context.ts";
import { ConfirmedAction, confirmationId, Field, Lines } from "./action-form.tsx";
import { AudienceFields } from "./audience-fields.tsx";
import { PageForm } from "./links-forms-and-tabs.tsx";

/**
 * JSON of a description for each reason to skip a recipient. The browser script uses it to show why recipients of a
 * campaign's audience get no message.
 */
const REASON_WORDS = JSON.stringify(Object.fromEntries(SKIP_REASONS.map((reason) => [reason, describeSkip(reason)])));

const CREATE = "/console/campaigns/create";

/** A follow-up's message before an operator edits it. */
const FOLLOW_UP_TEXT = `Hi {{name|there}},
I wrote to you a while ago and wonder if you saw it. A short answer is enough.
Reply STOP and I will not write again.`;

interface FollowUpButtonProps {
  readonly campaign: ShownCampaign;
}

/**
 * Button to the form for a follow-up on the campaign's page, so that a list of campaigns holds no form for each.
 * Renders nothing if the campaign may have no more follow-ups, or if the browser may only read.
 */
export function FollowUpButton({ campaign: { name, followUpName } }: FollowUpButtonProps): VNode | null {
  if (followUpName === undefined || useView().formToken === undefined) return null;
  return (
    <PageForm action={campaignHref(name)}>
      <button name="confirm" value={confirmationId(CREATE, {})} aria-label={`Follow up ${name}…`}>
        Follow up…
      </button>
    </PageForm>
  );
}

interface CampaignFormProps {
  /** Names of all campaigns, for the audience of a follow-up. */
  readonly names: readonly string[];
  /** The campaign to change. Undefined for a new one. */
  readonly campaign?: ShownCampaign;
  /** The campaign whose recipients the new one writes to if they did not reply. */
  readonly follows?: ShownCampaign;
}

/** Form that creates or changes a campaign, with its audience. */
export function CampaignForm({ names, campaign, follows }: CampaignFormProps): VNode {
  const { gapDays } = useView().settings;
  const isNew = campaign === undefined;
  const given = follows && { audience: { messaged: follows.name }, text: FOLLOW_UP_TEXT, topic: follows.topic };
  const { audience = {}, text = "", ownGapDays, topic } = { ...given, ...campaign };
  const least = Math.min(gapDays, ownGapDays ?? Infinity);
  const help = `help-${follows === undefined ? (isNew ? "new" : "change") : "follow-up"}`;
  const newLabel = follows === undefined ? "New campaign" : "Follow up";
  return (
    <ConfirmedAction
      back={isNew ? "/campaigns" : campaignHref(campaign.name)}
      action={isNew ? CREATE : "/console/campaigns/change"}
      fields={isNew ? {} : { name: campaign.name, all: "true" }}
      label={isNew ? `${newLabel}…` : "Change…"}
      question={isNew ? (follows === undefined ? newLabel : `Follow up ${follows.name}`) : `Change ${campaign.name}?`}
      says="It sends nothing by itself: a run of the campaign does."
    >
      {isNew ? (
        <Field
          label="Name"
          name="name"
          required
          maxLength={40}
          pattern="[a-z0-9]([a-z0-9\-]{0,38}[a-z0-9])?"
          title="Lower-case letters, digits and hyphens"
          placeholder="lower-case letters, digits and hyphens"
          value={follows?.followUpName}
        />
      ) : (
        <SavedMessage {...campaign} />
      )}
      <Lines label="Message" name="text" value={text ?? ""} rows={6} required aria-describedby={help} />
      <small class="quiet" id={help}>
        {"{{name|there}}"} becomes the recipient's name, or “there” without one; {"{{city}}"}, a field of your list. A
        line with only --- separates variants.
      </small>
      <Field
        label={`Days after any earlier message, ${least} or more`}
        type="number"
        name="gap_days"
        min={least}
        max={3650}
        value={ownGapDays}
        placeholder={String(gapDays)}
      />
      <Field
        label="Topic, for consents that name one"
        name="topic"
        maxLength={100}
        value={topic ?? ""}
        placeholder="none"
      />
      <AudienceFields names={names} audience={audience} />
      <output data-count={REASON_WORDS} />
      <button class={isNew && follows === undefined ? "primary" : undefined}>
        {isNew ? "Create campaign" : "Change campaign"}
      </button>
    </ConfirmedAction>
  );
}

/**
 * Hidden field with the time of the last change that the operator has seen. If the change was refused because another
 * operator made one meanwhile, also shows the message that is saved now.
 */
function SavedMessage({ changed_at, text }: ShownCampaign): VNode {
  const isRefused = useView().notice?.isFault === true;
  return (
    <>
      {/* This field is not among the `fields` of the action, because the dialog's id is a hash of them: with another time
          the dialog would close when the page is refreshed. */}
      <input type="hidden" name="changed_at" value={changed_at ?? ""} />
      {isRefused ? (
        <details open>
          <summary>The message that is saved now</summary>
          <pre>
            <bdi>{text}</bdi>
          </pre>
        </details>
      ) : null}
    </>
  );
}
