/** @jsxImportSource preact */
import { h, type ComponentChildren, type VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { listBacklogs } from "../delivery/channel-backlog-and-undelivered.ts";
import { countInWords, grouped } from "../platform/format-numbers-and-lists.ts";
import { escapeControls } from "../platform/escape-control-characters.ts";
import { addressWith } from "./hrefs.ts";
import { Asked, type AskedConfirmation } from "./parts/action-form.tsx";
import { AwayBar, KeyList, NoticeBar, SignedIn } from "./parts/user-menu-shortcuts-and-notices.tsx";
import { Icon } from "./parts/icon-and-badge.tsx";
import * as icons from "./parts/icons.ts";
import { A, PageForm } from "./parts/links-forms-and-tabs.tsx";
import { MomentChoice, PastBar } from "./parts/moment-controls.tsx";
import { formatTime, readTimes, Time, toIso } from "./parts/time.tsx";
import { ShownView, type View } from "./page-context.ts";

/**
 * The console's pages in the order of the menu. On a phone the first few are at the foot, the others behind the button
 * More.
 */
export const PAGES = [
  { path: "/", title: "Overview", icon: "house", isOnPhone: true },
  { path: "/people", title: "People", icon: "users", isOnPhone: true },
  { path: "/campaigns", title: "Campaigns", icon: "megaphone", isOnPhone: false },
  { path: "/runs", title: "Runs", icon: "send", isOnPhone: false },
  { path: "/activity", title: "Activity", icon: "list", isOnPhone: true },
  { path: "/deliveries", title: "Deliveries", icon: "inbox", isOnPhone: true },
  { path: "/results", title: "Results", icon: "flaskConical", isOnPhone: false },
  { path: "/links", title: "Links", icon: "link", isOnPhone: false },
  { path: "/setup", title: "Setup", icon: "slidersHorizontal", isOnPhone: false },
] as const;

export type PagePath = (typeof PAGES)[number]["path"];

interface ConsoleDocumentProps {
  readonly title: string;
  /** Path of the page; undefined on a page that is not in the menu. */
  readonly path?: PagePath;
  readonly view?: View<"account">;
  /** True if the page does not change when events arrive, because it shows a result that is recorded nowhere. */
  readonly isStill?: boolean;
  /** Bar that shows what changed since the moment of the page. */
  readonly changes?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The frame of every page of the console: menu, search, the moment, and who is signed in. */
export function ConsoleDocument(props: ConsoleDocumentProps): VNode {
  const { view, title } = props;
  if (view === undefined) {
    return (
      <Html title={title}>
        <header class="lone">
          <Brand />
        </header>
        <main id="main">{props.children}</main>
      </Html>
    );
  }
  return (
    <ShownView.Provider value={view}>
      <Frame {...props} {...findConfirmation(props)} view={view} />
    </ShownView.Provider>
  );
}

interface HtmlProps {
  readonly title: string;
  /**
   * The page's input (moment, states and request). Undefined for a page that shows nothing of the log; it needs no
   * script.
   */
  readonly view?: View;
  readonly children: ComponentChildren;
}

function Html({ title, view, children }: HtmlProps): VNode {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title === "reachlog" ? title : `${title} · reachlog`}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/console.css" />
        {view && <script type="module" src="/console.js" />}
      </head>
      <body data-as-of={view?.asOf}>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        {children}
        <IconSymbols />
      </body>
    </html>
  );
}

/**
 * The drawings of the icons, which all icons of a page refer to. An element around the `svg` hides them: browsers
 * ignore `hidden` on an `svg`, which would add 150 px to the page.
 */
function IconSymbols(): VNode {
  return (
    <div hidden>
      <svg>
        {Object.entries(icons).map(([name, elements]) => (
          <symbol id={`icon-${name}`} viewBox="0 0 24 24">
            {elements.map(([tag, attributes]) => h(tag, attributes))}
          </symbol>
        ))}
      </svg>
    </div>
  );
}

function Brand(): VNode {
  return (
    <A class="brand" href="/">
      <Icon name="list" />
      reachlog
    </A>
  );
}

function Frame({
  title,
  path,
  view,
  isStill = false,
  changes,
  children,
}: ConsoleDocumentProps & { view: View<"account"> }): VNode {
  const { asOf } = view;
  const name = title === "reachlog" ? "Overview" : title;
  const moment = asOf === undefined ? "" : `${formatTime(view.now, "short", readTimes(view))}: `;
  return (
    <Html title={asOf === undefined ? title : moment + name} view={view}>
      <div class="frame">
        <header class="side">
          <Brand />
          <Menu view={view} path={path} />
          <Foot view={view} />
        </header>
        <div class="stage">
          <div class="top">
            <div class="top-row">
              <FindForm wanted={view.query.get("q") ?? ""} />
              {isStill ? null : <MomentChoice view={view} />}
              <section id="verified" aria-label="Verification">
                <VerifiedLink view={view} />
              </section>
              <button
                class="help"
                type="button"
                popovertarget="keys"
                aria-label="Keyboard shortcuts"
                aria-keyshortcuts="?"
              >
                <Icon name="keyboard" />
              </button>
              <SignedIn view={view} />
            </div>
            <PastBar view={view} />
          </div>
          {changes}
          <AwayBar view={view} />
          <NoticeBar view={view} />
          <main id="main" data-position={isStill ? undefined : view.position}>
            {children}
          </main>
        </div>
      </div>
      <More view={view} path={path} />
      <KeyList />
    </Html>
  );
}

/**
 * Returns the confirmation that `confirm` in the page's address names, as a page by itself, for browsers without
 * script. Undefined if the page has no such confirmation.
 */
function findConfirmation({ view, children }: ConsoleDocumentProps) {
  const id = view?.query.get("confirm") ?? "";
  if (id === "") return undefined;
  const asked: AskedConfirmation = { id };
  renderToString(
    <ShownView.Provider value={view}>
      <Asked.Provider value={asked}>{children}</Asked.Provider>
    </ShownView.Provider>,
  );
  const { found } = asked;
  if (found === undefined) return undefined;
  return { title: found.title, isStill: true, children: <section class="confirm">{found.content}</section> };
}

type MenuProps = { readonly view: View; readonly path: PagePath | undefined };

function Menu({ view, path }: MenuProps): VNode {
  return (
    <nav id="menu" aria-label="Pages">
      {PAGES.map((page) => (
        <MenuLink page={page} path={path} look={page.isOnPhone ? undefined : "wide"}>
          {page.path === "/deliveries" ? <DeadLetters view={view} /> : null}
        </MenuLink>
      ))}
      <button class="narrow" type="button" popovertarget="more">
        <Icon name="ellipsis" />
        More
      </button>
    </nav>
  );
}

/** Menu of a phone: the pages that do not fit into the bar at the foot of the screen, and the state of the log. */
function More({ view, path }: MenuProps): VNode {
  return (
    <section id="more" popover="auto" class="pop sheet" aria-labelledby="more-title">
      <h2 id="more-title">More</h2>
      <nav aria-label="More pages">
        {PAGES.map((page) => (page.isOnPhone ? null : <MenuLink page={page} path={path} />))}
        <VerifiedLink view={view} />
      </nav>
    </section>
  );
}

interface MenuLinkProps {
  readonly page: (typeof PAGES)[number];
  /** Path of the page that is shown. */
  readonly path: PagePath | undefined;
  readonly look?: string | undefined;
  readonly children?: ComponentChildren;
}

function MenuLink({ page, path, look, children }: MenuLinkProps): VNode {
  return (
    <A href={page.path} class={look} aria-current={page.path === path ? "page" : undefined}>
      <Icon name={page.icon} />
      {page.title}
      {children}
    </A>
  );
}

/** Shows the number of dead letters that wait for a decision. Renders nothing on a page of an earlier moment. */
function DeadLetters({ view: { live, stateNow } }: { readonly view: View }): VNode | null {
  if (live === undefined) return null;
  const dead = listBacklogs(stateNow("deliveries")).reduce((sum, channel) => sum + channel.dead, 0);
  if (dead === 0) return null;
  return (
    <span class="badge bad" role="img" aria-label={countInWords(dead, "dead letter")}>
      {grouped(dead)}
    </span>
  );
}

/**
 * Shows the result of the newest verification of the log, with its time and position. Does not claim anything about
 * later events.
 */
function VerifiedLink({ view: { verified } }: { readonly view: View }): VNode {
  if (verified === undefined) {
    return (
      <A href="/activity">
        <Icon name="circleQuestionMark" />
        <span>Log not checked yet</span>
      </A>
    );
  }
  const { result, position } = verified.data;
  const isWhole = result === "whole";
  return (
    <A class={isWhole ? "whole" : "red"} href="/activity" title={`Checked up to position ${grouped(position)}`}>
      <Icon name={isWhole ? "shieldCheck" : "triangleAlert"} />
      <span>
        {isWhole ? "Log intact, checked" : "Log broken, checked"} <Time at={verified.time} as="near" />
      </span>
    </A>
  );
}

/** The search box on every page. The key / moves the focus to it. */
function FindForm({ wanted }: { readonly wanted: string }): VNode {
  return (
    <PageForm class="find" role="search" action="/find">
      <Icon name="search" />
      <input
        name="q"
        type="search"
        value={wanted}
        maxLength={400}
        required
        autocomplete="off"
        aria-label="Why did @… get a message? A name, a link, a run, a template, an event or a position"
        aria-keyshortcuts="/"
        placeholder="Why did @… get a message?"
      />
      <kbd aria-hidden="true">/</kbd>
    </PageForm>
  );
}

/** The foot of the menu: whether the page is kept up to date, and the account that sends. */
function Foot({ view }: { readonly view: View<"account"> }): VNode {
  const { user, authorized } = view.state("account");
  return (
    <div class="foot">
      <p id="connection" role="status">
        {view.asOf === undefined ? null : "Live updates are off"}
      </p>
      {view.asOf === undefined ? (
        <p class="unscripted">
          As of <Time at={toIso(view.now)} as="clock" />. <A href={addressWith("", view.query, {})}>Reload</A>
        </p>
      ) : null}
      {view.position === 0 ? <p>The log is empty.</p> : null}
      {user === null || !authorized ? null : (
        <p>
          Sends as{" "}
          <b>
            <bdi>@{user.username}</bdi>
          </b>
        </p>
      )}
    </div>
  );
}

interface HeadProps {
  readonly title: ComponentChildren;
  /** Links above the title, to the pages that lead here. */
  readonly above?: ComponentChildren;
  /** A sentence below the title. */
  readonly says?: ComponentChildren;
  /** Buttons and forms of the page. */
  readonly children?: ComponentChildren;
}

/** The head of a page: its title with a sentence, and next to it the page's buttons. */
export function Head({ title, above, says, children }: HeadProps): VNode {
  return (
    <div class="head">
      <div>
        {above === undefined ? null : <p>{above}</p>}
        <h1>{title}</h1>
        {says === undefined ? null : <p>{says}</p>}
      </div>
      {children}
    </div>
  );
}

/** Shows what is wrong with the page's address or the sent form. Renders nothing if nothing is wrong. */
export function FaultNotice({ children }: { readonly children: ComponentChildren }): VNode | null {
  if (children === undefined) return null;
  return (
    <p class="notice fault" role="alert">
      {children}
    </p>
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
 * Renders a whole HTML document. Text from outside is escaped, and cannot change the direction of the text around it.
 */
export function renderPage(page: VNode): string {
  return `<!doctype html>${escapeControls(renderToString(page))}`;
}
