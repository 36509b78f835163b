/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ConfirmedAction } from "./action-form.tsx";
import type { View } from "./view.ts";

/** Erases what one address clicked: for whoever asks for that, and tells it. */
export function ForgetClicks({ view }: { readonly view: View }): VNode | null {
  return (
    <ConfirmedAction
      view={view}
      back="/links"
      action="/console/clicks/forget"
      label="Erase the clicks of an address"
      says="Address, user agent and query of its clicks can never be read again, nor the records of its wrong tokens; they stay counted. It cannot be undone. Not reached is what networks, chats and backups of the key file hold. On a big log it takes a while."
    >
      <label>
        IP address <input name="ip" required maxLength={45} pattern="[0-9a-fA-F.:]+" title="IPv4 or IPv6" />
      </label>{" "}
      <button>Erase its clicks for ever</button>
    </ConfirmedAction>
  );
}
