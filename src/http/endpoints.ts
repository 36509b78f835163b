import type { RoutePaths } from "../config/http.ts";
import { finishAuthorization, showAccount, startAuthorization, type AccountDeps } from "./features/account.ts";
import type { FormDeps } from "./features/console-form.ts";
import {
  idiomorph,
  script,
  showAudit,
  showDeliveries,
  showEvent,
  showFound,
  showLink,
  showLinks,
  showOverview,
  showPeople,
  showPerson,
  showRun,
  showSetup,
  showVariants,
  stylesheet,
  type ConsoleDeps,
} from "./features/console.ts";
import {
  discardDeliveries,
  discardDeliveriesByForm,
  resumeDeliveries,
  resumeDeliveriesByForm,
  retryDeliveries,
  retryDeliveriesByForm,
  type DeliveriesDeps,
} from "./features/deliveries.ts";
import { notify, sendMessage, testChannels, testChannelsByForm, type DirectSendDeps } from "./features/direct-sends.ts";
import type { Endpoint, Protection } from "./server/endpoint.ts";
import { followEvents, type EventsDeps } from "./features/events.ts";
import { exportEvents, type ExportDeps } from "./features/export.ts";
import { forgetByForm, forgetClicks, forgetClicksByForm, forgetRecipient, type ForgetDeps } from "./features/forget.ts";
import { outreachHealth, serviceHealth, type OutreachHealthDeps, type ServiceHealthDeps } from "./features/health.ts";
import { importByForm } from "./features/import-form.ts";
import { showMetrics, type MetricsDeps } from "./features/metrics.ts";
import { showDocument, showReference, type DocumentDeps } from "./server/openapi.ts";
import { livez, readyz, type ReadinessDeps } from "./features/probes.ts";
import {
  importList,
  retryByForm,
  retryRecipient,
  suppressByForm,
  suppressRecipient,
  type RecipientsDeps,
} from "./features/recipients.ts";
import {
  dryRunByForm,
  startRun,
  startRunByForm,
  type RunDeps,
  stopRun,
  stopRunByForm,
  type StopRunDeps,
} from "./features/run.ts";
import { signIn, signOut, type SignInDeps } from "./features/sign-in.ts";
import { showStats, type StatsDeps } from "./features/stats.ts";
import { trackClick, type TrackingDeps } from "./features/tracking.ts";
import {
  downloadHead,
  downloadProof,
  showVerification,
  startVerification,
  startVerificationByForm,
  type VerificationDeps,
} from "./features/verification.ts";

/** What the handlers need, all together. */
export type EndpointDeps = AccountDeps &
  ConsoleDeps &
  DeliveriesDeps &
  DirectSendDeps &
  DocumentDeps &
  EventsDeps &
  ExportDeps &
  ForgetDeps &
  FormDeps &
  MetricsDeps &
  OutreachHealthDeps &
  ReadinessDeps &
  RecipientsDeps &
  RunDeps &
  ServiceHealthDeps &
  SignInDeps &
  StatsDeps &
  StopRunDeps &
  TrackingDeps &
  VerificationDeps;

/**
 * Every endpoint there is; what is not here does not exist. The router, 404 and 405 with `Allow`, who is asked for a token,
 * what OPEN_ROUTES may open, and the OpenAPI document come from it. Another endpoint is another line here and its operation
 * in the file of its feature.
 */
export const ENDPOINTS: readonly Endpoint<EndpointDeps>[] = [
  { method: "GET", path: "/social/health", protection: "open", always: true, operation: outreachHealth },
  { method: "GET", path: "/social/auth", protection: "open", operation: startAuthorization },
  { method: "GET", path: "/social/callback", protection: "open", operation: finishAuthorization },
  { method: "GET", path: "/social/me", protection: "strict", operation: showAccount },
  { method: "POST", path: "/social/run", protection: "strict", operation: startRun },
  { method: "GET", path: "/social/stats", protection: "strict", operation: showStats },
  { method: "GET", path: "/api/health", protection: "open", always: true, operation: serviceHealth },
  { method: "POST", path: "/api/notify", protection: "strict", operation: notify },
  { method: "POST", path: "/api/tracking/event", protection: "strict", operation: trackClick },
  { method: "POST", path: "/api/tracking/test", protection: "token", operation: testChannels },
  { method: "POST", path: "/api/messaging", protection: "token", operation: sendMessage },
  { method: "POST", path: "/api/deliveries/resume", protection: "token", operation: resumeDeliveries },
  { method: "POST", path: "/social/run/stop", protection: "token", operation: stopRun },
  { method: "POST", path: "/api/deliveries/retry", protection: "token", operation: retryDeliveries },
  { method: "POST", path: "/api/deliveries/discard", protection: "token", operation: discardDeliveries },
  { method: "POST", path: "/social/recipients", protection: "token", operation: importList },
  { method: "POST", path: "/social/recipients/suppress", protection: "token", operation: suppressRecipient },
  { method: "POST", path: "/social/recipients/retry", protection: "token", operation: retryRecipient },
  { method: "POST", path: "/social/recipients/forget", protection: "token", operation: forgetRecipient },
  { method: "POST", path: "/api/tracking/forget", protection: "token", operation: forgetClicks },
  { method: "POST", path: "/api/audit/verify", protection: "token", operation: startVerification },
  { method: "GET", path: "/api/audit/verify", protection: "token", operation: showVerification },
  { method: "GET", path: "/api/audit/head", protection: "session", operation: downloadHead },
  { method: "GET", path: "/api/audit/proof/:event", protection: "session", operation: downloadProof },
  { method: "GET", path: "/api/audit/export", protection: "session", operation: exportEvents },
  { method: "GET", path: "/livez", protection: "open", always: true, anyHost: true, operation: livez },
  { method: "GET", path: "/readyz", protection: "open", always: true, anyHost: true, operation: readyz },
  { method: "GET", path: "/metrics", protection: "session", always: true, operation: showMetrics },
  { method: "GET", path: "/openapi.json", protection: "open", operation: showDocument },
  { method: "GET", path: "/docs", protection: "open", operation: showReference },
  { method: "GET", path: "/events", protection: "session", operation: followEvents },
  { method: "GET", path: "/", protection: "session", operation: showOverview },
  { method: "GET", path: "/runs/:run_id", protection: "session", operation: showRun },
  { method: "GET", path: "/people", protection: "session", operation: showPeople },
  { method: "GET", path: "/people/:id", protection: "session", operation: showPerson },
  { method: "GET", path: "/links", protection: "session", operation: showLinks },
  { method: "GET", path: "/links/:domain/:short_code", protection: "session", operation: showLink },
  { method: "GET", path: "/deliveries", protection: "session", operation: showDeliveries },
  { method: "GET", path: "/variants", protection: "session", operation: showVariants },
  { method: "GET", path: "/audit", protection: "session", operation: showAudit },
  { method: "GET", path: "/find", protection: "session", operation: showFound },
  { method: "GET", path: "/audit/:position", protection: "session", operation: showEvent },
  { method: "GET", path: "/setup", protection: "session", operation: showSetup },
  { method: "GET", path: "/console.css", protection: "open", operation: stylesheet },
  { method: "GET", path: "/console.js", protection: "open", operation: script },
  { method: "GET", path: "/idiomorph.js", protection: "open", operation: idiomorph },
  { method: "POST", path: "/console/deliveries/resume", protection: "form", operation: resumeDeliveriesByForm },
  { method: "POST", path: "/console/deliveries/retry", protection: "form", operation: retryDeliveriesByForm },
  { method: "POST", path: "/console/deliveries/discard", protection: "form", operation: discardDeliveriesByForm },
  { method: "POST", path: "/console/run/dry", protection: "form", operation: dryRunByForm },
  { method: "POST", path: "/console/run/start", protection: "form", operation: startRunByForm },
  { method: "POST", path: "/console/run/stop", protection: "form", operation: stopRunByForm },
  { method: "POST", path: "/console/recipients", protection: "form", operation: importByForm },
  { method: "POST", path: "/console/recipients/suppress", protection: "form", operation: suppressByForm },
  { method: "POST", path: "/console/recipients/retry", protection: "form", operation: retryByForm },
  { method: "POST", path: "/console/recipients/forget", protection: "form", operation: forgetByForm },
  { method: "POST", path: "/console/clicks/forget", protection: "form", operation: forgetClicksByForm },
  { method: "POST", path: "/console/audit/verify", protection: "form", operation: startVerificationByForm },
  { method: "POST", path: "/console/channels/test", protection: "form", operation: testChannelsByForm },
  { method: "POST", path: "/session", protection: "open", operation: signIn },
  { method: "POST", path: "/session/end", protection: "form", operation: signOut },
];

const pathsOf = (...protections: Protection[]): string[] =>
  ENDPOINTS.filter(({ protection }) => protections.includes(protection)).map(({ path }) => path);

/** What an operator may open by OPEN_ROUTES, and what not. */
export const ROUTE_PATHS: RoutePaths = { openable: pathsOf("open", "strict"), guarded: pathsOf("token") };
