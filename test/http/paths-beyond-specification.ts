/**
 * Paths of the POST endpoints that the product's specification lacks; all require a token. Console, command line and
 * scripts use them.
 */
export const ACTIONS = [
  "/api/deliveries/resume",
  "/api/links/add",
  "/social/run/stop",
  "/social/lookup",
  "/social/settle",
  "/social/campaigns/create",
  "/social/campaigns/change",
  "/social/campaigns/end",
  "/social/account/unlink",
  "/api/deliveries/retry",
  "/api/deliveries/decide",
  "/api/deliveries/discard",
  "/api/deliveries/settle",
  "/social/recipients",
  "/social/recipients/preview",
  "/social/recipients/consent",
  "/social/recipients/suppress",
  "/social/recipients/retry",
  "/social/recipients/release",
  "/social/recipients/forget",
  "/social/suppressions",
  "/api/tracking/conversion",
  "/api/tracking/forget",
  "/api/audit/verify",
  "/api/what-if",
  "/api/report",
] as const;

/**
 * GET endpoints that the product's specification lacks: method, path and protection. Console, command line and scripts
 * use them.
 */
export const READINGS = [
  "GET /api/tokens session",
  "GET /social/preview session",
  "GET /api/deliveries/lag session",
  "GET /social/results session",
  "GET /social/quota session",
  "GET /social/runs session",
  "GET /social/campaigns session",
  "GET /social/campaigns/show session",
  "GET /social/campaigns/count session",
  "GET /social/account session",
  "GET /social/recipients session",
  "GET /social/recipients/show session",
  "GET /api/links session",
  "GET /api/clicks session",
  "GET /api/deliveries session",
  "GET /api/deliveries/channels session",
  "GET /api/deliveries/show session",
  "GET /api/audit/verify token",
  "GET /api/audit/head session",
  "GET /api/audit/proof/:event session",
  "GET /api/audit/history session",
  "GET /api/audit/change session",
  "GET /api/audit/export session",
  "GET /social/suppressions session",
  "GET /social/recipients/held session",
] as const;

/** The paths of `READINGS`. */
export const READ_PATHS = READINGS.map((reading) => reading.split(" ")[1] ?? "");
