/** @jsxImportSource preact */
import { createHash } from "node:crypto";
import type { VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { html, type HttpResponse } from "../server/http-response.ts";
import { OPT_OUT_WORDS, type OptOutWords } from "./opt-out-page-translations.ts";

interface Known {
  /** The account that wrote to the recipient, if it is still the linked one. */
  readonly account: { readonly username: string; readonly name: string } | undefined;
  /** True if clicks on the recipient's own links are recorded. */
  readonly isTracked: boolean;
}

/**
 * State of a page to opt out. `wait`: nothing can be recorded at present. `stopWord`: a word that the recipient may
 * reply instead.
 */
type Shown =
  | ({ readonly state: "ask" | "stopped" | "untracked" } & Known)
  | { readonly state: "unknown"; readonly stopWord: string }
  | { readonly state: "wait" };

/**
 * HTTP status, heading and text of the opt-out page in each of its states. In the state `wait`, the status is used only
 * if the problem that occurred does not give another.
 */
const STATES = {
  ask: { status: 200, heading: "question", text: "promise" },
  stopped: { status: 200, heading: "stopped", text: "recorded" },
  untracked: { status: 200, heading: "untracked", text: "recorded" },
  unknown: { status: 404, heading: "unknown", text: "reply" },
  wait: { status: 503, heading: "notYet", text: "tryAgain" },
} as const satisfies Record<Shown["state"], { status: number; heading: keyof OptOutWords; text: keyof OptOutWords }>;

/** Style of the page to opt out. It is part of the page, so that the page loads nothing. */
const STYLE = `
:root { color-scheme: light dark; --bg: #f7f7f9; --card: #fff; --ink: #16181d; --soft: #434956; --muted: #5d6472; --line: #e0e3e9; --good: #14693f; --good-bg: #e4f5eb; --warn: #7f4a00; --warn-bg: #fdf1d7; --focus: #5048c8; }
@media (prefers-color-scheme: dark) { :root { --bg: #0d0e11; --card: #15171b; --ink: #eceef2; --soft: #c3c8d2; --muted: #9aa2b1; --line: #2c313a; --good: #6fd6a0; --good-bg: #12291d; --warn: #f0bb5c; --warn-bg: #2d2211; --focus: #a9a4ff; } }
* { box-sizing: border-box; margin: 0; }
body { min-height: 100vh; min-height: 100dvh; display: grid; align-content: center; justify-items: center; gap: 18px; padding: 24px 16px; background: var(--bg); color: var(--ink); font: 400 16px/1.5 "Inter", ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { width: 100%; max-width: 440px; padding: 26px 24px 24px; background: var(--card); border: 1px solid var(--line); border-radius: 18px; }
.from { display: flex; gap: 12px; align-items: center; padding-bottom: 18px; margin-bottom: 20px; border-bottom: 1px solid var(--line); font-size: 15px; line-height: 1.4; color: var(--muted); }
.from div { min-width: 0; } .from b { display: block; font-weight: 600; color: var(--ink); overflow-wrap: anywhere; }
.from > span { width: 42px; height: 42px; flex: none; border-radius: 50%; display: grid; place-items: center; background: var(--ink); color: var(--card); font-weight: 650; }
h1 { font-size: 23px; line-height: 1.25; letter-spacing: -.02em; text-wrap: balance; overflow-wrap: break-word; }
p { margin-top: 8px; color: var(--soft); text-wrap: pretty; }
form { display: grid; gap: 10px; margin-top: 22px; }
button { width: 100%; min-height: 52px; padding: 10px 16px; border-radius: 12px; border: 1px solid var(--ink); background: var(--ink); color: var(--card); font: inherit; font-size: 17px; font-weight: 600; line-height: 1.25; cursor: pointer; }
button + button, p + button { background: none; color: var(--ink); border-color: var(--muted); font-weight: 550; font-size: 16px; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
form p, footer { font-size: 14px; color: var(--muted); }
footer { max-width: 440px; text-align: center; } footer p { color: inherit; }
.mark { width: 52px; height: 52px; border-radius: 50%; display: grid; place-items: center; margin-bottom: 16px; background: var(--good-bg); color: var(--good); }
.mark.warn { background: var(--warn-bg); color: var(--warn); }
.mark svg { width: 26px; height: 26px; fill: none; stroke: currentColor; stroke-width: 2.4; stroke-linecap: round; stroke-linejoin: round; }
@media (max-width: 360px) { main { padding: 20px 16px 18px; } h1 { font-size: 21px; } }
`;

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

const HEADERS = {
  "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  // The address contains the recipient's secret code, so no other site may learn it.
  "referrer-policy": "no-referrer",
  "x-robots-tag": "noindex",
};

/** Answers with the page to opt out, in the language that the browser prefers among those that the page has. */
export function optOutAnswer<const S extends Shown>(
  request: Request,
  shown: S,
): HttpResponse<(typeof STATES)[S["state"]]["status"]> {
  const language = chooseLanguage(request.headers.get("accept-language") ?? "");
  const page = renderToString(<OptOutPage shown={shown} language={language} words={OPT_OUT_WORDS[language]!} />);
  return html(STATES[shown.state as S["state"]].status, `<!doctype html>${page}`, {
    ...HEADERS,
    "content-language": language,
  });
}

/**
 * Maximum number of characters of a browser's Accept-Language header that are read. Real browsers send fewer than 200.
 */
const CHARACTERS_MAX = 200;

/** Returns the first of the browser's languages that the page has. Browsers list them in the order of preference. */
function chooseLanguage(header: string): string {
  const asked = header.slice(0, CHARACTERS_MAX).toLowerCase().split(",");
  const tags = asked.map((one) => one.trim().split(/[-;]/)[0]!);
  return tags.find((tag) => Object.hasOwn(OPT_OUT_WORDS, tag)) ?? Object.keys(OPT_OUT_WORDS)[0]!;
}

interface WordsProps {
  readonly words: OptOutWords;
}

interface PageProps extends WordsProps {
  readonly shown: Shown;
  readonly language: string;
}

function OptOutPage({ shown, words, language }: PageProps): VNode {
  const { heading: title, text } = STATES[shown.state];
  const heading = words[title];
  const isOpen = shown.state === "ask" || shown.state === "wait";
  return (
    <html lang={language}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <meta name="referrer" content="no-referrer" />
        <title>{heading}</title>
        <link rel="icon" href="data:," />
        <style dangerouslySetInnerHTML={{ __html: STYLE }} />
      </head>
      <body>
        <main>
          {shown.state === "ask" ? <Sender account={shown.account} words={words} /> : <Mark state={shown.state} />}
          <h1>{heading}</h1>
          <p>{shown.state === "unknown" ? words[text].replace("{word}", () => shown.stopWord) : words[text]}</p>
          {isOpen && <Buttons isTracked={shown.state === "wait" || shown.isTracked} words={words} />}
        </main>
        {isOpen && (
          <footer>
            <p>{words.forwarded}</p>
          </footer>
        )}
      </body>
    </html>
  );
}

function Sender({ account, words }: WordsProps & { readonly account: Known["account"] }): VNode | null {
  if (account === undefined) return null;
  const name = account.name.trim() === "" ? account.username : account.name;
  const [before = "", after = ""] = words.wrote.split("{account}");
  return (
    <div class="from">
      <span aria-hidden="true">{String.fromCodePoint(name.codePointAt(0)!)}</span>
      <div>
        <b dir="auto">{name}</b>
        {before}
        <bdi>@{account.username}</bdi>
        {after}
      </div>
    </div>
  );
}

function Mark({ state }: { readonly state: Shown["state"] }): VNode {
  const isDone = state === "stopped" || state === "untracked";
  return (
    <div class={isDone ? "mark" : "mark warn"}>
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <path d={isDone ? "M5 12.5l4.5 4.5L19 7.5" : "M12 7v6M12 17h.01"} />
      </svg>
    </div>
  );
}

/** The form has no address, so it posts to that of the page, which contains the code. */
function Buttons({ isTracked, words }: WordsProps & { readonly isTracked: boolean }): VNode {
  return (
    <form method="post">
      <button name="do" value="stop">
        {words.stop}
      </button>
      {isTracked && (
        <>
          <p>{words.tracked}</p>
          <button name="do" value="untrack">
            {words.untrack}
          </button>
        </>
      )}
    </form>
  );
}
