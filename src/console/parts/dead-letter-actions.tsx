/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { ChannelName } from "../../../events/channel.ts";
import { findChannel } from "../../../projections/deliveries.ts";
import { describeSkipped, mayDouble, WHY_CHARACTERS_MAX, type DeadLetter } from "../../delivery/dead-letters.ts";
import type { FilterTexts } from "../../delivery/dead-letter-filter.ts";
import type { ListedDispatch } from "../../delivery/list-dispatches.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { ActionForm, ConfirmedAction, Field } from "./action-form.tsx";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import type { View } from "../page-context.ts";

const RETRY = "/console/deliveries/retry";
const DISCARD = "/console/deliveries/discard";
const SETTLE = "/console/deliveries/settle";

interface LetterProps {
  readonly view: View<"deliveries">;
  readonly back: string;
  readonly letter: ListedDispatch;
}

export function DecideLetter({ view, back, letter }: LetterProps): VNode {
  const { channel, source, outcome } = letter;
  const common = { view, back, fields: { channel, event_ids: source.id } };
  const isSuspended = findChannel(view.state("deliveries"), channel).suspended !== null;
  const isDoubtful = outcome.data.requests.some((request) => "doubtful_since" in request);
  return (
    <div class="actions">
      {isSuspended ? null : (
        <ActionForm {...common} action={RETRY}>
          <button>Retry</button>
          {isDoubtful ? (
            <label>
              <input type="checkbox" name="accept_doubles" value="true" /> also those that may have arrived, and could
              arrive twice
            </label>
          ) : null}
        </ActionForm>
      )}
      <ConfirmedAction
        {...common}
        action={DISCARD}
        label="Discard"
        isDangerous
        says="Discards it for good: it cannot be retried later. The log keeps the reason."
      >
        <Why />
        <button>Discard for good</button>
      </ConfirmedAction>
    </div>
  );
}

/** The three decisions about a dispatch in doubt: it arrived, it stays unknown, it is sent again. */
export function DecideInDoubt({ view, back, letter: { channel, source } }: LetterProps): VNode {
  const fields = { channel, event_ids: source.id };
  const isSuspended = findChannel(view.state("deliveries"), channel).suspended !== null;
  const retry = { ...fields, status: "in_doubt", accept_doubles: "true" };
  return (
    <div class="actions">
      <ConfirmedAction
        {...{ view, back, fields: { ...fields, as: "arrived" } }}
        action={SETTLE}
        label="It arrived"
        says="It counts as delivered, and nothing is sent. The log keeps the reason."
      >
        <Why />
        <button>It arrived</button>
      </ConfirmedAction>
      <ConfirmedAction
        {...{ view, back, fields: { ...fields, as: "left" } }}
        action={SETTLE}
        label="Leave it"
        says="It stays unknown, and nothing is sent. The log keeps the reason."
      >
        <Why />
        <button>Leave it</button>
      </ConfirmedAction>
      {isSuspended ? null : (
        <ConfirmedAction
          {...{ view, back, fields: retry }}
          action={RETRY}
          label="Send again"
          says={`In doubt: ${describeSkipped({ event_id: source.id, channel, why: "may_double" })}. The log keeps who decided.`}
        >
          <button>Send again, though it may arrive twice</button>
        </ConfirmedAction>
      )}
    </div>
  );
}

interface DecideAllLettersProps {
  readonly view: View<"deliveries">;
  readonly back: string;
  readonly channel: ChannelName;
  readonly texts: FilterTexts;
  readonly letters: readonly DeadLetter[];
}

/**
 * The actions on all matching dead letters of a channel, up to this page's position. Each acts on exactly the number
 * that it names.
 */
export function DecideAllLetters(props: DecideAllLettersProps): VNode | null {
  const { view, back, channel, texts } = props;
  const isSuspended = findChannel(view.state("deliveries"), channel).suspended !== null;
  const letters = props.letters.filter((letter) => letter.channel === channel);
  if (letters.length === 0) return null;
  const { status: _, ...filter } = omitUndefined(texts);
  const until = { channel, all: "true", until_position: String(view.position) };
  const numbered = (count: number) => ({ view, back, fields: { ...filter, ...until, expected: String(count) } });
  const { recognisesMs } = view.settings;
  const doubles = letters.filter((letter) => mayDouble(letter, "dead", view.now, recognisesMs)).length;
  const certain = letters.length - doubles;
  const all = nameLetters(letters.length, channel);
  const describeAll = (why: "suspended" | "may_double") => describeSkipped({ event_id: "", channel, why });
  return (
    <div class="actions">
      {isSuspended ? <p class="quiet">{describeAll("suspended")}.</p> : null}
      {isSuspended || certain === 0 ? null : (
        <ConfirmedAction
          {...numbered(certain)}
          action={RETRY}
          label={`Retry all of ${channel}`}
          says={`${nameLetters(certain, channel)} ${certain === 1 ? "becomes" : "become"} pending again, and ${certain === 1 ? "is" : "are"} sent at once.`}
        >
          <button>Retry {nameLetters(certain, channel)}</button>
        </ConfirmedAction>
      )}
      {isSuspended || doubles === 0 ? null : (
        <ConfirmedAction
          {...numbered(letters.length)}
          action={RETRY}
          label={`Retry all of ${channel}, also those that may arrive twice`}
          says={`${grouped(doubles)} of ${all}: ${describeAll("may_double")}.`}
        >
          <input type="hidden" name="accept_doubles" value="true" />
          <button>Retry all {all}</button>
        </ConfirmedAction>
      )}
      <ConfirmedAction
        {...numbered(letters.length)}
        action={DISCARD}
        label={`Discard all of ${channel}`}
        isDangerous
        says={`Discards ${all} for good: ${letters.length === 1 ? "it" : "they"} cannot be retried later. The log keeps the reason.`}
      >
        <Why />
        <button>Discard {all}</button>
      </ConfirmedAction>
    </div>
  );
}

/** `312 dead letters of chat` */
function nameLetters(count: number, channel: ChannelName): string {
  return `${countInWords(count, "dead letter")} of ${channel}`;
}

function Why(): VNode {
  return <Field label="Why" name="why" required maxLength={WHY_CHARACTERS_MAX} />;
}
