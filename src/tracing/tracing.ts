import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Link,
  type Span,
  type SpanContext,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import type { DispatchMode } from "../../events/delivery.ts";
import type { EventLog } from "../log/event-log.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { VERSION } from "../platform/version.ts";

/** Timeout in ms of an export of spans, also at shutdown, because traces are not worth a delay. */
const EXPORT_TIMEOUT_MS = 2_000;

/**
 * Maximum number of causes, such as the clicks of a batch, that the span of one request to a network links to. The log
 * has all causes.
 */
const LINKS_MAX = 128;

export type Tracing = ReturnType<typeof openTracing>;

export type RequestSpan = ReturnType<Tracing["request"]>;

interface TracedDispatch {
  readonly channel: ChannelName;
  readonly network: string;
  readonly mode: DispatchMode;
}

export interface TracingOptions {
  /** Base URL of the collector, which accepts OTLP over HTTP. */
  readonly endpoint: string;
  /** Share of the traces that begin in this service that is collected, from 0 to 1. */
  readonly ratio: number;
  /** Returns a random number in [0, 1). Default: the runtime's. */
  readonly random?: () => number;
  readonly logger?: { readonly warn: Logger["warn"]; readonly info: Logger["info"] };
}

function createProvider({ endpoint, ratio, logger }: TracingOptions): TracerProvider {
  const url = `${endpoint}/v1/traces`;
  const exporter = reportFaults(new OTLPTraceExporter({ url, timeoutMillis: EXPORT_TIMEOUT_MS }), url, logger);
  return new TracerProvider({
    resource: resourceFromAttributes({ "service.name": "reachlog", "service.version": VERSION }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: EXPORT_TIMEOUT_MS })],
  });
}

/** Opens the recording of the service's work as spans, if traces are collected. */
export function openTracing(options: TracingOptions) {
  const { ratio, random = Math.random } = options;
  const provider = createProvider(options);
  const tracer = provider.getTracer("reachlog", VERSION);

  const append =
    (eventLog: EventLog): EventLog["append"] =>
    (...args) => {
      const [, newEvents, { traceparent }] = args;
      if (!isSampled(traceparent)) return eventLog.append(...args);
      const attributes = { "reachlog.events": newEvents.length, "reachlog.type": newEvents[0]?.type ?? "" };
      const span = tracer.startSpan("append", { attributes }, below(traceparent));
      return eventLog.append(...args).then(
        (appended) => {
          span.setAttribute("reachlog.position", appended.first).end();
          return appended;
        },
        (fault: unknown) => {
          failed(span).end();
          throw fault;
        },
      );
    };

  const chooseParent = (given: string | null, isKnown: boolean): Context => {
    const isFollowed = isKnown || random() < ratio;
    return below(isFollowed ? given : (given?.replace(FLAGS, "00") ?? null));
  };

  return {
    /**
     * Starts the span of an HTTP request. `given`: its `traceparent`, if any, whose flag asks to collect the trace. For
     * a known caller the flag is followed; for others only in the share `ratio` of their requests.
     */
    request(endpointName: string, given: string | null, isKnown: boolean) {
      const attributes = {
        "http.route": endpointName.replace(/^\S+ /, ""),
        "http.request.method": endpointName.split(" ", 1)[0] ?? "",
      };
      const span = tracer.startSpan(endpointName, { kind: SpanKind.SERVER, attributes }, chooseParent(given, isKnown));
      return {
        /** Identity of the span as W3C Trace Context; stored with each event that the request causes. */
        traceparent: formatTraceparent(span.spanContext()),
        end(status: number): void {
          span.setAttribute("http.response.status_code", status);
          (status >= 500 ? failed(span) : span).end();
        },
      };
    },
    /** Returns the event log wrapped so that each append which a sampled request causes has a span. */
    traced: (eventLog: EventLog): EventLog => ({ ...eventLog, append: append(eventLog) }),
    /**
     * Starts the span of one request to a network. `traceparents` are those of the HTTP requests that caused its
     * dispatches.
     */
    dispatch({ channel, network, mode }: TracedDispatch, traceparents: readonly (string | undefined)[]) {
      const sampled = traceparents.filter(isSampled);
      const [only] = traceparents.length === 1 ? traceparents : [];
      const links = only === undefined ? sampled.slice(0, LINKS_MAX).flatMap(linkTo) : [];
      // If no cause was sampled, the request begins no trace.
      if (sampled.length === 0) return UNTRACED;
      const attributes = {
        "reachlog.channel": channel,
        "reachlog.network": network,
        "reachlog.mode": mode,
        "reachlog.dispatches": traceparents.length,
      };
      const span = tracer.startSpan(`dispatch ${channel}`, { kind: SpanKind.CLIENT, attributes, links }, below(only));
      return {
        /** Ends the span. `outcomes` holds one outcome for each dispatch. */
        end(outcomes: readonly string[]): void {
          span.setAttribute("reachlog.outcome", [...new Set(outcomes)].sort().join(" "));
          (outcomes.every((outcome) => outcome === "delivered" || outcome === "skipped") ? span : failed(span)).end();
        },
      };
    },
    /** Exports the finished spans that are not exported yet. Never rejects. */
    flush: () => provider.forceFlush().catch(() => {}),
    async [Symbol.asyncDispose](): Promise<void> {
      await provider.shutdown().catch(() => {});
    },
  };
}

/** Wraps an exporter so that it logs once that the collector accepts no traces, and once that it accepts them again. */
function reportFaults(exporter: OTLPTraceExporter, url: string, logger: TracingOptions["logger"]): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const hasFailed = result.error !== undefined;
        if (hasFailed && !isFailing) {
          const status = "code" in result.error! ? { status: Number(result.error.code) } : {};
          logger?.warn("the collector accepts no traces: check OTEL_EXPORTER_OTLP_ENDPOINT", {
            url,
            ...status,
            ...errorFields(result.error),
          });
        }
        if (!hasFailed && isFailing) logger?.info("the collector accepts traces again", { url });
        isFailing = hasFailed;
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}

const UNTRACED = { end(_outcomes: readonly string[]): void {} };

function failed(span: Span): Span {
  return span.setStatus({ code: SpanStatusCode.ERROR });
}

function isSampled(traceparent: string | undefined): traceparent is string {
  return parseTraceparent(traceparent)?.traceFlags === TraceFlags.SAMPLED;
}

/** Returns the context of a child span of `traceparent`, or a root context without one. */
function below(traceparent: string | null | undefined): Context {
  const parent = parseTraceparent(traceparent);
  return parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
}

function linkTo(traceparent: string): Link[] {
  const context = parseTraceparent(traceparent);
  return context === undefined ? [] : [{ context }];
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Matches the flags, which are the last part of a `traceparent`. */
const FLAGS = /[^-]*$/;

function parseTraceparent(traceparent: string | null | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}
