import { Type } from "@sinclair/typebox";
import type { EventLog } from "../../log/event-log.ts";
import { EVENT_ID, findAt, findEventNear, isEventName } from "../../history/find-event.ts";
import type { proveEvent } from "../../log/prove-event.ts";
import { lastVerification } from "../../log/last-verification.ts";
import type { SignedHead } from "../../log/sign-head-now.ts";
import type { LogVerifier } from "../../log/verifier.ts";
import type { Projector } from "../../projector/projector.ts";
import { json } from "../server/answer.ts";
import { jsonBody } from "../server/body.ts";
import { formOf } from "./console-form.ts";
import { post, type Operation } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";
import { closed, count, oneOf, orNull, text, time } from "./schema.ts";
import { wantReader, type Sessions } from "../access/session.ts";

export interface VerificationDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly sessions: Sessions;
  readonly verifier: LogVerifier;
  readonly signHead: () => Promise<SignedHead>;
  readonly proveEvent: (position: number) => ReturnType<typeof proveEvent>;
}

const position = count;

export const startVerification = post({
  id: "startVerification",
  tag: "service",
  summary: "Verifies the log.",
  description:
    "Recomputes the hash chain beside the service, on one core, and compares the log with the checkpoint beside it. One at " +
    "a time. What comes of it is an event, `LogVerified`, in the name of whoever asked.",
  body: jsonBody(Type.Object({}, closed)),
  answers: {
    202: {
      says: "It has begun.",
      schema: Type.Object({ status: Type.Literal("started"), position, started_at: time }),
    },
  },
  problems: ["verifying"],
  async handle({ verifier }: VerificationDeps, { metadata }) {
    const started = await verifier.start(metadata);
    if (started === undefined) throw problems.verifying();
    const { position: to, started_at } = started.progress;
    return json(202, { status: "started", position: to, started_at });
  },
});

export const startVerificationByForm = formOf(startVerification, {
  body: () => ({}),
  says: () => "The log is being verified.",
});

const running = Type.Object({
  caller: orNull(text("operator")),
  started_at: time,
  checked: count,
  position,
});

const last = Type.Object({
  caller: orNull(text("operator")),
  recorded_at: time,
  position,
  hash: text("2838d7387b857f9772f795978111477d32dc428fb0fbcaa8abb2989343ef61de"),
  checked: count,
  result: oneOf("whole", "broken"),
  fault: Type.Optional(text("the hash of the event at 17 is another one")),
  broken_position: Type.Optional(position),
});

export const showVerification: Operation<VerificationDeps> = {
  id: "showVerification",
  tag: "service",
  summary: "How far the verification of the log is, and what came of the last one.",
  description:
    "`checked` of `position` events were found good so far. `last` is what the newest event `LogVerified` says: how far " +
    "the log was `whole`, or what was found `broken`.",
  answers: {
    200: { says: "Both, where there is one.", schema: Type.Object({ running: orNull(running), last: orNull(last) }) },
  },
  problems: [],
  async handle({ eventLog, projector, verifier }) {
    const { progress } = verifier;
    const event = await lastVerification(eventLog.store, projector.position);
    return json(200, {
      running: progress === undefined ? null : { ...progress, caller: progress.caller ?? null },
      last: event === undefined ? null : { caller: event.meta.caller ?? null, recorded_at: event.time, ...event.data },
    });
  },
};

export const downloadHead: Operation<VerificationDeps> = {
  id: "downloadHead",
  tag: "service",
  summary: "Signs the log's position and hash as they are now.",
  description:
    "In the form of a C2SP checkpoint. Kept where whoever can write the log cannot write, it proves later that the log " +
    "still holds all of it (`reachlog audit verify --head`). Wants a token or a console's session as soon as a token is " +
    "configured.",
  answers: { 200: { says: "The signed head.", mediaType: "text/plain", headers: ["content-disposition"] } },
  problems: ["contradicted"],
  async handle({ sessions, signHead }, { request, metadata }) {
    wantReader(sessions, request, metadata);
    const signed = await signHead();
    if ("loss" in signed) throw problems.contradicted();
    const headers = {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "content-disposition": 'attachment; filename="reachlog-head.txt"',
    };
    return { status: 200, headers, body: signed.note };
  },
};

export const downloadProof: Operation<VerificationDeps> = {
  id: "downloadProof",
  tag: "service",
  summary: "Proves one event to a reader who does not have the log.",
  description:
    "A C2SP tlog-proof: the event's bytes as they are stored, their place in the Merkle tree, and the signed head of that " +
    "tree. `reachlog audit check` checks it without the log. Personal data in it stays encrypted, so it stays valid after an " +
    "erasure. Wants a token or a console's session as soon as a token is configured.",
  parameters: { event: "The event's id or its position." },
  answers: { 200: { says: "The proof.", mediaType: "text/plain", headers: ["content-disposition"] } },
  problems: ["invalid", "notFound", "contradicted"],
  async handle({ sessions, eventLog: { store }, proveEvent: prove }, { request, metadata, parameters }) {
    wantReader(sessions, request, metadata);
    const { event: name = "" } = parameters;
    const reading = { store, to: (await store.head()).position, onProgress() {} };
    if (!isEventName(name))
      throw problems.invalid([{ path: "event", message: "Expected the id or position of an event" }]);
    const event = await (EVENT_ID.test(name) ? findEventNear(reading, name.toLowerCase()) : findAt(reading, name));
    if (event === undefined) throw problems.notFound();
    const proved = await prove(event.position);
    if ("loss" in proved) throw problems.contradicted();
    const headers = {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "content-disposition": `attachment; filename="event-${event.position}.tlog-proof"`,
    };
    return { status: 200, headers, body: proved.proof };
  },
};
