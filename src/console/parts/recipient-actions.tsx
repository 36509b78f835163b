/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Contact } from "../../../projections/contacts.ts";
import { ConfirmedAction } from "./action-form.tsx";
import type { View } from "../view.ts";

interface RecipientActionsProps {
  readonly view: View;
  readonly contact: Contact;
  /** The page to come back to. */
  readonly back: string;
}

/** An operator's actions on one contact, each with a confirmation. Renders nothing for a contact without any name. */
export function RecipientActions({ view, contact, back }: RecipientActionsProps): VNode | null {
  const { id, username, suppressed, status } = contact;
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
          action="/console/recipients/suppress"
          says={<>{label} never gets a message again, even after another import. This cannot be undone.</>}
        >
          <button>Suppress {label}</button>
        </ConfirmedAction>
      )}
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
        label="Forget"
        action="/console/recipients/forget"
        says={
          <>
            Erases all personal data of {label} in the log: it can never be read again, and they never get a message
            again. This cannot be undone. Data at X, in chats, at Meta and in backups of the key file is not erased.
            Stored answers to requests go too, of the days on which one named them.
          </>
        }
      >
        <button>Forget {label} for ever</button>
      </ConfirmedAction>
    </section>
  );
}
