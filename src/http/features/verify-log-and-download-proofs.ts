import { Type } from "@sinclair/typebox";
import { EVENT_ID, findAt, findEventNear, isEventName } from "../../history/find-event.ts";
import { findLast } from "../../log/event-log.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { attachment, whole } from "../server/http-response.ts";
import { objectBody } from "../server/body.ts";
import { route, reply, textReply } from "../server/endpoint.ts";
import { appendedOrNothing, problems } from "../server/problem.ts";
import { count, oneOf, orNull, text, time } from "../../platform/common-schemas.ts";
import { proveEvent, signHeadNow } from "../../log/sign-heads-and-prove-events.ts";

const position = count;

const begun = Type.Object({ status: Type.Literal("started"), position, started_at: time });

const running = Type.Object({ caller: orNull(text("operator")), started_at: time, checked: count, position });

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

export function verificationEndpoints({ clock, encryptedLog, eventLog, projector, verifier }: HttpContext) {
  return feature("verification", "/api/audit")
    .post(
      "/verify",
      async ({ call, status }) => {
        const started = await appendedOrNothing(verifier.start(call.metadata));
        if (started === undefined) throw problems.verifying();
        const { position: to, started_at } = started.progress;
        return status(202, { status: "started", position: to, started_at });
      },
      route("startVerification", "service", ["token", "admin"], {
        body: objectBody({}),
        response: { 202: reply("Started.", begun) },
        summary: "Verifies the log.",
        description:
          "Recomputes the hash chain beside the service, on one core, and compares the log with the checkpoint beside it. One at " +
          "a time. The result is an event, `LogVerified`, in the caller's name.",
        problems: ["verifying"],
        form: { path: "/console/audit/verify", notice: () => "The log is being verified." },
      }),
    )
    .get(
      "/verify",
      async () => {
        const { progress } = verifier;
        const event = await findLast(eventLog.store, "LogVerified", projector.position);
        const caller = event?.meta.caller ?? null;
        return {
          running: progress === undefined ? null : { ...progress, caller: progress.caller ?? null },
          last: event === undefined ? null : { caller, recorded_at: event.time, ...event.data },
        };
      },
      route("showVerification", "service", ["token", "read"], {
        response: {
          200: reply(
            "The progress and the last result.",
            Type.Object({ running: orNull(running), last: orNull(last) }),
          ),
        },
        personalRead: false,
        summary: "The progress of a verification, and the result of the last one.",
        description:
          "`checked` of `position` events are good so far. `last` is the newest event `LogVerified`: how far the log was " +
          "`whole`, or where it was `broken`.",
      }),
    )
    .get(
      "/head",
      async () => {
        const signed = await signHeadNow(eventLog.store, encryptedLog.checkpoints, clock);
        if ("loss" in signed) throw problems.contradicted();
        return download("reachlog-head.txt", signed.note);
      },
      route("downloadHead", "service", ["session", "read"], {
        response: { 200: textReply("The signed head.", { mediaType: "text/plain", headers: ["content-disposition"] }) },
        personalRead: false,
        summary: "Signs the log's position and hash as they are now.",
        description:
          "A C2SP checkpoint. Store it where writers of the log cannot change it: it proves later that the log " +
          "still holds all of it (`reachlog audit verify --head`). Needs a token or a console session once a token is " +
          "configured.",
        problems: ["contradicted"],
      }),
    )
    .get(
      "/proof/:event",
      async ({ params: { event: name } }) => {
        const { store } = eventLog;
        const reading = { store, to: (await store.head()).position, onProgress() {} };
        if (!isEventName(name))
          throw problems.invalid([{ path: "event", message: "Expected the id or position of an event" }]);
        const event = await (EVENT_ID.test(name) ? findEventNear(reading, name.toLowerCase()) : findAt(reading, name));
        if (event === undefined) throw problems.notFound();
        const proved = await proveEvent(eventLog.store, encryptedLog.checkpoints, clock, event.position);
        if ("loss" in proved) throw problems.contradicted();
        return download(`event-${event.position}.tlog-proof`, proved.proof);
      },
      route("downloadProof", "service", ["session", "read"], {
        response: { 200: textReply("The proof.", { mediaType: "text/plain", headers: ["content-disposition"] }) },
        personalRead: false,
        summary: "Proves one event to a reader who does not have the log.",
        description:
          "A C2SP tlog-proof: the event's bytes as they are stored, their place in the Merkle tree, and the signed head of that " +
          "tree. `reachlog audit check` checks it without the log. Personal data in it stays encrypted, so it stays valid after an " +
          "erasure. Needs a token or a console session once a token is configured.",
        parameters: { event: "The event's id or its position." },
        problems: ["invalid", "notFound", "contradicted"],
      }),
    );
}

function download(file: string, body: string) {
  return whole({ status: 200, headers: attachment("text/plain; charset=utf-8", file), body });
}
