/** @jsxImportSource preact */
import type { VNode } from "preact";
import { listRetries, type CountedLetters } from "../../delivery/backlog.ts";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import type { View } from "../page-context.ts";
import { ActionForm, ConfirmedAction, Field } from "./action-form.tsx";
import { A } from "./link.tsx";

/** Dead letters of one channel for which an action is offered, and the form fields that select them. */
interface LettersProps extends CountedLetters {
  readonly view: View;
  readonly back: string;
}

const RETRY = "/console/deliveries/retry";
const DISCARD = "/console/deliveries/discard";

/** Button for the recommended retry, with a dialog that says if it may create duplicates. */
export function RetryLetters({ view, back, ...letters }: LettersProps): VNode | null {
  const [way] = listRetries(letters);
  if (way === undefined) return null;
  return (
    <ConfirmedAction
      {...{ view, back, action: RETRY, fields: way.fields, says: way.says }}
      label={`${way.label}…`}
      question={`Retry ${countInWords(letters.count, "dispatch", "dispatches")} to ${letters.backlog.title}?`}
    >
      <button class="primary">{way.label}</button>
    </ConfirmedAction>
  );
}

/** Buttons for actions on chosen dead letters; a page with their number asks before the action. */
export function DecideLetters(props: LettersProps & { readonly act: "retry" | "discard" }): VNode {
  const { view, back, act, ...letters } = props;
  const { count, backlog, fields } = letters;
  if (act === "discard") {
    const expected: Record<string, string> = "all" in fields ? { expected: String(count) } : {};
    return (
      <>
        <p>
          They are never sent to {backlog.title}, which cannot be taken back. The log keeps the events and the reason.
        </p>
        <ActionForm {...{ view, back }} action={DISCARD} fields={{ ...fields, ...expected }}>
          <Reason view={view} />
          <Answer back={back} isDangerous>
            <button>Discard {grouped(count)}</button>
          </Answer>
        </ActionForm>
      </>
    );
  }
  const ways = listRetries(letters);
  if (ways.length === 0) return <p>{backlog.whySuspended}.</p>;
  return (
    <>
      {ways.map(({ label, says, fields: given }, at) => (
        <>
          <p>{says}</p>
          <ActionForm {...{ view, back }} action={RETRY} fields={given}>
            <Answer back={back}>
              <button class={at === 0 ? "primary" : undefined}>{label}</button>
            </Answer>
          </ActionForm>
        </>
      ))}
    </>
  );
}

interface AnswerProps {
  readonly back: string;
  readonly isDangerous?: boolean;
  readonly children: VNode;
}

/** The button that performs the action, next to one that leads back. */
function Answer({ back, isDangerous = false, children }: AnswerProps): VNode {
  return (
    <div class={isDangerous ? "answer dangerous" : "answer"}>
      <A class="button" href={back}>
        Cancel
      </A>
      {children}
    </div>
  );
}

/** The field for the operator's reason, which is recorded in the log. */
export function Reason({ view, label = "Reason" }: { readonly view: View; readonly label?: string }): VNode {
  return <Field label={label} name="why" required maxLength={view.settings.limits.whyCharacters} />;
}
