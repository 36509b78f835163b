/** @jsxImportSource preact */
import type { VNode } from "preact";
import { countBars, countQuarters } from "../../history/chart-figures.ts";
import { grouped } from "../../platform/format-numbers-and-lists.ts";
import { addressWith } from "../hrefs.ts";
import type { View } from "../page-context.ts";
import { Field } from "./action-form.tsx";
import { Histogram } from "./charts.tsx";
import { Icon } from "./icon-and-badge.tsx";
import { A, OtherFields } from "./links-forms-and-tabs.tsx";
import { formatTime, readTimes, Time, toIso } from "./time.tsx";

interface Viewed {
  readonly view: View;
}

const HOUR_MS = 3_600_000;
const THREE_DAYS_MS = 3 * 24 * HOUR_MS;
const WEEK_MS = 7 * 24 * HOUR_MS;

/** The button with the page's moment, and a popover to choose another one. Both work without script. */
export function MomentChoice({ view }: Viewed): VNode | null {
  const { asOf, span } = view;
  if (span === undefined) return null;
  const shown = asOf === undefined ? "Now" : formatTime(view.now, "short", readTimes(view));
  return (
    <>
      <button
        type="button"
        class={asOf === undefined ? "now" : "now past"}
        popovertarget="moment"
        aria-keyshortcuts="t"
      >
        <Icon name="clock" />
        <span>{shown}</span>
        <span class="unseen">. Look at another moment</span>
        <Icon name="chevronDown" />
      </button>
      <section id="moment" popover="auto" class="pop" aria-labelledby="moment-title">
        <h2 id="moment-title">Look at an earlier moment</h2>
        <Presets view={view} span={span} />
        <form method="get" class="pick" data-moment>
          <OtherFields />
          <Field
            label="Moment"
            name="as_of"
            required
            maxLength={80}
            value={asOf && shown}
            autocomplete="off"
            aria-describedby="moment-hint"
          />
          <button>Go</button>
          <p id="moment-hint">
            A date or time, “yesterday”, “9:41”, “run 35” or a position. Times are in {view.settings.timezone}.
          </p>
        </form>
        <Slider view={view} span={span} />
      </section>
    </>
  );
}

type Spanned = Viewed & { readonly span: NonNullable<View["span"]> };

/** Links to moments that operators often look at, each with its time. */
function Presets({ view, span }: Spanned): VNode {
  const { asOf, query, settings, verified } = view;
  const present = Temporal.Instant.fromEpochMilliseconds(span.to).toZonedDateTimeISO(settings.timezone);
  const evening = present
    .toPlainDate()
    .subtract({ days: 1 })
    .toZonedDateTime({ timeZone: present.timeZoneId, plainTime: "18:00" });
  const run = span.newestRun;
  const all = [
    { label: "One hour ago", at: span.to - HOUR_MS },
    run && { label: `Before run ${run.number}`, at: Date.parse(run.startedAt), asOf: String(run.before) },
    { label: "Yesterday evening", at: evening.epochMilliseconds },
    { label: "Three days ago", at: span.to - THREE_DAYS_MS },
    { label: "A week ago", at: span.to - WEEK_MS },
    verified && { label: "When the log was last checked", at: Date.parse(verified.time) },
  ];
  return (
    <ul class="presets">
      {all.map((preset) => {
        if (preset === undefined || preset.at < span.from) return null;
        const moment = preset.asOf ?? `${toIso(preset.at).slice(0, 16)}Z`;
        return (
          <li>
            <a
              href={addressWith("", query, { as_of: moment })}
              data-moment
              aria-current={moment === asOf ? "true" : undefined}
            >
              {preset.label} <Time at={toIso(preset.at)} as="near" />
            </a>
          </li>
        );
      })}
    </ul>
  );
}

/** Steps of the slider: as many as a wide screen can tell apart. */
const SLIDER_STEPS = 1_000;

/** The slider over the whole time of the log. Its label is on a separate line, so that the track does not move. */
function Slider({ view, span }: Spanned): VNode {
  const { asOf, now, position, stateNow } = view;
  const times = readTimes({ ...view, now: span.to });
  const shown = asOf === undefined ? "Now" : formatTime(now, "weekday", times);
  return (
    <div class="slide">
      <output for="slider">
        <b>{shown}</b> <span>position {grouped(position)}</span>
      </output>
      <div class="track">
        <Histogram bars={countBars(span, countQuarters(stateNow))} />
        <input
          id="slider"
          type="range"
          aria-label="Moment between the first event and now"
          min={span.from}
          max={span.to}
          step={Math.max(1, Math.ceil((span.to - span.from) / SLIDER_STEPS))}
          value={Math.max(now, span.from)}
          aria-valuetext={shown}
          data-language={times.language}
          data-timezone={times.timezone}
        />
      </div>
      <p class="ends">
        <Time at={toIso(span.from)} as="date" />
        <span>
          <kbd>[</kbd> <kbd>]</kbd> one hour, <kbd>n</kbd> now
        </span>
        <span>Now</span>
      </p>
    </div>
  );
}

/** The bar on a page of an earlier moment: the moment, steps of an hour, and the way back to the present. */
export function PastBar({ view }: Viewed): VNode | null {
  const { asOf, now, position, query } = view;
  if (asOf === undefined) return null;
  const stepTo = (ms: number) => addressWith("", query, { as_of: `${toIso(ms).slice(0, 16)}Z` });
  return (
    <section class="past-bar" aria-label="Earlier moment">
      <p>
        <Icon name="clock" />
        <span>
          <span class="wide">You see </span>
          <b>{formatTime(now, "weekday", readTimes({ ...view, now: view.span?.to ?? now }))}</b>
          {position === 0 ? ", before the first event" : /^\d+$/.test(asOf) ? `, at position ${grouped(position)}` : ""}
        </span>
        <A href="/#since">What changed since</A>
      </p>
      <a class="step" href={stepTo(now - HOUR_MS)} data-moment aria-label="One hour earlier" aria-keyshortcuts="[">
        <Icon name="chevronLeft" />
      </a>
      <a class="step" href={stepTo(now + HOUR_MS)} data-moment aria-label="One hour later" aria-keyshortcuts="]">
        <Icon name="chevronRight" />
      </a>
      <a class="button back" href={addressWith("", query, {})} data-moment aria-keyshortcuts="n">
        Back to now <kbd aria-hidden="true">n</kbd>
      </a>
    </section>
  );
}
