/** @jsxImportSource preact */
import type { VNode } from "preact";
import { AUDIENCE_SOURCES, type ShownCampaign } from "../../outreach/campaigns/read-campaigns.ts";
import { BASES } from "../../recipients/recipient-list-and-page.ts";
import { Field, Lines, Select } from "./action-form.tsx";

/**
 * The only value of a choice between two conditions, such as "replied" and "did not reply". The form sends "true" for
 * the first, and no value for the second.
 */
const SET = ["true"] as const;

interface AudienceFieldsProps {
  readonly names: readonly string[];
  readonly audience: ShownCampaign["audience"];
}

/** The fields that describe an audience. Those about an earlier message are shown once its campaign is chosen. */
export function AudienceFields({ names, audience }: AudienceFieldsProps): VNode {
  return (
    <fieldset>
      <legend>For all recipients, or only for those who fit what you fill in here</legend>
      <Select name="source" label="Source" values={AUDIENCE_SOURCES} chosen={audience.source} />
      <Select name="basis" label="Basis" values={BASES} chosen={audience.basis} />
      <Lines
        label="Fields, one a line"
        name="fields"
        value={audience.fields?.join("\n") ?? ""}
        rows={2}
        placeholder="city=Rome|Pisa"
      />
      <Lines
        label="Time zones, one a line"
        name="timezones"
        value={audience.timezones?.join("\n") ?? ""}
        rows={2}
        placeholder="Europe/Rome"
      />
      <Select
        name="messaged"
        label="Got a message of"
        values={names}
        chosen={audience.messaged}
        inWords={String}
        none="does not matter"
      />
      <Select
        name="replied"
        label="Since then they"
        values={SET}
        chosen={audience.replied && "true"}
        inWords={() => "replied"}
        none="did not reply"
      />
      <Select
        name="failed"
        label="That message"
        values={SET}
        chosen={audience.failed && "true"}
        inWords={() => "failed"}
        none="was sent"
      />
      <Field
        label="That message is so many days old"
        type="number"
        name="days"
        min={1}
        max={3650}
        value={audience.days}
        placeholder="any"
      />
      <Field
        label="Clicked the link"
        name="clicked"
        maxLength={500}
        value={audience.clicked ?? ""}
        placeholder="any, or go.example/guide"
      />
    </fieldset>
  );
}
