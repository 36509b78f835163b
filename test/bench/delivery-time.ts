import { median } from "eventstore-lite/bench/measure";
import { processorTimeOf, timeOfThreads } from "eventstore-lite/bench/processor-time";

/** Processor time of a delivering process in µs, by the purpose of its threads. */
export interface DeliveryTime {
  readonly main: number;
  /** The runtime's HTTP client. */
  readonly client: number;
  /** The log's writer. */
  readonly writer: number;
  /** The compilers and the garbage collection of the runtime. */
  readonly runtime: number;
}

export function deliveryTimeOf(pid: number): DeliveryTime {
  const { main, others } = processorTimeOf(pid);
  const client = timeOfThreads(pid, "HTTP Client");
  const writer = timeOfThreads(pid, "Worker");
  return { main, client, writer, runtime: others - client - writer };
}

/** Processor time per click between two measurements. */
export function timeOfEach(before: DeliveryTime, after: DeliveryTime, clicks: number): DeliveryTime {
  const each = (part: keyof DeliveryTime): number => (after[part] - before[part]) / clicks;
  return { main: each("main"), client: each("client"), writer: each("writer"), runtime: each("runtime") };
}

/** Formats the medians of several rounds. */
export function describeTimes(times: readonly DeliveryTime[]): string {
  const middle = (part: keyof DeliveryTime): string => median(times.map((time) => time[part])).toFixed(0);
  return `main thread ${middle("main")}, HTTP client ${middle("client")}, log's writer ${middle("writer")}, runtime ${middle("runtime")}`;
}
