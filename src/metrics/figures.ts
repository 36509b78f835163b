import { Gauge, type Registry } from "prom-client";

/** Name, help, and the names of the labels where there are any. */
interface About<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly Label[];
}

/** A figure that is looked up whenever somebody asks, and costs nothing else. */
export function lookUp(registry: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  lookUpEach(registry, { name, help }, async (gauge) => gauge.set(await read()));
}

/** The same of figures with labels, which `collect` sets. */
export function lookUpEach<Label extends string>(
  registry: Registry,
  about: About<Label>,
  collect: (gauge: Gauge<Label>) => void | Promise<void>,
): void {
  const gauge: Gauge<Label> = new Gauge({ ...about, registers: [registry], collect: () => collect(gauge) });
}
