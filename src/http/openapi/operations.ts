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
  readonly summary: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Headers that change what is done. */
  readonly takes?: readonly ("Idempotency-Key" | "Prefer" | "Accept")[];
  readonly body?: TSchema;
  readonly answers: Readonly<Record<number, Success>>;
  /** Beside those that any request may meet. */
  readonly problems: readonly (keyof typeof problems)[];
}

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
    summary: "Health, the run in progress and today's quota.",
    answers: { 200: { says: "How it is.", schema: answers.socialHealth } },
    problems: [],
  },
  "/social/auth": {
    summary: "Sends the browser to X, to authorize an account.",
    answers: { 302: { says: "To X.", headers: ["location", "set-cookie"] } },
    problems: ["xNotConfigured"],
  },
  "/social/callback": {
    summary: "Where X sends the browser back to.",
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
    summary: "The authorized X account, asked of X now.",
    answers: { 200: { says: "Who it is.", schema: answers.account } },
    problems: ["notAuthorized", "networkFailed"],
  },
  "/social/run": {
    summary: "Starts a run of the outreach agent.",
    takes: ["Idempotency-Key", "Prefer"],
    body: runBody,
    answers: {
      200: { says: "The run has ended.", schema: answers.runFinished, headers: ["ratelimit", "ratelimit-policy"] },
      202: { says: "The run has started.", schema: answers.runStarted, headers: ["ratelimit", "ratelimit-policy"] },
    },
    problems: [...KEYED, "notAuthorized", "running", "dailyLimit", "noTemplate"],
  },
  "/social/stats": {
    summary: "All-time counts of messages sent, skipped and failed.",
    answers: { 200: { says: "The counts.", schema: answers.stats } },
    problems: [],
  },
  "/api/health": {
    summary: "Health of the log and of each channel.",
    answers: {
      200: { says: "The log takes what comes.", schema: answers.apiHealth },
      503: { says: "It does not.", schema: answers.apiHealth },
    },
    problems: [],
  },
  "/api/notify": {
    summary: "Tells the team chat something.",
    takes: ["Idempotency-Key"],
    body: notifyBody,
    answers: sent,
    problems: SENT,
  },
  "/api/tracking/event": {
    summary: "Records a click; three networks are told of it.",
    takes: ["Idempotency-Key"],
    body: trackingBody,
    answers: { 202: { says: "The click is on disk.", schema: answers.recorded } },
    problems: KEYED,
  },
  "/api/tracking/test": {
    summary: "Sends a test message to each channel.",
    takes: ["Idempotency-Key"],
    body: emptyBody,
    answers: { 200: { says: "How each went.", schema: answers.tested } },
    problems: KEYED,
  },
  "/api/messaging": {
    summary: "Sends a message to the messaging service.",
    takes: ["Idempotency-Key"],
    body: messagingBody,
    answers: sent,
    problems: SENT,
  },
  "/openapi.json": {
    summary: "This document.",
    answers: {
      200: { says: "OpenAPI 3.1.", schema: Type.Object({ openapi: Type.String() }, { additionalProperties: true }) },
    },
    problems: [],
  },
  "/": {
    summary: "The operator's console.",
    answers: { 200: page, 401: { says: "The page that asks for a token.", isPage: true } },
    problems: [],
  },
  "/session": {
    summary: "Signs a browser in to the console.",
    body: signInBody,
    answers: {
      303: { says: "Signed in.", headers: ["location", "set-cookie"] },
      401: { says: "The page that asks for a token, again.", isPage: true },
    },
    problems: [...POSTED, "foreignSite"],
  },
};
