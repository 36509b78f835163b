/** @jsxImportSource preact */
import type { VNode } from "preact";
import { addressWith } from "../hrefs.ts";
import type { View } from "../page-context.ts";
import { A, HiddenFields } from "./links-forms-and-tabs.tsx";
import { Time, toIso } from "./time.tsx";

/** The person who is signed in, as a button with a menu. Renders nothing if the console needs no sign-in. */
export function SignedIn({ view: { caller, formToken } }: { readonly view: View }): VNode | null {
  if (caller === undefined) return null;
  const { name, scopes } = caller;
  return (
    <>
      <button class="me" type="button" popovertarget="me">
        <span class="avatar" aria-hidden="true">
          {name.slice(0, 2).toUpperCase()}
        </span>
        <span class="unseen">Signed in as </span>
        <bdi>{name}</bdi>
      </button>
      <section id="me" popover="auto" class="pop" aria-label="Signed in">
        <p>
          Signed in as{" "}
          <b>
            <bdi>{name}</bdi>
          </b>
        </p>
        <p class="quiet">May: {scopes?.join(", ") ?? "everything"}</p>
        {formToken === undefined ? null : (
          <form method="post" action="/session/end">
            <HiddenFields of={[["form_token", formToken]]} />
            <button>Sign out</button>
          </form>
        )}
      </section>
    </>
  );
}

const KEYS = [
  [["/"], "Search, from anywhere"],
  [["j", "k"], "Next and previous line"],
  [["Enter"], "Open the line"],
  [["Space"], "Unfold the line"],
  [["x"], "Select the row, where rows have a box"],
  [["Esc"], "Close what opened last"],
  [["t"], "Choose a moment"],
  [["[", "]"], "One hour back, one hour forward"],
  [["n"], "Back to now"],
  [["g", "o p r a d"], "Overview, People, Runs, Activity, Deliveries"],
  [["?"], "This list"],
] as const;

/** Lists the keys of the console, with a switch that disables those of a single character (WCAG 2.1.4). */
export function KeyList(): VNode {
  return (
    <section id="keys" popover="auto" class="pop middle" aria-labelledby="keys-title">
      <h2 id="keys-title">Keyboard shortcuts</h2>
      <dl class="keys">
        {KEYS.map(([keys, what]) => (
          <>
            <dt>
              {keys.map((key) => (
                <>
                  <kbd>{key}</kbd>{" "}
                </>
              ))}
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <label>
        <input type="checkbox" id="single-keys" checked /> Keys of a single character work
      </label>
    </section>
  );
}

/** Warns that the log is unreachable, so that the page shows older data. */
export function AwayBar({ view: { live } }: { readonly view: View }): VNode | null {
  const since = live?.awaySince();
  if (since === undefined) return null;
  return (
    <p class="notice fault" role="status">
      The log is out of reach since <Time at={toIso(since)} />. Nothing is recorded meanwhile, and what is shown here
      may be out of date.
    </p>
  );
}

/** Shows the result of a form, once. The next page no longer shows it. */
export function NoticeBar({ view: { query, notice } }: { readonly view: View }): VNode | null {
  if (notice === undefined) return null;
  const { text, isFault, nextStep, warnings = [] } = notice;
  return (
    <>
      <section class={isFault ? "notice fault" : "notice"} aria-label="Result">
        <p role={isFault ? "alert" : "status"}>
          {text} {nextStep === undefined ? null : <A href={nextStep.href}>{nextStep.label}</A>}
        </p>
        <A class="button" href={addressWith("", query, {})} data-dismiss>
          Dismiss
        </A>
      </section>
      {warnings.map((warning) => (
        <p class="notice warn" role="alert">
          <bdi>{warning}.</bdi>
        </p>
      ))}
    </>
  );
}
