/** How a path is protected: `token` always, `strict` when the policy says so, `open` never, `session` like the console. */
export type Protection = "open" | "strict" | "token" | "session";

export interface Route {
  readonly method: "GET" | "POST";
  readonly protection: Protection;
  /** What a page's form posts; all other bodies are JSON. */
  readonly form?: true;
  /** Answered however busy the service is: a supervisor asks it whether to start the service anew. */
  readonly always?: true;
}

/** Every path there is, with its one method and its protection. What is not here does not exist. */
export const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ["/social/health", { method: "GET", protection: "open", always: true }],
  ["/social/auth", { method: "GET", protection: "open" }],
  ["/social/callback", { method: "GET", protection: "open" }],
  ["/social/me", { method: "GET", protection: "strict" }],
  ["/social/run", { method: "POST", protection: "strict" }],
  ["/social/stats", { method: "GET", protection: "strict" }],
  ["/api/health", { method: "GET", protection: "open", always: true }],
  ["/api/notify", { method: "POST", protection: "strict" }],
  ["/api/tracking/event", { method: "POST", protection: "strict" }],
  ["/api/tracking/test", { method: "POST", protection: "token" }],
  ["/api/messaging", { method: "POST", protection: "token" }],
  ["/openapi.json", { method: "GET", protection: "open" }],
  ["/", { method: "GET", protection: "session" }],
  ["/session", { method: "POST", protection: "open", form: true }],
]);
