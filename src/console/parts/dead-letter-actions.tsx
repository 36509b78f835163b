/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { ChannelName } from "../../../events/channel.ts";
import { WHY_CHARACTERS_MAX } from "../../delivery/dead-letters.ts";
import type { ListedDispatch } from "../../delivery/list-dispatches.ts";
import { ActionForm, ConfirmedAction } from "./action-form.tsx";
import { grouped } from "../document.tsx";
import type { View } from "../view.ts";

const RETRY = "/console/deliveries/retry";
const DISCARD = "/console/deliveries/discard";

interface DecideLetterProps {
  readonly view: View;
  readonly back: string;
  readonly letter: ListedDispatch;
}

export function DecideLetter({ view, back, letter }: DecideLetterProps): VNode {
  const { channel, source, outcome } = letter;
  const common = { view, back, fields: { channel, event_id: source.id } };
  const isSuspended = view.state("deliveries")[channel].suspended !== null;
  const mayDouble = outcome.data.requests.some((request) => "doubtful_since" in request);
  return (
    <div class="actions">
      {isSuspended ? null : (
        <ActionForm {...common} action={RETRY}>
          <button>Retry</button>
          {mayDouble ? <AcceptDoubles /> : null}
        </ActionForm>
      )}
      <ConfirmedAction
        {...common}
        action={DISCARD}
        label="Discard"
        says="Discards it for good: it cannot be retried later. The log keeps the reason."
      >
        <Why />
        <button>Discard for good</button>
      </ConfirmedAction>
    </div>
  );
}

interface DecideAllLettersProps {
  readonly view: View;
  readonly back: string;
  readonly channel: ChannelName;
}

/** The actions on all dead letters of a channel up to this page's position. */
export function DecideAllLetters({ view, back, channel }: DecideAllLettersProps): VNode | null {
  const { dead, suspended } = view.state("deliveries")[channel];
  if (dead === 0) return null;
  const all = `${grouped(dead)} dead ${dead === 1 ? "letter" : "letters"} of ${channel}`;
  const common = { view, back, fields: { channel, until_position: String(view.position) } };
  return (
    <div class="actions">
      {suspended === null ? (
        <ConfirmedAction
          {...common}
          action={RETRY}
          label={`Retry all of ${channel}`}
          says={`${all} ${dead === 1 ? "becomes" : "become"} pending again, and ${dead === 1 ? "is" : "are"} sent at once.`}
        >
          <AcceptDoubles />
          <button>Retry {all}</button>
        </ConfirmedAction>
      ) : (
        <p class="quiet">{channel} is suspended: resume it to retry its dead letters.</p>
      )}
      <ConfirmedAction
        {...common}
        action={DISCARD}
        label={`Discard all of ${channel}`}
        says={`Discards ${all} for good: ${dead === 1 ? "it" : "they"} cannot be retried later. The log keeps the reason.`}
      >
        <Why />
        <button>Discard {all}</button>
      </ConfirmedAction>
    </div>
  );
}

function AcceptDoubles(): VNode {
  return (
    <label>
      <input type="checkbox" name="accept_doubles" value="yes" /> also those that may have arrived, and could arrive
      twice
    </label>
  );
}

function Why(): VNode {
  return (
    <label>
      Why <input name="why" required maxLength={WHY_CHARACTERS_MAX} />
    </label>
  );
}
