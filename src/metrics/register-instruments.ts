import type { Registry } from "prom-client";
import Counter from "prom-client/lib/counter.js";
import Gauge from "prom-client/lib/gauge.js";
import Histogram from "prom-client/lib/histogram.js";

/** Name, help text and label names of a metric. */
type About<Label extends string> = readonly [name: string, help: string, labelNames?: readonly Label[]];

/**
 * Registers metrics that are read at each scrape, and cost nothing otherwise. A metric that cannot be read, for example
 * because the log is unreachable, has the value NaN.
 */
export function lookUp(
  registry: Registry,
  figures: readonly (readonly [name: string, help: string, read: () => number | Promise<number>])[],
): void {
  for (const [name, help, read] of figures) {
    const readOrNot = async (): Promise<number> => read();
    lookUpEach(registry, [name, help], async function* () {
      yield [{}, await readOrNot().catch(() => Number.NaN)];
    });
  }
}

type Figure<Label extends string> = readonly [labels: Partial<Record<Label, string>>, value: number];

/**
 * Registers one metric with labels, which is read at each scrape. `read` returns its values; if it fails, the metric
 * has none.
 */
export function lookUpEach<Label extends string>(
  registry: Registry,
  [name, help, labelNames = []]: About<Label>,
  read: () => Iterable<Figure<Label>> | AsyncIterable<Figure<Label>>,
): void {
  const gauge = new Gauge<Label>({
    name,
    help,
    labelNames,
    registers: [registry],
    async collect() {
      const figures = await Array.fromAsync(read()).catch(() => []);
      // The values are read before the reset. Otherwise another scrape could see the gauge empty while they are read.
      gauge.reset();
      for (const [labels, value] of figures) gauge.set(labels, value);
    },
  });
}

export function createCounter<Label extends string>(
  registry: Registry,
  ...[name, help, labelNames = []]: About<Label>
) {
  return new Counter({ name, help, labelNames, registers: [registry] });
}

export function createHistogram<Label extends string>(
  registry: Registry,
  buckets: number[],
  ...[name, help, labelNames = []]: About<Label>
) {
  return new Histogram({ name, help, labelNames, buckets, registers: [registry] });
}
