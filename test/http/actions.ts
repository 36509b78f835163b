/** What operators do by the console, the command line and scripts, beside the specification's endpoints: all want a token. */
export const ACTIONS = [
  "/api/deliveries/resume",
  "/social/run/stop",
  "/api/deliveries/retry",
  "/api/deliveries/discard",
  "/social/recipients",
  "/social/recipients/suppress",
  "/social/recipients/retry",
  "/social/recipients/forget",
  "/api/tracking/forget",
] as const;
