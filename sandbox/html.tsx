/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { renderToString } from "preact-render-to-string";

interface HtmlPageProps {
  readonly title: string;
  /** Path of the sandbox's script for this page, if it has one. */
  readonly script?: string;
  readonly children: ComponentChildren;
}

/** Frame of an HTML page. */
export function HtmlPage({ title, script, children }: HtmlPageProps): VNode {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/sandbox.css" />
        {script === undefined ? null : <script type="module" src={script} />}
      </head>
      <body>{children}</body>
    </html>
  );
}

/**
 * Content security policy. It allows only the sandbox's own files and no inline scripts, because a page shows messages
 * that services sent.
 */
const OWN_FILES =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

interface AnswerOptions {
  readonly status?: number;
  /** Allowed targets of the page's forms, including redirects; if absent, all. */
  readonly formAction?: "'self'";
}

/** Answers with a whole HTML document. */
export function pageAnswer(page: VNode, { status = 200, formAction }: AnswerOptions = {}): Response {
  return new Response(`<!doctype html>${renderToString(page)}`, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy": formAction === undefined ? OWN_FILES : `${OWN_FILES}; form-action ${formAction}`,
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
    },
  });
}
