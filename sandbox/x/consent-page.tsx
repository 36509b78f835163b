/** @jsxImportSource preact */
import type { VNode } from "preact";
import { HtmlPage } from "../html.tsx";
import type { Person } from "./people.ts";

/** Name of the app, as it is registered with X. */
const APP_NAME = "reachlog (sandbox)";

interface ConsentView {
  /** Parameters of the request for authorization. The form sends them back. */
  readonly parameters: URLSearchParams;
  readonly accounts: readonly Person[];
  /** Permissions that the app requests, in words. */
  readonly abilities: readonly string[];
}

/** Renders the page on which a person authorizes the app. */
export function consentPage({ parameters, accounts, abilities }: ConsentView): VNode {
  return (
    <HtmlPage title="Authorize app">
      <main class="consent">
        <h1>{APP_NAME} wants to access your X account</h1>
        <form method="post" action="?">
          {[...parameters].map(([name, value]) => (
            <input type="hidden" name={name} value={value} />
          ))}
          <fieldset>
            <legend>As</legend>
            {accounts.map(({ id, username, name }, position) => (
              <label>
                <input type="radio" name="account" value={id} checked={position === 0} /> <bdi>{name}</bdi> (@{username}
                )
              </label>
            ))}
          </fieldset>
          <p>The app will be able to</p>
          <ul>
            {abilities.map((ability) => (
              <li>{ability}</li>
            ))}
          </ul>
          <button name="decision" value="authorize">
            Authorize app
          </button>{" "}
          <button name="decision" value="cancel">
            Cancel
          </button>
        </form>
      </main>
    </HtmlPage>
  );
}

/** Renders X's page for an unknown app or redirect address. */
export function sorryPage(): VNode {
  return (
    <HtmlPage title="Something went wrong">
      <main class="consent">
        <h1>Something went wrong</h1>
        <p>You weren't able to give access to the App. Go back and try logging in again.</p>
      </main>
    </HtmlPage>
  );
}
