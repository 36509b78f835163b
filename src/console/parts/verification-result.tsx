/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { ActionForm } from "./action-form.tsx";
import { eventHref } from "../hrefs.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { By } from "./event-sentence.tsx";
import { Badge, Icon } from "./icon-and-badge.tsx";
import { Time } from "./time.tsx";
import type { ShownVerification, View } from "../page-context.ts";
import { A } from "./links-forms-and-tabs.tsx";

/** Button that has the log checked, or the progress of a check. */
export function CheckLog({ view }: { readonly view: View }): VNode {
  const progress = view.live?.verification();
  return progress === undefined ? (
    <ActionForm back="/activity" action="/console/audit/verify">
      <button>
        <Icon name="shieldCheck" />
        Check the log
      </button>
    </ActionForm>
  ) : (
    <Progress progress={progress} />
  );
}

/** Shows the result of the newest verification of the log, and the signed head, which proves the log to others. */
export function Proof({ view: { verified, position } }: { readonly view: View }): VNode {
  return (
    <section class="aside" aria-label="Proof">
      {verified === undefined ? (
        <p>The log was not verified yet.</p>
      ) : (
        <LastVerification last={verified} head={position} />
      )}
      <p>
        <A href="/api/audit/head" download>
          Download the current head, signed
        </A>
        . Kept elsewhere, it later proves that the log still holds all of today's events.
      </p>
    </section>
  );
}

function LastVerification({ last, head }: { readonly last: Recorded<"LogVerified">; readonly head: number }): VNode {
  const { position, result, broken_position: broken } = last.data;
  const since = head - last.position;
  const whole = [<Badge state={["good", "shieldCheck", "whole"]} />, ` up to position ${grouped(position)}`];
  const where = broken === undefined ? "" : [" (", <A href={eventHref(broken)}>event {grouped(broken)}</A>, ")"];
  const fault = [<Badge state={["bad", "triangleAlert", "broken"]} />, ": ", <bdi>{last.data.fault}</bdi>, where];
  return (
    <p>
      {result === "whole" ? whole : fault}, as <A href={eventHref(last.position)}>verified</A> <Time at={last.time} />
      <By caller={last.meta.caller} />. {since === 0 ? null : `${countInWords(since, "event")} since then.`}
    </p>
  );
}

/**
 * Shows the progress of a verification of the log. No event reports it, so the script refreshes the page as long as
 * this is shown.
 */
function Progress({ progress }: { readonly progress: ShownVerification }): VNode {
  const { caller, started_at, checked, position } = progress;
  const percent = position === 0 ? 0 : Math.floor((checked / position) * 100);
  return (
    <p>
      Being verified since <Time at={started_at} />
      <By caller={caller} />
      : <progress data-refresh max={position} value={Math.min(checked, position)} aria-label="Events verified" />{" "}
      {percent} %, {grouped(checked)} of {grouped(position)} events.
    </p>
  );
}
