import type { Report } from "./error.ts";
import type { Environment } from "./schema.ts";
import { readUrl } from "./urls.ts";

/** Where traces go, and how many. */
export interface TracingConfig {
  /** Base URL of a collector that takes OTLP over HTTP. */
  readonly endpoint: string;
  /** Of the traces that begin here, in [0, 1]. */
  readonly ratio: number;
}

/** Undefined: nobody collects traces. The names are OpenTelemetry's own. */
export function readTracing(values: Environment, report: Report): TracingConfig | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: ratio } = values;
  if (endpoint === undefined) return undefined;
  return { endpoint: readUrl("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint, report), ratio: Number(ratio) };
}
