/** @jsxImportSource preact */
import type { VNode } from "preact";
import { Field } from "../parts/action-form.tsx";
import { ConsoleDocument } from "../document.tsx";

/** Asks for a token once; `hasFailed`: what was given is none. */
export function signInPage(hasFailed: boolean): VNode {
  return (
    <ConsoleDocument title="Sign in">
      <h1>Sign in with an API token</h1>
      {hasFailed ? (
        <p class="red" role="alert">
          That is not a token of this service.
        </p>
      ) : null}
      <form class="filter" method="post" action="/session">
        <Field label="Token" name="token" type="password" autocomplete="current-password" autofocus required />
        <button class="primary">Sign in</button>
      </form>
      <h2>Where the token is</h2>
      <ul class="quiet">
        <li>
          <code>reachlog init</code> and the demo print a token once, in the line <code>token</code>.
        </li>
        <li>
          <code>reachlog token new NAME</code> creates one and shows it once, with the entry for <code>API_TOKENS</code>
          .
        </li>
        <li>
          <code>reachlog token new NAME --add</code> writes the entry to <code>API_TOKENS_FILE</code>, which a running
          service reads again.
        </li>
      </ul>
    </ConsoleDocument>
  );
}
