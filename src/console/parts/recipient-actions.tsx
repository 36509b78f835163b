/** @jsxImportSource preact */
import type { VNode } from "preact";
import { listChoices } from "../../platform/operation.ts";
import { BASES, type ShownContact } from "../../recipients/list-recipients.ts";
import { forgetRecipient, recordRecipientConsent } from "../../recipients/recipients.operations.ts";
import { ConfirmedAction, Field, Select } from "./action-form.tsx";
import type { View } from "../page-context.ts";

interface RecipientActionsProps {
  readonly view: View;
  readonly contact: ShownContact;
  /** Page to which the browser returns after an action. */
  readonly back: string;
}

/**
 * Forms for an operator's actions on one contact, each with a confirmation. Renders nothing for a contact without id
 * and handle.
 */
export function RecipientActions({ view, contact, back }: RecipientActionsProps): VNode | null {
  const { id, username, status, isSuppressed, isHeld, retries } = contact;
  const name = username === undefined ? id : `@${username}`;
  if (name === undefined || view.formToken === undefined) return null;
  const form = { view, back, fields: { recipient: id ?? name } };
  const label = <bdi>{name}</bdi>;
  return (
    <section class="actions" aria-label="What can be done">
      {status !== "open" ? null : (
        <ConfirmedAction
          {...form}
          label="Write now"
          question={<>Write to {label}?</>}
          action="/console/run/recipient"
          says={
            <>
              Starts a run for {label} alone, or has them come next in the run in progress. Quota, sending window,
              consent and suppression apply as in each run.
            </>
          }
        >
          <button class="primary">Write to {label}</button>
        </ConfirmedAction>
      )}
      {isSuppressed ? null : (
        <ConfirmedAction
          {...form}
          label="Suppress"
          question={<>Suppress {label}?</>}
          isDangerous
          action="/console/recipients/suppress"
          says={<>{label} never gets a message again, even after another import. This cannot be undone.</>}
        >
          <button>Suppress {label}</button>
        </ConfirmedAction>
      )}
      {isHeld ? <Release form={form} label={label} /> : null}
      {retries.map((retry) => (
        <Retry form={form} label={label} {...retry} />
      ))}
      <Forget form={form} label={label} name={name} />
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
      <p class="quiet">
        {isSuppressed ? null : "Suppress: no message again, their data stays. "}
        Forget: no message again, and their data is erased.
      </p>
    </section>
  );
}

/** Form that erases a recipient, once the operator has typed their name. */
function Forget({ form, label, name }: ActionProps & { readonly name: string }): VNode {
  return (
    <ConfirmedAction
      {...form}
      fields={{ ...form.fields, name }}
      label="Forget"
      question={<>Forget {label}?</>}
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
  );
}

interface ActionProps {
  readonly form: { readonly view: View; readonly back: string; readonly fields: Readonly<Record<string, string>> };
  readonly label: VNode;
}

/** Form that releases a recipient who was put on hold because of a reply. */
function Release({ form, label }: ActionProps): VNode {
  return (
    <ConfirmedAction
      {...form}
      label="Release"
      question={<>Release {label}?</>}
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

/** Form that allows one more message of a campaign whose message to the recipient failed. */
function Retry({ form, label, campaign, isDefault }: ActionProps & ShownContact["retries"][number]): VNode {
  const name = isDefault ? null : (
    <>
      {" "}
      of <bdi>{campaign}</bdi>
    </>
  );
  return (
    <ConfirmedAction
      {...form}
      fields={{ ...form.fields, campaign }}
      label={isDefault ? "Retry" : `Retry ${campaign}`}
      question={<>Retry {label}?</>}
      action="/console/recipients/retry"
      says={
        <>
          The message{name} to {label} failed. The next run{name} tries once more, unless something speaks against it.
        </>
      }
    >
      <button>Retry {label}</button>
    </ConfirmedAction>
  );
}

const CONSENT = recordRecipientConsent.input;
const GROUNDS = listChoices(forgetRecipient.input.ground)?.choices ?? [];
const REQUESTERS = listChoices(forgetRecipient.input.requested_by)?.choices ?? [];
const TRACKINGS = listChoices(CONSENT.tracking)?.choices ?? [];

interface ConsentProps {
  readonly to: string;
  readonly name: "basis" | "tracking";
  readonly words: readonly string[];
  readonly evidence: "consent" | "tracking";
}

/** Fields of a form for a consent: to what the recipient consented, when, where and with which wording. */
function Consent({ to, name, words, evidence }: ConsentProps): VNode {
  return (
    <fieldset>
      <legend>Consent to {to}</legend>
      <Select label={name === "basis" ? "Basis" : "Tracking"} name={name} values={words} none="as before" />
      <Field
        label="When"
        name={`${evidence}_at`}
        placeholder="2026-03-02"
        maxLength={CONSENT[`${evidence}_at`].maxLength}
      />
      <Field label="Where" name={`${evidence}_source`} maxLength={CONSENT[`${evidence}_source`].maxLength} />
      <Field label="Wording" name={`${evidence}_text`} maxLength={CONSENT[`${evidence}_text`].maxLength} />
      {evidence === "tracking" ? null : (
        <Field label="Only for the campaign or topic" name="consent_for" maxLength={CONSENT.consent_for.maxLength} />
      )}
    </fieldset>
  );
}
