/** @jsxImportSource preact */
import type { ComponentChildren, ComponentProps, VNode } from "preact";
import { listChoices } from "../../platform/operation.ts";
import { BASES, type ShownContact } from "../../recipients/recipient-list-and-page.ts";
import { forgetRecipient, recordRecipientConsent } from "../../recipients/recipients.operations.ts";
import { recipientHref, type RecipientNames } from "../hrefs.ts";
import { ConfirmedAction, confirmationId, Field, Hindered, Select } from "./action-form.tsx";
import { hindranceToSend } from "./run-form.tsx";
import { useView } from "../page-context.ts";

const SUPPRESS = "/console/recipients/suppress";

/** Returns the address that asks whether to suppress the recipient. Undefined for one who has no page. */
export function suppressHref(recipient: RecipientNames): string | undefined {
  const { id, username } = recipient;
  const href = recipientHref(recipient);
  return href && `${href}?confirm=${confirmationId(SUPPRESS, { recipient: id ?? `@${username}` })}`;
}

interface RecipientActionsProps {
  readonly contact: ShownContact;
  /** Page to which the browser returns after an action. */
  readonly back: string;
}

/**
 * Forms for an operator's actions on one contact, each with a confirmation. Renders nothing for a contact without id
 * and handle.
 */
export function RecipientActions({ contact, back }: RecipientActionsProps): VNode | null {
  const { id, username, status, isSuppressed, isHeld, retries } = contact;
  const name = username === undefined ? id : `@${username}`;
  const view = useView();
  if (name === undefined || view.formToken === undefined) return null;
  const label = <bdi>{name}</bdi>;
  const form = { back, name: label, fields: { recipient: id ?? name } };
  const hindrance = status === "open" ? hindranceToSend(view) : undefined;
  return (
    <section class="actions" aria-label="What can be done">
      {status !== "open" ? null : (
        <RecipientAction
          {...form}
          label="Write now"
          verb="Write to"
          isPrimary
          isDisabled={hindrance !== undefined}
          action="/console/run/recipient"
          says={
            <>
              Starts a run for {label} alone, or has them come next in the run in progress. Quota, sending window,
              consent and suppression apply as in each run.
            </>
          }
        />
      )}
      {isSuppressed ? null : (
        <RecipientAction
          {...form}
          label="Suppress"
          isDangerous
          action={SUPPRESS}
          says={<>{label} never gets a message again, even after another import. This cannot be undone.</>}
        />
      )}
      {!isHeld ? null : (
        <RecipientAction
          {...form}
          label="Release"
          action="/console/recipients/release"
          says={
            <>
              {label} may have asked to be left alone: read the reply at X. If it does not ask for that, the next run
              may contact them. If it does, suppress them.
            </>
          }
        />
      )}
      <Retries form={form} retries={retries} />
      <Forget form={form} recipient={name} />
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
      <Hindered hindrance={hindrance} />
    </section>
  );
}

interface ActionForm {
  readonly back: string;
  /** Shown name of the recipient. */
  readonly name: VNode;
  readonly fields: { readonly recipient: string };
}

type RetriesProps = { readonly form: ActionForm; readonly retries: ShownContact["retries"] };

/** An action for each campaign whose message to the recipient failed. */
function Retries({ form, retries }: RetriesProps): VNode {
  const label = form.name;
  return (
    <>
      {retries.map(({ campaign, isDefault }) => (
        <RecipientAction
          {...form}
          fields={{ ...form.fields, campaign }}
          label={isDefault ? "Retry" : `Retry ${campaign}`}
          verb="Retry"
          action="/console/recipients/retry"
          says={
            <>
              The message{isDefault ? null : <> of {<bdi>{campaign}</bdi>}</>} to {label} failed. The next run
              {isDefault ? null : <> of {<bdi>{campaign}</bdi>}</>} tries once more, unless something speaks against it.
            </>
          }
        />
      ))}
    </>
  );
}

type ForgetProps = { readonly form: ActionForm; readonly recipient: string };

function Forget({ form, recipient: name }: ForgetProps): VNode {
  const label = form.name;
  return (
    <RecipientAction
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
      end=" for ever"
    >
      <Select label="Ground" name="ground" values={GROUNDS} none="not stated" />
      <Select label="Requested by" name="requested_by" values={REQUESTERS} none="not stated" />
      <label>
        Type {label} to confirm{" "}
        <input name="confirm" required pattern={RegExp.escape(name)} title={name} autocomplete="off" />
      </label>
    </RecipientAction>
  );
}

interface RecipientActionProps extends Omit<ComponentProps<typeof ConfirmedAction>, "children"> {
  readonly name: VNode;
  /** Verb of the question and of the button. Default: the label. */
  readonly verb?: string;
  /** Words after the name on the button. */
  readonly end?: string;
  readonly isPrimary?: boolean;
  /** Fields of the form. */
  readonly children?: ComponentChildren;
}

/** An action on one recipient. Its question and its button name the recipient. */
function RecipientAction({ name, verb, end, isPrimary, children, ...form }: RecipientActionProps): VNode {
  const act = verb ?? form.label;
  return (
    <ConfirmedAction
      {...form}
      question={
        <>
          {act} {name}?
        </>
      }
    >
      {children}
      <button class={isPrimary ? "primary" : undefined}>
        {act} {name}
        {end}
      </button>
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
