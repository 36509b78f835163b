import { hash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { requestedChannels } from "../../../events/dispatches-requested-by-events.ts";
import { positionsOf } from "../../../events/position-ranges.ts";
import { EVENT_ID, findEventNear, parseIdTime, positionBefore, toReading } from "../../history/find-event.ts";
import { CLOCKS_DIFFER_MS } from "../../links/conversion-attribution.ts";
import { eventsAt, inOrder, STREAMS, type NewEvent } from "../../log/event-log.ts";
import {
  isSameSecret,
  isSignedByMeta,
  readStatuses,
  whatsappNotice,
} from "../../networks/messaging/whatsapp-statuses.ts";
import { count } from "../../platform/common-schemas.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { whole } from "../server/http-response.ts";
import { readBytes, UNCHECKED, type RequestBody } from "../server/body.ts";
import { reply, route, textReply, type RequestContext } from "../server/endpoint.ts";
import { problems } from "../server/problem.ts";

/** Maximum number of bytes that Meta posts at once, by its documentation. */
const NOTICE_BYTES_MAX = 3 * 1024 * 1024;

/** Matches the header with Meta's signature. */
const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/** Creates the webhook to which Meta posts the later statuses of messages that WhatsApp accepted, such as `failed`. */
export function whatsappEndpoints(context: HttpContext) {
  const readSettings = () => {
    const { messaging } = context.config;
    if (messaging?.provider !== "whatsapp" || messaging.statuses === undefined) throw problems.wrongSignature();
    return { ...messaging.statuses, phoneNumberId: messaging.phoneNumberId };
  };
  const body: RequestBody<ReturnType<typeof readStatuses>> = {
    "~standard": UNCHECKED,
    schema: whatsappNotice,
    type: "application/json",
    async read(request) {
      // A request that cannot be Meta's is refused before its body takes memory.
      const { appSecret, phoneNumberId } = readSettings();
      const signature = request.headers.get("x-hub-signature-256") ?? "";
      if (!SIGNATURE.test(signature)) throw problems.wrongSignature();
      return readBytes(request, NOTICE_BYTES_MAX, (bytes) => {
        if (!isSignedByMeta(bytes, signature, appSecret)) throw problems.wrongSignature();
        return readStatuses(Buffer.from(bytes).toString(), phoneNumberId);
      });
    },
    fit: (value) => value as ReturnType<typeof readStatuses>,
  };
  return feature("whatsapp", "/api/messaging")
    .get(
      "/whatsapp",
      ({ call: { request } }) => {
        const { searchParams } = new URL(request.url);
        const isKnown = isSameSecret(searchParams.get("hub.verify_token") ?? "", readSettings().verifyToken);
        const challenge = searchParams.get("hub.challenge") ?? "";
        if (!isKnown || searchParams.get("hub.mode") !== "subscribe") throw problems.wrongSignature();
        const headers = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };
        return whole({ status: 200, headers, body: challenge });
      },
      route("verifyWhatsapp", "tracking", "open", {
        response: { 200: textReply("The challenge.", { mediaType: "text/plain" }) },
        summary: "Answers Meta's challenge when the webhook of WhatsApp's statuses is set up.",
        description: "Only if WHATSAPP_APP_SECRET and WHATSAPP_VERIFY_TOKEN are set.",
        query: { "hub.mode": "subscribe", "hub.verify_token": "WHATSAPP_VERIFY_TOKEN.", "hub.challenge": "Any text." },
        problems: ["wrongSignature"],
      }),
    )
    .post(
      "/whatsapp",
      async ({ body: read, call }) => {
        if (read === undefined) return { lost: 0, passed: 0, unknown: 1 };
        const counts = { recorded: 0, unknown: 0, early: 0 };
        for (const message of read.lost) counts[await recordLoss(context, message, call)] += 1;
        if (counts.early > 0) throw problems.notRecordedYet();
        return { lost: counts.recorded, passed: read.passed, unknown: counts.unknown };
      },
      route("recordWhatsappStatuses", "tracking", "open", {
        body,
        response: {
          200: reply("What is new is on disk.", Type.Object({ lost: count, passed: count, unknown: count })),
        },
        summary: "Records the messages that WhatsApp lost after it had accepted them.",
        description:
          "Meta signs the body with the app's secret (X-Hub-Signature-256). A repeat changes nothing. Other statuses, and those of messages that reachlog did not send, are not recorded.",
        problems: ["wrongSignature", "notRecordedYet"],
        anyOrigin: true,
      }),
    );
}

type Lost = NonNullable<ReturnType<typeof readStatuses>>["lost"][number];

/**
 * Records that WhatsApp lost a message, once even if Meta reports it repeatedly. Returns `unknown` if this log did not
 * send the message, and `early` if it may have sent it but has not recorded that yet.
 */
async function recordLoss(context: HttpContext, { messageId, dispatchId, detail }: Lost, call: RequestContext) {
  const carried = dispatchId !== undefined && EVENT_ID.test(dispatchId) ? await findCarried(context, dispatchId) : [];
  if (carried.length === 0) return isRecent(dispatchId, context.clock()) ? "early" : "unknown";
  // Only a keyed hash of the message's id goes into the log, because the id holds a telephone number.
  const [hashed = ""] = context.hashesOf({ id: messageId });
  const key = { key: `whatsapp/${hashed}`, digest: hash("sha256", hashed) };
  const lost: NewEvent[] = carried.map((event) => {
    const about =
      event.type === "DispatchRetryRequested"
        ? { event_id: event.data.event_id, source: event.data.source, retry: event.position }
        : { event_id: event.id, source: event.position };
    return { type: "DispatchLost", data: { ...about, channel: "messaging", detail } };
  });
  await context.eventIntake.append(lost, { metadata: call.metadata, key }, { stream: STREAMS.requests });
  return "recorded";
}

/** Maximum time in ms between the making of a digest's id and the record of its outcome. */
const OUTCOME_RECORDED_MS = 10 * 60_000;

/** Index of the version's digit in a UUID. */
const VERSION_AT = 14;

/**
 * True if the id is a UUIDv7, as reachlog makes them, from within {@link OUTCOME_RECORDED_MS} of `now`. The outcome of
 * the digest (a message that carries several clicks) with this id may then not be in the log yet.
 */
function isRecent(id: string | undefined, now: number): boolean {
  const isOurs = id !== undefined && EVENT_ID.test(id) && id[VERSION_AT] === "7";
  return isOurs && Math.abs(now - parseIdTime(id)) < OUTCOME_RECORDED_MS;
}

/** Maximum number of outcome events read to find a digest by its id. */
const DIGESTS_READ_MAX = 1_000;

/** Outcomes of messages that WhatsApp may have accepted. */
const MAY_HAVE_CARRIED = ["DispatchSucceeded", "DispatchInDoubt"];

/** Finds the events that a message carried: the one with this id, or those of the digest with this id. */
async function findCarried({ eventLog: { store } }: HttpContext, id: string): Promise<readonly Recorded[]> {
  const { position } = await store.head();
  const reading = toReading({ store, position });
  const event = await findEventNear(reading, id, CLOCKS_DIFFER_MS);
  if (event !== undefined) return requestedChannels(event).includes("messaging") ? [event] : [];
  const from = 1 + (await positionBefore(reading, parseIdTime(id) - CLOCKS_DIFFER_MS));
  const query = { stream: STREAMS.delivery("messaging"), types: MAY_HAVE_CARRIED, from, to: position };
  for await (const { type, data } of store.read({ ...query, limit: DIGESTS_READ_MAX })) {
    if (type !== "DispatchSucceeded" && type !== "DispatchInDoubt") continue;
    const request = data.requests.find(({ digest }) => digest === id);
    if (request !== undefined) return Array.fromAsync(eventsAt(store, inOrder(positionsOf(request.sources))));
  }
  return [];
}
