/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { readAttention } from "../../outreach/attention/read-attention.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import type { View } from "../page-context.ts";
import { ConfirmedAction } from "./action-form.tsx";
import { hindranceToDeliver, Resume } from "./channel-status.tsx";
import { Reason, RetryLetters } from "./dead-letter-actions.tsx";
import { By, Words } from "./event-sentence.tsx";
import { Badge } from "./icon-and-badge.tsx";
import { A } from "./links-forms-and-tabs.tsx";
import { SEVERITY } from "./news.tsx";
import { LookUp } from "./run-card.tsx";
import { hindranceAtX } from "./run-form.tsx";
import { Time } from "./time.tsx";

type Attention = Awaited<ReturnType<typeof readAttention>>;
type Item = Attention["open"][number];

/** Number of characters of an ISO 8601 time up to the minute. */
export const MINUTE = 16;

interface AttentionProps {
  readonly view: View<"deliveries" | "runs">;
  readonly back: string;
  readonly items: Attention["open"];
}

/** Lists the items that wait for an operator: how severe, since when, why, what to do, and buttons that do it. */
export function AttentionList({ view, back, items }: AttentionProps): VNode {
  return (
    <ol class="needs">
      {items.map((item) => (
        <li class={item.severity}>
          <div>
            <h3>
              <Badge state={SEVERITY[item.severity]} /> {item.title}{" "}
              <small class="quiet">
                <Time at={item.since} />
                {item.to?.slice(0, MINUTE) === item.since?.slice(0, MINUTE) ? null : <Time before=" – " at={item.to} />}
              </small>
            </h3>
            <p class="sentence">
              <Words view={view} sentence={item.cause} />
            </p>
            <p class="todo">{item.todo}</p>
          </div>
          <div class="actions">
            <Acts view={view} back={back} act={item.act} />
          </div>
        </li>
      ))}
    </ol>
  );
}

function Acts({ view, back, act }: { view: View<"runs">; back: string; act: Item["act"] }): VNode | null {
  switch (act.kind) {
    case "authorize": {
      const { nextStep } = (view.asOf === undefined ? hindranceAtX(view, back) : undefined) ?? {};
      return nextStep === undefined ? null : (
        <a class="button primary" href={nextStep.href}>
          {nextStep.label}
        </a>
      );
    }
    case "inspect":
      return <Link href="/activity">Show the proof</Link>;
    case "read_replies":
      return <Link href="/people?status=held">Show the replies</Link>;
    case "wait":
      return null;
    case "resume":
      return <Resume backlog={act.backlog} back={back} />;
    case "late": {
      const { nextStep } = hindranceToDeliver(view, act.backlog) ?? {};
      const { href, label } = nextStep ?? {
        href: `/deliveries?channel=${act.backlog.name}`,
        label: "Show the channel",
      };
      return <Link href={href}>{label}</Link>;
    }
    case "retry": {
      const { backlog, error, until, count, doubles } = act.group;
      const fields = { channel: backlog.name, error, all: "true", until_position: String(until) };
      return (
        <>
          <Link href={`/deliveries?channel=${backlog.name}&error=${error}&status=dead#letters`}>
            Show the {grouped(count)}
          </Link>
          <RetryLetters {...{ back, backlog, count, doubles, fields }} />
        </>
      );
    }
    case "settle": {
      const { backlog, count, until } = act.group;
      const fields = { channel: backlog.name, all: "true", until_position: String(until), expected: String(count) };
      const about = countInWords(count, "dispatch", "dispatches");
      return (
        <>
          <Link href={`/deliveries?channel=${backlog.name}&status=in_doubt#in-doubt`}>One by one</Link>
          <Answers {...{ back, about, fields, count }} action="/console/deliveries/settle" />
        </>
      );
    }
    case "messages": {
      const fields = { all: "true", expected: String(act.count) };
      const about = (
        <>
          the {act.count === 1 ? "message" : "messages"} <Words view={view} sentence={act.to} isPlain />
        </>
      );
      return (
        <>
          <Answers {...{ back, about, fields, count: act.count }} action="/console/outreach/settle" />
          {act.canLookUp ? <LookUp back={back} label={`Look ${act.count === 1 ? "it" : "them"} up`} isPrimary /> : null}
        </>
      );
    }
  }
}

function Link({ href, children }: { href: string; children: ComponentChildren }): VNode {
  return (
    <A class="button" href={href}>
      {children}
    </A>
  );
}

interface AnswersProps {
  readonly back: string;
  readonly action: `/console/${string}`;
  readonly about: ComponentChildren;
  readonly count: number;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Two answers that an operator can give about dispatches or messages in doubt: that they stay unknown, or that they
 * arrived. Both need a reason.
 */
function Answers({ count, fields, about, ...form }: AnswersProps): VNode {
  const answers = [
    {
      as: "left",
      label: count === 1 ? "Leave it" : "Leave all",
      question: <>Leave {about} as unknown?</>,
      says: "It stays unknown, and nothing is sent or looked up again. The log keeps the reason.",
    },
    {
      as: "arrived",
      label: count === 1 ? "It arrived" : "All arrived",
      question: <>Did {about} arrive?</>,
      says: "It counts as arrived, and nothing is sent. The log keeps the reason.",
    },
  ];
  return (
    <>
      {answers.map(({ as, label, ...words }) => (
        <ConfirmedAction {...form} {...words} fields={{ ...fields, as }} label={`${label}…`}>
          <Reason />
          <button>{label}</button>
        </ConfirmedAction>
      ))}
    </>
  );
}

/** Lists the operators' decisions of the last 15 minutes: who, when, with which result and for which reason. */
export function DecidedList({ view, items }: { view: View<"runs">; items: Attention["decided"] }): VNode {
  return (
    <ol class="needs">
      {items.map(({ title, caller, at, why, progress }) => (
        <li>
          <div>
            <h3>
              <Badge state={progress === undefined ? ["good", "check", "Decided"] : ["info", "clock", "Under way"]} />{" "}
              <span class="sentence">
                <Words view={view} sentence={title} />
              </span>
            </h3>
            {progress === undefined ? null : (
              <progress max={progress.all} value={progress.ended} aria-label={`${progress.ended} of ${progress.all}`} />
            )}
            <p class="quiet">
              <Time at={at} as="clock" />
              <By caller={caller} />
              {why === undefined ? null : (
                <>
                  : “<bdi>{why}</bdi>”
                </>
              )}
            </p>
          </div>
        </li>
      ))}
    </ol>
  );
}
