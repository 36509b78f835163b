/** @jsxImportSource preact */
import type { VNode } from "preact";
import { Field } from "../parts/action-form.tsx";
import { ConsoleDocument } from "../document.tsx";
import { A } from "../parts/links-forms-and-tabs.tsx";

interface SignInProps {
  /** Page to open after signing in. Undefined: the overview. */
  readonly back: string | undefined;
  /** Why the attempt before failed. Absent if the form is shown for the first time. */
  readonly failure?: "no token" | "plain http";
  readonly publicUrl: string;
}

/** Page on which a browser signs in with a token. */
export function signInPage({ back, failure, publicUrl }: SignInProps): VNode {
  return (
    <ConsoleDocument title="Sign in">
      <h1>Sign in with an API token</h1>
      {failure === "no token" ? (
        <p class="red" role="alert">
          That is not a token of this service.
        </p>
      ) : null}
      {failure === "plain http" ? (
        <p class="red" role="alert">
          The token is right, but this page came over plain http, where a browser keeps no session of a service whose{" "}
          <code>PUBLIC_URL</code> is https. Open <A href={publicUrl + (back ?? "/")}>{publicUrl}</A> instead.
        </p>
      ) : null}
      <form class="filter" method="post" action="/session">
        {back === undefined ? null : <input type="hidden" name="back" value={back} />}
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
