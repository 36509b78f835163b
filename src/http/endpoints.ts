import { Elysia } from "elysia";
import type { RoutePaths } from "../config/http.ts";
import { withSource } from "../config/tokens.ts";
import { showAccount, revokeAccount } from "../account/account.operations.ts";
import { discardDeliveries, retryDeliveries, settleDeliveries } from "../delivery/decisions.operations.ts";
import {
  listDeliveries,
  listDeliveryChannels,
  readDeliveryLag,
  resumeDeliveries,
  showDelivery,
} from "../delivery/delivery.operations.ts";
import { showClicks, showStats } from "../history/history.operations.ts";
import { listTokens } from "../privacy/tokens.operations.ts";
import { showResults } from "../history/results.operations.ts";
import { addLink, listLinks } from "../links/links.operations.ts";
import { listRuns, showQuota, stopRun } from "../outreach/outreach.operations.ts";
import { previewOutreach } from "../outreach/preview.operations.ts";
import { toOutreachRules } from "../outreach/run-rules.ts";
import { forgetClicks } from "../privacy/privacy.operations.ts";
import { createServiceReader } from "../projector/log-reader.ts";
import { showChange, showHistory } from "../recipients/audit.operations.ts";
import {
  forgetRecipient,
  listRecipients,
  recordRecipientConsent,
  releaseRecipient,
  retryRecipient,
  showRecipient,
  suppressRecipient,
} from "../recipients/recipients.operations.ts";
import type { Template } from "../template/template.ts";
import { createSlot } from "./access/load-shedding.ts";
import { feature, type AppDeps } from "./deps.ts";
import { accountEndpoints } from "./features/account.ts";
import { recipientEndpoints } from "./features/recipients.ts";
import { consoleEndpoints, sessionEndpoints } from "./features/console.ts";
import { directSendEndpoints } from "./features/send-to-channel.ts";
import { documentEndpoints } from "./features/api-reference.ts";
import { eventEndpoints, exportEndpoints } from "./features/events.ts";
import { healthEndpoints } from "./features/health.ts";
import { runEndpoints } from "./features/run.ts";
import { suppressionEndpoints } from "./features/suppressions.ts";
import { redirectEndpoints, trackingEndpoints } from "./features/clicks.ts";
import { verificationEndpoints } from "./features/verification.ts";
import { whatIfEndpoints } from "./features/what-if.ts";
import { repeatable } from "./server/problem.ts";
import { serveRead, serveWrite } from "./server/serve-operation.ts";
import { listEndpoints, type Endpoint, type Protection } from "./server/endpoint.ts";
import { addForms, readConfirmed } from "./server/form-routes.ts";

/** All features. A plugin declares and registers its endpoints; an endpoint that no plugin registers does not exist. */
export function features(deps: AppDeps) {
  return new Elysia({ name: "features" })
    .use(healthEndpoints(deps))
    .use(accountEndpoints(deps))
    .use(runEndpoints(deps))
    .use(readingOperations(deps))
    .use(writingOperations(deps))
    .use(directSendEndpoints(deps))
    .use(trackingEndpoints(deps))
    .use(redirectEndpoints(deps))
    .use(recipientEndpoints(deps))
    .use(suppressionEndpoints(deps))
    .use(verificationEndpoints(deps))
    .use(whatIfEndpoints(deps))
    .use(exportEndpoints(deps))
    .use(eventEndpoints(deps))
    .use(consoleEndpoints(deps))
    .use(sessionEndpoints(deps));
}

/** A history may read much of the log, so one is read at a time. */
const BUSY = "Another history is being read. Send the request again in a few seconds.";

/** A preview judges all recipients, so one is made at a time. */
const PREVIEW_BUSY = "Another preview is being made. Send the request again in a few seconds.";

/** The operations that read, a line each. */
function readingOperations(deps: AppDeps) {
  const context = () => openReader(deps);
  const histories = createSlot(BUSY);
  const previews = createSlot(PREVIEW_BUSY);
  return feature("reading-operations", "")
    .get("/api/tokens", ...serveRead(listTokens, context))
    .get("/social/stats", ...serveRead(showStats, context))
    .get("/social/quota", ...serveRead(showQuota, context))
    .get("/social/results", ...serveRead(showResults, context))
    .get("/social/runs", ...serveRead(listRuns, context))
    .get("/social/preview", ...serveRead(previewOutreach, context, previews.take))
    .get("/social/account", ...serveRead(showAccount, context))
    .get("/social/recipients", ...serveRead(listRecipients, context))
    .get("/api/audit/history", ...serveRead(showHistory, context, histories.take))
    .get("/api/audit/change", ...serveRead(showChange, context, histories.take))
    .get("/social/recipients/show", ...serveRead(showRecipient, context))
    .get("/api/links", ...serveRead(listLinks, context))
    .get("/api/clicks", ...serveRead(showClicks, context))
    .get("/api/deliveries", ...serveRead(listDeliveries, context))
    .get("/api/deliveries/lag", ...serveRead(readDeliveryLag, context))
    .get("/api/deliveries/channels", ...serveRead(listDeliveryChannels, context))
    .get("/api/deliveries/show", ...serveRead(showDelivery, context));
}

/** The operations that write, a line each. */
function writingOperations(deps: AppDeps) {
  const context = () => deps;
  const inParts = { form: {}, guard: repeatable };
  return feature("writing-operations", "")
    .post("/social/run/stop", ...serveWrite(stopRun, context, { status: 202, form: { path: "/console/run/stop" } }))
    .post("/social/account/unlink", ...serveWrite(revokeAccount, context, { guard: repeatable }))
    .post("/social/recipients/suppress", ...serveWrite(suppressRecipient, context, { form: {} }))
    .post("/social/recipients/retry", ...serveWrite(retryRecipient, context, { form: {} }))
    .post("/social/recipients/release", ...serveWrite(releaseRecipient, context, { form: {} }))
    .post("/social/recipients/consent", ...serveWrite(recordRecipientConsent, context, { form: {} }))
    .post("/social/recipients/forget", ...serveWrite(forgetRecipient, context, { form: { body: readConfirmed } }))
    .post("/api/links/add", ...serveWrite(addLink, context))
    .post("/api/tracking/forget", ...serveWrite(forgetClicks, context, { form: {} }))
    .post("/api/deliveries/retry", ...serveWrite(retryDeliveries, context, inParts))
    .post("/api/deliveries/discard", ...serveWrite(discardDeliveries, context, inParts))
    .post("/api/deliveries/settle", ...serveWrite(settleDeliveries, context, inParts))
    .post("/api/deliveries/resume", ...serveWrite(resumeDeliveries, context, { form: {} }));
}

/** Most events read for one figure of a channel, tens of milliseconds of work. */
const FIGURE_EVENTS_MAX = 10_000;

function openReader(deps: AppDeps) {
  const { eventLog, projector, past, clock, config, awaySince, delivery, encryptedLog, authentication } = deps;
  const { store } = eventLog;
  const { timezone } = config.outreach;
  return {
    config,
    rulesWith: async (template: Template) => toOutreachRules({ ...deps, keyring: encryptedLog.keyring }, template),
    configured: delivery.configured,
    eventsMax: FIGURE_EVENTS_MAX,
    tokens: () => withSource(authentication.list(), config.http),
    ...createServiceReader({ store, projector, past, clock, timezone, awaySince }),
  };
}

/**
 * Returns the table of endpoints, from plugins without dependencies: they touch none before a request comes. Takes 20
 * ms.
 */
export function describeEndpoints(): readonly Endpoint[] {
  const none = {} as AppDeps;
  const app = features(none).use(documentEndpoints(() => [], none));
  addForms(app, none);
  return listEndpoints(app);
}

/** Returns the paths that OPEN_ROUTES may open, and those that it may not. */
export function describePaths(): RoutePaths {
  const endpoints = describeEndpoints();
  const protectedBy = (...protections: Protection[]): string[] =>
    endpoints.filter(({ protection }) => protections.includes(protection)).map(({ path }) => path);
  return { openable: protectedBy("open", "strict"), guarded: protectedBy("token") };
}
