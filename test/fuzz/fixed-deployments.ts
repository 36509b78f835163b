import type { Fault } from "../../sandbox/faults.ts";

/** A service's settings and the faults of the networks around it. */
export interface Deployment {
  readonly name: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly faults: readonly Fault[];
}

export const WHOLE: Deployment = { name: "everything configured", settings: {}, faults: [] };

export const BARE: Deployment = {
  name: "only a token configured, and required everywhere",
  settings: {
    AUTH_POLICY: "strict",
    X_CLIENT_ID: "",
    X_CLIENT_SECRET: "",
    CHAT_WEBHOOK_URL: "",
    TELEGRAM_BOT_TOKEN: "",
    TELEGRAM_CHAT_ID: "",
    MESSAGE_TEMPLATE: "",
  },
  faults: [],
};

export const TROUBLED: Deployment = {
  name: "networks that fail in different ways",
  settings: { MESSAGE_TEMPLATE: "" },
  faults: [
    { network: "x", kind: "502_html" },
    { network: "slack", kind: "action_prohibited" },
    { network: "telegram", kind: "invalid_json" },
    { network: "meta", kind: "reset_before" },
  ],
};
