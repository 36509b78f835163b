/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Contact } from "../../projections/contacts.ts";
import { ConfirmedAction } from "./action-form.tsx";
import type { View } from "./view.ts";

interface PersonActionsProps {
  readonly view: View;
  readonly contact: Contact;
  /** The page to come back to. */
  readonly back: string;
}

/** What an operator does with one person; each asks once. Nothing of whom no name is known by which to mean them. */
export function PersonActions({ view, contact, back }: PersonActionsProps): VNode | null {
  const { id, username, suppressed, status } = contact;
  const name = username === undefined ? id : `@${username}`;
  if (name === undefined || view.formToken === undefined) return null;
  const form = { view, back, fields: { recipient: id ?? name } };
  const who = <bdi>{name}</bdi>;
  return (
    <section class="actions" aria-label="What can be done">
      {suppressed ? null : (
        <ConfirmedAction
          {...form}
          label="Suppress"
          action="/console/recipients/suppress"
          says={<>Nobody writes to {who} any more, also after another import. It cannot be taken back.</>}
        >
          <button>Suppress {who}</button>
        </ConfirmedAction>
      )}
      {suppressed || status !== "failed" ? null : (
        <ConfirmedAction
          {...form}
          label="Retry"
          action="/console/recipients/retry"
          says={<>The message to {who} failed. The next run tries once more, unless something speaks against it.</>}
        >
          <button>Retry {who}</button>
        </ConfirmedAction>
      )}
      <ConfirmedAction
        {...form}
        label="Forget"
        action="/console/recipients/forget"
        says={
          <>
            Erases all personal data of {who} in the log: it can never be read again, and nobody writes to them any
            more. It cannot be undone. Not reached is what X, chats, Meta and backups of the key file hold. Kept answers
            to requests go too, of the days on which one named them.
          </>
        }
      >
        <button>Forget {who} for ever</button>
      </ConfirmedAction>
    </section>
  );
}
