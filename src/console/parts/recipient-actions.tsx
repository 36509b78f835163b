/** @jsxImportSource preact */
import type { ComponentProps, VNode } from "preact";
import { erasureGround, erasureRequester } from "../../../events/personal.ts";
import { tracking } from "../../../events/outreach.ts";
import type { Contact } from "../../../projections/contacts.ts";
import { CONSENT_SOURCE_CHARS_MAX, CONSENT_TEXT_CHARS_MAX } from "../../recipients/parse-consent.ts";
import { CONSENT_TIME_CHARS_MAX } from "../../recipients/parse-day.ts";
import { BASES } from "../people-filter.ts";
import { ConfirmedAction, Field, Select } from "./action-form.tsx";
import type { View } from "../page-context.ts";

interface RecipientActionsProps {
  readonly view: View;
  readonly contact: Contact;
  /** The page to come back to. */
  readonly back: string;
}

/** An operator's actions on one contact, each with a confirmation. Renders nothing for a contact without any name. */
export function RecipientActions({ view, contact, back }: RecipientActionsProps): VNode | null {
  const { id, username, suppressed, held, status } = contact;
  const name = username === undefined ? id : `@${username}`;
  if (name === undefined || view.formToken === undefined) return null;
  const form = { view, back, fields: { recipient: id ?? name } };
  const label = <bdi>{name}</bdi>;
  return (
    <section class="actions" aria-label="What can be done">
      {suppressed ? null : (
        <ConfirmedAction
          {...form}
          label="Suppress"
          isDangerous
          action="/console/recipients/suppress"
          says={<>{label} never gets a message again, even after another import. This cannot be undone.</>}
        >
          <button>Suppress {label}</button>
        </ConfirmedAction>
      )}
      {held ? <Release form={form} label={label} /> : null}
      {suppressed || status !== "failed" ? null : (
        <ConfirmedAction
          {...form}
          label="Retry"
          action="/console/recipients/retry"
          says={<>The message to {label} failed. The next run tries once more, unless something speaks against it.</>}
        >
          <button>Retry {label}</button>
        </ConfirmedAction>
      )}
      <ConfirmedAction
        {...form}
        fields={{ ...form.fields, name }}
        label="Forget"
        isDangerous
        action="/console/recipients/forget"
        says={
          <>
            Erases all personal data of {label} in the log: it can never be read again, and they never get a message
            again. This cannot be undone. Data at X, in chats, at Meta and in backups of the key file is not erased.
            Stored answers are erased too, for each day on which a request named them.
          </>
        }
      >
        <Select label="Ground" name="ground" values={GROUNDS} none="not stated" />
        <Select label="Requested by" name="requested_by" values={REQUESTERS} none="not stated" />
        <label>
          Type {label} to confirm{" "}
          <input name="confirm" required pattern={RegExp.escape(name)} title={name} autocomplete="off" />
        </label>
        <button>Forget {label} for ever</button>
      </ConfirmedAction>
      <ConfirmedAction
        {...form}
        label="Record consent"
        action="/console/recipients/consent"
        says={<>What {label} agreed or objected to. What you leave empty stays as it is.</>}
      >
        <Consent to="be written to" name="basis" words={BASES} evidence="consent" />
        <Consent to="have clicks by their own links recorded" name="tracking" words={TRACKINGS} evidence="tracking" />
        <button>Record consent of {label}</button>
      </ConfirmedAction>
    </section>
  );
}

interface ReleaseProps {
  readonly form: Pick<ComponentProps<typeof ConfirmedAction>, "view" | "back" | "fields">;
  readonly label: VNode;
}

/** The action that releases a recipient whose reply is held. */
function Release({ form, label }: ReleaseProps): VNode {
  return (
    <ConfirmedAction
      {...form}
      label="Release"
      action="/console/recipients/release"
      says={
        <>
          {label} may have asked to be left alone: read the reply at X. If it does not ask for that, the next run may
          contact them. If it does, suppress them.
        </>
      }
    >
      <button>Release {label}</button>
    </ConfirmedAction>
  );
}

const GROUNDS = erasureGround.anyOf.map((one) => one.const);
const REQUESTERS = erasureRequester.anyOf.map((one) => one.const);
const TRACKINGS = tracking.anyOf.map((one) => one.const);

interface ConsentProps {
  readonly to: string;
  readonly name: "basis" | "tracking";
  readonly words: readonly string[];
  readonly evidence: "consent" | "tracking";
}

/** The fields of a consent: what the recipient agreed to, when, where and to which wording. */
function Consent({ to, name, words, evidence }: ConsentProps): VNode {
  return (
    <fieldset>
      <legend>Consent to {to}</legend>
      <Select label={name === "basis" ? "Basis" : "Tracking"} name={name} values={words} none="as before" />
      <Field label="When" name={`${evidence}_at`} placeholder="2026-03-02" maxLength={CONSENT_TIME_CHARS_MAX} />
      <Field label="Where" name={`${evidence}_source`} maxLength={CONSENT_SOURCE_CHARS_MAX} />
      <Field label="Wording" name={`${evidence}_text`} maxLength={CONSENT_TEXT_CHARS_MAX} />
    </fieldset>
  );
}
