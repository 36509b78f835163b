/** @jsxImportSource preact */
import type { VNode } from "preact";
import { listRetries, type CountedLetters } from "../../delivery/channel-backlog-and-undelivered.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { useView } from "../page-context.ts";
import { ActionForm, Answer, ConfirmedAction, Field, Hindered } from "./action-form.tsx";
import { hindranceToDeliver } from "./channel-status.tsx";

/** Dead letters of one channel for which an action is offered, and the form fields that select them. */
interface LettersProps extends CountedLetters {
  readonly back: string;
}

const RETRY = "/console/deliveries/retry";
const DISCARD = "/console/deliveries/discard";

/** Button for the recommended retry, with a dialog that says if it may create duplicates. */
export function RetryLetters({ back, ...letters }: LettersProps): VNode | null {
  const { backlog, count, doubles } = letters;
  const [way] = listRetries(letters);
  const hindrance = hindranceToDeliver(useView(), backlog);
  if (way === undefined) return null;
  return (
    <>
      <ConfirmedAction
        {...{ back, action: RETRY, fields: way.fields, says: way.says }}
        label={`${way.label}…`}
        question={`Retry ${countInWords(count - doubles || count, "dispatch", "dispatches")} to ${backlog.title}?`}
        isDisabled={hindrance !== undefined}
      >
        <button class="primary">{way.label}</button>
      </ConfirmedAction>
      <Hindered hindrance={hindrance} />
    </>
  );
}

/** Buttons for actions on chosen dead letters; a page with their number asks before the action. */
export function DecideLetters(props: LettersProps & { readonly act: "retry" | "discard" }): VNode {
  const { back, act, ...letters } = props;
  const { count, backlog, fields } = letters;
  if (act === "discard") {
    const expected: Record<string, string> = "all" in fields ? { expected: String(count) } : {};
    return (
      <>
        <p>
          They are never sent to {backlog.title}, which cannot be taken back. The log keeps the events and the reason.
        </p>
        <ActionForm back={back} action={DISCARD} fields={{ ...fields, ...expected }}>
          <Reason />
          <Answer back={back} isDangerous>
            <button>Discard {grouped(count)}</button>
          </Answer>
        </ActionForm>
      </>
    );
  }
  const hindrance = hindranceToDeliver(useView(), backlog);
  if (backlog.suspended !== null) return <p>{backlog.whySuspended}.</p>;
  if (hindrance !== undefined) return <Hindered hindrance={hindrance} />;
  return (
    <>
      {listRetries(letters).map(({ label, says, fields: given }, at) => (
        <>
          <p>{says}</p>
          <ActionForm back={back} action={RETRY} fields={given}>
            <Answer back={back}>
              <button class={at === 0 ? "primary" : undefined}>{label}</button>
            </Answer>
          </ActionForm>
        </>
      ))}
    </>
  );
}

/** The field for the operator's reason, which is recorded in the log. */
export function Reason({ label = "Reason" }: { readonly label?: string }): VNode {
  return <Field label={label} name="why" required maxLength={useView().settings.limits.whyCharacters} />;
}
