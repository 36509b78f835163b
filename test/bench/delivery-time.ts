import { median } from "eventstore-lite/bench/measure";
import { processorTimeOf, timeOfThreads } from "eventstore-lite/bench/processor-time";

/** Processor time in µs, by what the threads of a process that delivers are for. */
export interface DeliveryTime {
  readonly main: number;
  /** The runtime's HTTP client. */
  readonly client: number;
  /** The log's writer. */
  readonly writer: number;
  /** The runtime's compilers and garbage collection. */
  readonly runtime: number;
}

export function deliveryTimeOf(pid: number): DeliveryTime {
  const { main, others } = processorTimeOf(pid);
  const client = timeOfThreads(pid, "HTTP Client");
  const writer = timeOfThreads(pid, "Worker");
  return { main, client, writer, runtime: others - client - writer };
}

/** Between two moments, of each of so many clicks. */
export function timeOfEach(before: DeliveryTime, after: DeliveryTime, clicks: number): DeliveryTime {
  const each = (part: keyof DeliveryTime): number => (after[part] - before[part]) / clicks;
  return { main: each("main"), client: each("client"), writer: each("writer"), runtime: each("runtime") };
}

/** The medians of several rounds, in words. */
export function describeTimes(times: readonly DeliveryTime[]): string {
  const middle = (part: keyof DeliveryTime): string => median(times.map((time) => time[part])).toFixed(0);
  return `main thread ${middle("main")}, HTTP client ${middle("client")}, log's writer ${middle("writer")}, runtime ${middle("runtime")}`;
}
