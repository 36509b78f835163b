import { median, processorTimeOf, timeOfThreads } from "eventstore-lite/bench";

/** Processor time of a delivering process in µs, by the purpose of its threads. */
export interface DeliveryTime {
  readonly main: number;
  /** Processor time of the runtime's HTTP client, in µs. */
  readonly client: number;
  /** Processor time of the thread that writes the log, in µs. */
  readonly writer: number;
  /** Processor time of all remaining threads, in µs: those of the runtime's compilers and garbage collection. */
  readonly runtime: number;
}

export function deliveryTimeOf(pid: number): DeliveryTime {
  const { main, others } = processorTimeOf(pid);
  const client = timeOfThreads(pid, "HTTP Client");
  const writer = timeOfThreads(pid, "Worker");
  return { main, client, writer, runtime: others - client - writer };
}

/** Returns the processor time per click between two measurements. */
export function timeOfEach(before: DeliveryTime, after: DeliveryTime, clicks: number): DeliveryTime {
  const each = (part: keyof DeliveryTime): number => (after[part] - before[part]) / clicks;
  return { main: each("main"), client: each("client"), writer: each("writer"), runtime: each("runtime") };
}

/** Formats the median of each processor time over several rounds. */
export function describeTimes(times: readonly DeliveryTime[]): string {
  const middle = (part: keyof DeliveryTime): string => median(times.map((time) => time[part])).toFixed(0);
  return `main thread ${middle("main")}, HTTP client ${middle("client")}, log's writer ${middle("writer")}, runtime ${middle("runtime")}`;
}
