/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ConsoleDocument } from "./document.tsx";

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
        <label>
          Token <input name="token" type="password" autocomplete="current-password" autofocus required />
        </label>
        <button>Sign in</button>
      </form>
      <p class="quiet">
        Tokens are in <code>API_TOKENS</code> or <code>API_TOKENS_FILE</code>; <code>reachlog token new</code> makes
        one.
      </p>
    </ConsoleDocument>
  );
}
