import { Type, type TSchema } from "@sinclair/typebox";
import type { problems } from "../problem.ts";
import { emptyBody, messagingBody, notifyBody, runBody, signInBody, trackingBody } from "../schemas.ts";
import * as answers from "./answers.ts";

/** One success, or another answer that is no problem. */
export interface Success {
  readonly says: string;
  /** JSON; absent: no body. */
  readonly schema?: TSchema;
  readonly isPage?: true;
  readonly headers?: readonly string[];
}

export interface Operation {
  /** By which generated clients call it. */
  readonly id: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Headers that change what is done. */
  readonly takes?: readonly ("Idempotency-Key" | "Prefer" | "Accept")[];
  readonly body?: TSchema;
  readonly answers: Readonly<Record<number, Success>>;
  /** Whether the day's quota is told beside its answers. */
  readonly tellsQuota?: true;
  /** Beside those that any request may meet. */
  readonly problems: readonly (keyof typeof problems)[];
}

/** What the operations are about. */
export const TAGS = {
  outreach: "The outreach agent, which sends direct messages on X.",
  tracking: "Clicks, notifications and messages, and the channels that are told of them.",
  service: "What an operator and a program need beside them.",
} as const;

const POSTED = ["malformed", "tooLarge", "unsupportedType", "invalid"] as const;
const KEYED = [...POSTED, "foreignSite", "keyReused", "keyExpired", "logUnavailable", "logInDoubt"] as const;
const SENT = [...KEYED, "notConfigured", "refusedByNetwork", "deliveryInDoubt"] as const;

const page: Success = { says: "The page.", isPage: true };
const sent = {
  200: { says: "The network took it.", schema: answers.delivered },
  202: { says: "It is being tried again.", schema: answers.pending },
};

/** What each path does, in the order in which it is documented. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "/social/health": {
    id: "getSocialHealth",
    tag: "outreach",
    summary: "Health, the run in progress and today's quota.",
    description:
      "Tells whether a run is in progress, whether an X account is authorized, and what is left of the day's messages.",
    answers: { 200: { says: "How it is.", schema: answers.socialHealth } },
    problems: [],
  },
  "/social/auth": {
    id: "startAuthorization",
    tag: "outreach",
    summary: "Sends the browser to X, to authorize an account.",
    description:
      "Starts the PKCE flow of OAuth 2.0. The browser keeps a cookie, without which its way back does not count.",
    answers: { 302: { says: "To X.", headers: ["location", "set-cookie"] } },
    problems: ["xNotConfigured"],
  },
  "/social/callback": {
    id: "finishAuthorization",
    tag: "outreach",
    summary: "Where X sends the browser back to.",
    description:
      "Exchanges the code for tokens, which are stored encrypted. A state counts once, for ten minutes, in the browser that began.",
    query: { state: "As it was given to X.", code: "From X.", error: "From X, when the person declined." },
    takes: ["Accept"],
    answers: {
      200: { says: "Authorized, for who asks for JSON.", schema: answers.linkedAccount },
      303: { says: "Authorized; to the console.", headers: ["location", "set-cookie"] },
    },
    problems: [
      "authorizationFailed",
      "notAuthorized",
      "wrongAccount",
      "networkFailed",
      "xNotConfigured",
      "logUnavailable",
      "logInDoubt",
    ],
  },
  "/social/me": {
    id: "getAuthorizedAccount",
    tag: "outreach",
    summary: "The authorized X account, asked of X now.",
    description: "Shows that the authorization still holds.",
    answers: { 200: { says: "Who it is.", schema: answers.account } },
    problems: ["notAuthorized", "networkFailed"],
  },
  "/social/run": {
    id: "startRun",
    tag: "outreach",
    summary: "Starts a run of the outreach agent.",
    description:
      "Sends direct messages to the recipients who are due, within the day's quota; one run at a time. A dry run sends nothing, and says whom a run would write to.",
    takes: ["Idempotency-Key", "Prefer"],
    tellsQuota: true,
    body: runBody,
    answers: {
      200: { says: "The run has ended.", schema: answers.runFinished, headers: ["ratelimit", "ratelimit-policy"] },
      202: { says: "The run has started.", schema: answers.runStarted, headers: ["ratelimit", "ratelimit-policy"] },
    },
    problems: [...KEYED, "notAuthorized", "running", "dailyLimit", "noTemplate"],
  },
  "/social/stats": {
    id: "getOutreachStats",
    tag: "outreach",
    summary: "All-time counts of messages sent, skipped and failed.",
    description: "Dry runs do not count.",
    answers: { 200: { says: "The counts.", schema: answers.stats } },
    problems: [],
  },
  "/api/health": {
    id: "getHealth",
    tag: "tracking",
    summary: "Health of the log and of each channel.",
    description: "Tells whether events can be recorded, and of each channel what waits and whether it is refused.",
    answers: {
      200: { says: "The log takes what comes.", schema: answers.apiHealth },
      503: { says: "It does not.", schema: answers.apiHealth },
    },
    problems: [],
  },
  "/api/notify": {
    id: "notify",
    tag: "tracking",
    summary: "Tells the team chat something.",
    description:
      "Waits five seconds for the network's answer. What is not delivered by then is tried again in the background.",
    takes: ["Idempotency-Key"],
    body: notifyBody,
    answers: sent,
    problems: SENT,
  },
  "/api/tracking/event": {
    id: "recordEvent",
    tag: "tracking",
    summary: "Records a click; three networks are told of it.",
    description:
      "Answered once the event is durable. The advertising network, the team chat and the messaging service are told afterwards.",
    takes: ["Idempotency-Key"],
    body: trackingBody,
    answers: { 202: { says: "The click is on disk.", schema: answers.recorded } },
    problems: KEYED,
  },
  "/api/tracking/test": {
    id: "testChannels",
    tag: "tracking",
    summary: "Sends a test message to each channel.",
    description: "One attempt each, for five seconds.",
    takes: ["Idempotency-Key"],
    body: emptyBody,
    answers: { 200: { says: "How each went.", schema: answers.tested } },
    problems: KEYED,
  },
  "/api/messaging": {
    id: "sendMessage",
    tag: "tracking",
    summary: "Sends a message to the messaging service.",
    description:
      "Waits five seconds for the network's answer. What is not delivered by then is tried again in the background.",
    takes: ["Idempotency-Key"],
    body: messagingBody,
    answers: sent,
    problems: SENT,
  },
  "/openapi.json": {
    id: "getDocument",
    tag: "service",
    summary: "This document.",
    description: "Made by the service itself, of what it checks by.",
    answers: {
      200: { says: "OpenAPI 3.1.", schema: Type.Object({ openapi: Type.String() }, { additionalProperties: true }) },
    },
    problems: [],
  },
  "/": {
    id: "getConsole",
    tag: "service",
    summary: "The operator's console.",
    description: "Shows the run, the quota and the deliveries; wants a token as soon as one is configured.",
    answers: { 200: page, 401: { says: "The page that asks for a token.", isPage: true } },
    problems: [],
  },
  "/session": {
    id: "signIn",
    tag: "service",
    summary: "Signs a browser in to the console.",
    description: "Takes a token from the console's form, and keeps it in a cookie of this browser.",
    body: signInBody,
    answers: {
      303: { says: "Signed in.", headers: ["location", "set-cookie"] },
      401: { says: "The page that asks for a token, again.", isPage: true },
    },
    problems: [...POSTED, "foreignSite"],
  },
};
