import { Gauge, type Registry } from "prom-client";

/** Name, help, and the names of the labels where there are any. */
interface About<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly Label[];
}

/**
 * A figure that is looked up at each scrape, and costs nothing else. Where it cannot be looked up, say because the log is
 * out of reach, it has no value, and the scrape still gives the other figures.
 */
export function lookUp(registry: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  const readOrNot = async (): Promise<number> => read();
  const collect = async (gauge: Gauge): Promise<void> => gauge.set(await readOrNot().catch(() => Number.NaN));
  lookUpEach(registry, { name, help }, collect);
}

/** The same of figures with labels, which `collect` sets: there are none where it cannot. */
export function lookUpEach<Label extends string>(
  registry: Registry,
  about: About<Label>,
  collect: (gauge: Gauge<Label>) => void | Promise<void>,
): void {
  const gauge: Gauge<Label> = new Gauge({
    ...about,
    registers: [registry],
    async collect() {
      try {
        await collect(gauge);
      } catch {
        gauge.reset();
      }
    },
  });
}
