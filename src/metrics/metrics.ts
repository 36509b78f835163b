import { Registry } from "prom-client";
import type { Delivery } from "../delivery/delivery.ts";
import type { DispatchMetrics } from "../delivery/dispatch.ts";
import type { Projector } from "../projector/projector.ts";
import { createAppendMetrics, type AppendMetrics } from "./appends.ts";
import { createDispatchMetrics, observeChannels, type ChannelSources } from "./delivery.ts";
import { observeInstances, observeLog, type InstanceSources, type LogSources } from "./log.ts";
import { observeOutreach, type OutreachSources } from "./outreach.ts";
import { observeProcess } from "./process.ts";
import { createAnswerCount, type CountAnswer } from "./requests.ts";

/**
 * What is counted as it happens. All else is looked up at each scrape, so that a click pays only for figures that could
 * not be found later.
 */
export interface Metrics {
  readonly appends: AppendMetrics;
  readonly dispatches: DispatchMetrics;
  readonly countAnswer: CountAnswer;
  /** What is asked of these parts whenever {@link Metrics.text} is. */
  observe(parts: Observed): void;
  /** All figures in Prometheus's text format, of the media type {@link METRICS_TYPE}. */
  text(): Promise<string>;
}

export interface Observed extends ChannelSources, InstanceSources, LogSources, OutreachSources {
  readonly projector: Projector;
  readonly delivery: Pick<Delivery, "configured" | "circuit">;
  readonly version: string;
  /** Of the log; undefined: it is on a database server. */
  readonly file: string | undefined;
}

export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

export function createMetrics(): Metrics {
  const registry = new Registry();
  return {
    appends: createAppendMetrics(registry),
    dispatches: createDispatchMetrics(registry),
    countAnswer: createAnswerCount(registry),
    observe(parts) {
      observeChannels(registry, parts);
      observeInstances(registry, parts);
      observeLog(registry, parts);
      observeOutreach(registry, parts);
      observeProcess(registry, parts.version, parts.file);
    },
    text: () => registry.metrics(),
  };
}
