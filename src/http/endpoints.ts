import { Elysia } from "elysia";
import type { RoutePaths } from "../config/http.ts";
import { withSource } from "../config/parse-api-tokens.ts";
import { showAccount, revokeAccount } from "../account/account.operations.ts";
import {
  decideDeliveries,
  discardDeliveries,
  retryDeliveries,
  settleDeliveries,
} from "../delivery/retry-discard-settle.operations.ts";
import {
  listDeliveries,
  listDeliveryChannels,
  readDeliveryLag,
  resumeDeliveries,
  showDelivery,
} from "../delivery/deliveries-lag-and-resume.operations.ts";
import { showClicks, showStats } from "../history/stats-and-clicks.operations.ts";
import { listTokens } from "../privacy/list-api-tokens.operations.ts";
import { showResults } from "../history/results.operations.ts";
import { addLink, listLinks } from "../links/links.operations.ts";
import { listRuns, settleMessages, showQuota, stopRun } from "../outreach/quota-runs-and-settling.operations.ts";
import {
  changeCampaign,
  countCampaign,
  createCampaign,
  endCampaign,
  listCampaigns,
  showCampaign,
} from "../outreach/campaigns/campaigns.operations.ts";
import { previewOutreach } from "../outreach/preview.operations.ts";
import { sendReport } from "../outreach/report/send-team-report.operations.ts";
import { toOutreachRules } from "../outreach/run-rules.ts";
import { forgetClicks } from "../privacy/forget-clicks-of-address.operations.ts";
import { createServiceReader } from "../projector/operation-states-as-of.ts";
import { showChange, showHistory } from "../recipients/history-and-event-effects.operations.ts";
import {
  forgetRecipient,
  listRecipients,
  recordRecipientConsent,
  releaseRecipient,
  retryRecipient,
  showRecipient,
  suppressRecipient,
} from "../recipients/recipients.operations.ts";
import { createSlot } from "./access/limit-requests-and-streams.ts";
import { feature, type HttpContext } from "./http-context.ts";
import { conversionEndpoints } from "./features/conversions.ts";
import { accountEndpoints } from "./features/authorize-and-show-x-account.ts";
import { recipientEndpoints } from "./features/import-and-held-recipients.ts";
import { consoleEndpoints, sessionEndpoints } from "./features/console.ts";
import { directSendEndpoints } from "./features/send-to-channel.ts";
import { documentEndpoints } from "./features/api-reference.ts";
import { optOutEndpoints } from "./features/opt-out.ts";
import { eventEndpoints, exportEndpoints } from "./features/stream-and-export-events.ts";
import { healthEndpoints } from "./features/health-probes-and-metrics.ts";
import { runEndpoints } from "./features/start-run-and-message-lookup.ts";
import { suppressionEndpoints } from "./features/import-and-export-suppressions.ts";
import { redirectEndpoints, trackingEndpoints } from "./features/record-click-and-redirect.ts";
import { verificationEndpoints } from "./features/verify-log-and-download-proofs.ts";
import { whatsappEndpoints } from "./features/whatsapp-statuses.ts";
import { whatIfEndpoints } from "./features/what-if.ts";
import { repeatable } from "./server/problem.ts";
import { serveRead, serveWrite } from "./server/serve-operation.ts";
import { listEndpoints, type Endpoint, type Protection } from "./server/endpoint.ts";
import { addForms, readAnswers, readCampaignFields, readConfirmed } from "./server/form-routes.ts";

/** Returns the plugins of all features. Each plugin declares and registers its endpoints. */
export function features(context: HttpContext) {
  return new Elysia({ name: "features" })
    .use(healthEndpoints(context))
    .use(accountEndpoints(context))
    .use(runEndpoints(context))
    .use(readingOperations(context))
    .use(writingOperations(context))
    .use(directSendEndpoints(context))
    .use(whatsappEndpoints(context))
    .use(trackingEndpoints(context))
    .use(conversionEndpoints(context))
    .use(redirectEndpoints(context))
    .use(optOutEndpoints(context))
    .use(recipientEndpoints(context))
    .use(suppressionEndpoints(context))
    .use(verificationEndpoints(context))
    .use(whatIfEndpoints(context))
    .use(exportEndpoints(context))
    .use(eventEndpoints(context))
    .use(consoleEndpoints(context))
    .use(sessionEndpoints(context));
}

/**
 * Message for a caller whose request for a history is refused. Only one history is read at a time, because it may read
 * much of the log.
 */
const BUSY = "Another history is being read. Send the request again in a few seconds.";

/**
 * Message for a caller whose preview of a run is refused. Only one preview is made at a time, because it judges all
 * recipients.
 */
const PREVIEW_BUSY = "Another preview is being made. Send the request again in a few seconds.";

/** Registers the operations that read, one route each. */
function readingOperations(context: HttpContext) {
  const reader = () => openReader(context);
  const histories = createSlot(BUSY);
  const previews = createSlot(PREVIEW_BUSY);
  return feature("reading-operations", "")
    .get("/api/tokens", ...serveRead(listTokens, reader))
    .get("/social/stats", ...serveRead(showStats, reader))
    .get("/social/quota", ...serveRead(showQuota, reader))
    .get("/social/results", ...serveRead(showResults, reader))
    .get("/social/runs", ...serveRead(listRuns, reader))
    .get("/social/preview", ...serveRead(previewOutreach, reader, previews.take))
    .get("/social/campaigns", ...serveRead(listCampaigns, reader))
    .get("/social/campaigns/show", ...serveRead(showCampaign, reader))
    .get("/social/campaigns/count", ...serveRead(countCampaign, reader, previews.take))
    .get("/social/account", ...serveRead(showAccount, reader))
    .get("/social/recipients", ...serveRead(listRecipients, reader))
    .get("/api/audit/history", ...serveRead(showHistory, reader, histories.take))
    .get("/api/audit/change", ...serveRead(showChange, reader, histories.take))
    .get("/social/recipients/show", ...serveRead(showRecipient, reader))
    .get("/api/links", ...serveRead(listLinks, reader))
    .get("/api/clicks", ...serveRead(showClicks, reader))
    .get("/api/deliveries", ...serveRead(listDeliveries, reader))
    .get("/api/deliveries/lag", ...serveRead(readDeliveryLag, reader))
    .get("/api/deliveries/channels", ...serveRead(listDeliveryChannels, reader))
    .get("/api/deliveries/show", ...serveRead(showDelivery, reader));
}

/** Registers the operations that write, one route each. */
function writingOperations(context: HttpContext) {
  const given = () => context;
  const inParts = { form: {}, guard: repeatable };
  const campaignForm = {
    body: readCampaignFields,
    warnsAbout: ({ campaign: { name } }: { readonly campaign: { readonly name: string } }) => `Campaign ${name}`,
  };
  return feature("writing-operations", "")
    .post("/social/run/stop", ...serveWrite(stopRun, given, { status: 202, form: { path: "/console/run/stop" } }))
    .post("/api/report", ...serveWrite(sendReport, given, { status: 202 }))
    .post("/social/settle", ...serveWrite(settleMessages, given, { form: { path: "/console/outreach/settle" } }))
    .post("/social/account/unlink", ...serveWrite(revokeAccount, given, { guard: repeatable }))
    .post("/social/recipients/suppress", ...serveWrite(suppressRecipient, given, { form: {} }))
    .post("/social/recipients/retry", ...serveWrite(retryRecipient, given, { form: {} }))
    .post("/social/recipients/release", ...serveWrite(releaseRecipient, given, { form: {} }))
    .post("/social/recipients/consent", ...serveWrite(recordRecipientConsent, given, { form: {} }))
    .post("/social/recipients/forget", ...serveWrite(forgetRecipient, given, { form: { body: readConfirmed } }))
    .post("/social/campaigns/create", ...serveWrite(createCampaign, given, { form: campaignForm }))
    .post("/social/campaigns/change", ...serveWrite(changeCampaign, given, { form: campaignForm }))
    .post("/social/campaigns/end", ...serveWrite(endCampaign, given, { form: {} }))
    .post("/api/links/add", ...serveWrite(addLink, given))
    .post("/api/tracking/forget", ...serveWrite(forgetClicks, given, { form: {} }))
    .post("/api/deliveries/retry", ...serveWrite(retryDeliveries, given, inParts))
    .post("/api/deliveries/discard", ...serveWrite(discardDeliveries, given, inParts))
    .post("/api/deliveries/settle", ...serveWrite(settleDeliveries, given, inParts))
    .post(
      "/api/deliveries/decide",
      ...serveWrite(decideDeliveries, given, { form: { body: readAnswers }, guard: repeatable }),
    )
    .post("/api/deliveries/resume", ...serveWrite(resumeDeliveries, given, { form: {} }));
}

/**
 * Maximum number of events that are read to compute one number about a channel, such as its rate. Reading them takes
 * tens of milliseconds.
 */
const FIGURE_EVENTS_MAX = 10_000;

function openReader(context: HttpContext) {
  const { eventLog, projector, past, clock, config, awaySince, delivery, authentication } = context;
  const { store } = eventLog;
  const { timezone } = config.outreach;
  return {
    config,
    commonRules: async () => toOutreachRules(context),
    configured: delivery.configured,
    eventsMax: FIGURE_EVENTS_MAX,
    tokens: () => withSource(authentication.list(), config.http),
    ...createServiceReader({ store, projector, past, clock, timezone, awaySince }),
  };
}

/**
 * Returns the declarations of all endpoints, in 20 ms. The plugins are made without a context, which they use only when
 * a request arrives.
 */
export function describeEndpoints(): readonly Endpoint[] {
  const none = {} as HttpContext;
  const app = features(none).use(documentEndpoints(() => [], none));
  addForms(app, none);
  return listEndpoints(app);
}

/** Returns the paths that the setting OPEN_ROUTES may open to callers without a token, and those that it may not. */
export function describePaths(): RoutePaths {
  const endpoints = describeEndpoints();
  const protectedBy = (...protections: Protection[]): string[] =>
    endpoints.filter(({ protection }) => protections.includes(protection)).map(({ path }) => path);
  return { openable: protectedBy("open", "strict"), guarded: protectedBy("token") };
}
