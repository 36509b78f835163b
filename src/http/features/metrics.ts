import { METRICS_TYPE, type Metrics } from "../../metrics/metrics.ts";
import type { Operation } from "../server/endpoint.ts";
import { wantReader, type Sessions } from "../access/session.ts";

export interface MetricsDeps {
  readonly metrics: Pick<Metrics, "text">;
  readonly sessions: Sessions;
}

export const showMetrics: Operation<MetricsDeps> = {
  id: "getMetrics",
  tag: "service",
  summary: "Figures for Prometheus.",
  description:
    "In Prometheus's text format. Holds no personal data. Wants a token or a console's session as soon as a token is " +
    "configured, and is answered however busy the service is.",
  answers: { 200: { says: "The figures.", mediaType: "text/plain" } },
  problems: [],
  async handle({ metrics, sessions }, { request, metadata }) {
    wantReader(sessions, request, metadata);
    const headers = { "content-type": METRICS_TYPE, "cache-control": "no-store" };
    return { status: 200, headers, body: await metrics.text() };
  },
};
