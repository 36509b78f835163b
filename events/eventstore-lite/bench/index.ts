/** The benchmarks of the store, and the tools with which a program's own benchmarks are measured and compared. */
export { peerBenches, storeBenches } from "./benches.ts";
export { outputOf, startChild } from "./start-child-process.ts";
export { runBenches } from "./run-benches.ts";
export {
  atLeast,
  atMost,
  atMostInAll,
  atMostMore,
  compare,
  interleave,
  median,
  roundsOf,
  type Bar,
  type Bench,
  type BenchOptions,
  type Row,
} from "./compare-contenders.ts";
export { processorTimeOf, timeOfThreads, timeWithChildren, type ProcessorTime } from "./read-processor-time.ts";
export { openScan } from "./raw-row-scan.ts";
