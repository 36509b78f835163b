/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { channelsOf } from "../../projections/deliveries.ts";
import { DAY_MS, HOUR_MS } from "../../projections/time.ts";
import { isoTime } from "../platform/clock.ts";
import { countInWords, grouped } from "../platform/counts-and-lists.ts";
import { escapeControls } from "../platform/escape-controls.ts";
import { addressWith } from "./hrefs.ts";
import { Histogram, type QuarterCount } from "./parts/charts.tsx";
import { Icon, IconSymbols } from "./parts/icon.tsx";
import { Time } from "./parts/time.tsx";
import type { View } from "./page-context.ts";
import { A, PageForm, ShownMoment } from "./parts/link.tsx";

/** The console's pages, in the order of the menu. */
export const PAGES = [
  { path: "/", title: "Overview", icon: "house" },
  { path: "/people", title: "People", icon: "users" },
  { path: "/activity", title: "Activity", icon: "list" },
  { path: "/deliveries", title: "Deliveries", icon: "inbox" },
  { path: "/results", title: "Results", icon: "flask-conical" },
  { path: "/links", title: "Links", icon: "link" },
  { path: "/setup", title: "Setup", icon: "sliders-horizontal" },
] as const;

export type PagePath = (typeof PAGES)[number]["path"];

interface ConsoleDocumentProps {
  readonly title: string;
  /** Undefined on a page that is not in the menu. */
  readonly path?: PagePath;
  readonly view?: View<"account">;
  /** True if the page stays as it is when events arrive: its content is recorded nowhere. */
  readonly isStill?: boolean;
  /** The bar of the changes since the moment of the page. */
  readonly changes?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The frame of every page of the console: head, menu, and how far the log was read for it. */
export function ConsoleDocument({
  title,
  path,
  view,
  isStill = false,
  changes,
  children,
}: ConsoleDocumentProps): VNode {
  const isOverview = title === "reachlog";
  return (
    <ShownMoment.Provider value={view?.asOf}>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>{isOverview ? title : `${title} · reachlog`}</title>
          <link rel="icon" href="data:," />
          <link rel="stylesheet" href="/console.css" />
          {view === undefined ? null : <script type="module" src="/console.js" />}
        </head>
        <body data-as-of={view?.asOf}>
          <a class="skip" href="#main">
            Skip to the content
          </a>
          {view === undefined ? (
            <main id="main">{children}</main>
          ) : (
            <div class="frame">
              <header class="side">
                <A class="brand" href="/">
                  <Icon name="list" />
                  reachlog
                </A>
                <Menu view={view} path={path} />
                <Foot view={view} />
              </header>
              <div>
                <div class="top">
                  <FindForm wanted={view.query.get("q") ?? ""} />
                  <Verified view={view} />
                </div>
                {isStill ? null : <MomentBar view={view} isOverview={isOverview} />}
                {changes}
                <AwayBar view={view} />
                <NoticeBar view={view} />
                <main id="main" data-position={isStill ? undefined : view.position}>
                  {children}
                </main>
              </div>
            </div>
          )}
          {view === undefined ? null : <IconSymbols />}
        </body>
      </html>
    </ShownMoment.Provider>
  );
}

function Menu({ view, path }: { view: View; path: PagePath | undefined }): VNode {
  return (
    <nav id="menu" aria-label="Pages">
      {PAGES.map((page) => (
        <A href={page.path} aria-current={page.path === path ? "page" : undefined}>
          <Icon name={page.icon} />
          {page.title}
          {page.path === "/deliveries" ? <DeadLetters view={view} /> : null}
        </A>
      ))}
    </nav>
  );
}

/** The number of dead letters that wait for a decision. Renders nothing on a page of an earlier moment. */
function DeadLetters({ view: { live, stateNow } }: { readonly view: View }): VNode | null {
  if (live === undefined) return null;
  const dead = channelsOf(stateNow("deliveries")).reduce((sum, [, channel]) => sum + channel.dead, 0);
  if (dead === 0) return null;
  return (
    <span class="badge bad" role="img" aria-label={countInWords(dead, "dead letter")}>
      {grouped(dead)}
    </span>
  );
}

/** The result of the newest verification, its position and time. It never claims more than that. */
function Verified({ view: { verified } }: { readonly view: View }): VNode {
  const [tone, icon, words] =
    verified === undefined
      ? (["", "circle-question-mark", "Log not verified yet"] as const)
      : verified.data.result === "whole"
        ? (["whole", "shield-check", `Log whole up to ${grouped(verified.data.position)}`] as const)
        : (["red", "triangle-alert", "Log broken"] as const);
  return (
    <section id="verified" aria-label="Verification">
      <A class={tone} href="/activity">
        <Icon name={icon} />
        <span>
          {words}
          <Time before=", verified " at={verified?.time} />
        </span>
      </A>
    </section>
  );
}

/** The search box of every page; the key / focuses it. */
function FindForm({ wanted }: { readonly wanted: string }): VNode {
  const label = "Why did @… get a message? A handle, a link, a run, an event, a position";
  return (
    <PageForm class="find" role="search" action="/find">
      <label>
        <Icon name="search" />
        <input
          name="q"
          value={wanted}
          maxLength={400}
          required
          aria-label={label}
          aria-keyshortcuts="/"
          placeholder="Why did @… get a message?"
        />
        <kbd aria-hidden="true">/</kbd>
      </label>
    </PageForm>
  );
}

/** The foot of the menu: how far the log was read, whether the page is kept up to date, and the account that sends. */
function Foot({ view }: { readonly view: View<"account"> }): VNode {
  const { position, time } = view;
  const { user, authorized } = view.state("account");
  return (
    <div class="foot">
      <p id="connection" role="status" />
      <p id="shown">
        {position === 0 ? (
          "The log is empty."
        ) : (
          <>
            Read up to position <b>{grouped(position)}</b>
            <Time before=", " at={time} />.
          </>
        )}
      </p>
      {user === null || !authorized ? null : (
        <p>
          Sends as <bdi>@{user.username}</bdi>
        </p>
      )}
      <SignOut view={view} />
    </div>
  );
}

/** The form that signs out. Renders nothing if the console needs no sign-in. */
function SignOut({ view: { formToken, settings } }: { readonly view: View }): VNode | null {
  if (formToken === undefined || !settings.wantsToken()) return null;
  return (
    <form method="post" action="/session/end">
      <input type="hidden" name="form_token" value={formToken} />
      <button>Sign out</button>
    </form>
  );
}

/** Warns that the log is out of reach, so that the page shows older data. */
function AwayBar({ view: { live } }: { readonly view: View }): VNode | null {
  const since = live?.awaySince();
  if (since === undefined) return null;
  return (
    <p class="notice fault" role="status">
      The log is out of reach since <Time at={isoTime(since)} isExact />. Nothing is recorded meanwhile, and what is
      shown here may be out of date.
    </p>
  );
}

/** The result of a form. It stays until dismissed, because only `main` is refreshed in place. */
function NoticeBar({ view: { query, asOf, notice } }: { readonly view: View }): VNode | null {
  if (notice === undefined) return null;
  const { text, isFault, nextStep } = notice;
  return (
    <section class={isFault ? "notice fault" : "notice"} aria-label="Result">
      <p role={isFault ? "alert" : "status"}>
        {text} {nextStep === undefined ? null : <A href={nextStep.href}>{nextStep.label}</A>}
      </p>
      <a class="button" href={addressWith("", query, { as_of: asOf, notice: "read" })} data-moment>
        Dismiss
      </a>
    </section>
  );
}

/** The moment of the page, and links to other ones: known moments, a day or a time, and a slider over the log. */
function MomentBar({ view, isOverview }: { readonly view: View; readonly isOverview: boolean }): VNode | null {
  const { asOf, position, time, query, now, span, settings, stateNow } = view;
  if (span === undefined) return null;
  const { timezone } = settings;
  const shown = Temporal.Instant.fromEpochMilliseconds(Math.max(now, span.from)).toZonedDateTimeISO(timezone);
  const yesterday = Temporal.Instant.fromEpochMilliseconds(span.to).toZonedDateTimeISO(timezone).subtract({ days: 1 });
  const presets = [
    ["An hour ago", isoTime(span.to - HOUR_MS)],
    ["Yesterday 18:00", `${yesterday.toPlainDate().toString()}T18:00`],
    ["A week ago", isoTime(span.to - 7 * DAY_MS)],
    ...(span.beforeRun === undefined ? [] : [["Before the last run", String(span.beforeRun)] as const]),
  ] as const;
  return (
    <section id="moment" class={asOf === undefined ? "moment" : "moment past"} aria-label="Moment">
      {asOf === undefined ? null : (
        <p>
          <span>
            <b>As of position {grouped(position)}</b>,{" "}
            {time === undefined ? "before the first event" : <Time at={time} isExact />}. Settings, such as the daily
            limit, are those of now. Nothing can be done here. {isOverview ? null : <A href="/">What changed since</A>}
          </span>
          <a class="button" href={addressWith("", query, {})} data-moment>
            Back to now
          </a>
        </p>
      )}
      <details class="folded">
        <summary>
          <Icon name="clock" />
          Look at an earlier moment
        </summary>
        <div class="moments">
          <Icon name="clock" />
          {presets.map(([label, at]) => (
            <a href={addressWith("", query, { as_of: at })} data-moment aria-current={at === asOf ? "true" : undefined}>
              {label}
            </a>
          ))}
          <form method="get" data-moment>
            <OtherFields query={query} />
            <label>
              At, in {timezone}{" "}
              <input
                type="datetime-local"
                name="as_of"
                required
                value={asOf === undefined ? undefined : shown.toPlainDateTime().toString({ smallestUnit: "minute" })}
              />
            </label>{" "}
            <button>Go</button>
          </form>
          <div class="slider">
            <Histogram {...span} quarters={countQuarters(stateNow)} />
            <input
              type="range"
              aria-label="Moment between the first event and now"
              min={span.from}
              max={span.to}
              step={Math.max(1, Math.ceil((span.to - span.from) / SLIDER_STEPS))}
              value={shown.epochMilliseconds}
            />
          </div>
          <span data-value />
        </div>
      </details>
    </section>
  );
}

/** Counts messages and clicks by quarter of an hour, also those after the moment of the page. */
function* countQuarters(stateNow: View["stateNow"]): Generator<QuarterCount, void, void> {
  for (const [start, { sent, skipped, failed }] of stateNow("timeline").quarters)
    yield { start, count: sent + skipped + failed, failed };
  for (const [start, { clicks, bots }] of stateNow("suspected").quarters)
    yield { start, count: clicks + bots, failed: 0 };
}

/** Steps of the slider: as many as a wide screen can tell apart. */
const SLIDER_STEPS = 1_000;

interface OtherFieldsProps {
  readonly query: URLSearchParams;
  /** The names of the form's own fields, and of parameters that these replace. */
  readonly names?: readonly string[];
}

/**
 * The other parameters of the page as hidden fields, because a form sends only its own fields. The page adds the
 * moment.
 */
export function OtherFields({ query, names = [] }: OtherFieldsProps): VNode {
  return (
    <>
      {[...query].map(([name, value]) =>
        name === "as_of" || names.includes(name) ? null : <input type="hidden" name={name} value={value} />,
      )}
    </>
  );
}

interface SectionProps {
  readonly id: string;
  readonly title: ComponentChildren;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** A part of a page, with a heading that names it. */
export function Section({ id, title, class: look, children }: SectionProps): VNode {
  return (
    <section class={look} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

/**
 * Renders a whole HTML document. Text from outside is never markup in it, and cannot change the direction of the text
 * around it.
 */
export function renderPage(page: VNode): string {
  return `<!doctype html>${escapeControls(renderToString(page))}`;
}
