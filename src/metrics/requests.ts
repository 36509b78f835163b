import { Counter, type Registry } from "prom-client";

/** Counts an answer of this status; undefined: the endpoint is none of ours. */
export type CountAnswer = (endpoint: CountedEndpoint | undefined, status: number) => void;

/** One object for each endpoint. */
interface CountedEndpoint {
  readonly method: string;
  readonly path: string;
}

/** Counted by hand and handed over at each scrape: the library would look up its labels as text for every request. */
export function createAnswerCount(registry: Registry): CountAnswer {
  const counts = new Map<CountedEndpoint | undefined, Map<number, number>>();
  const answers = new Counter({
    name: "reachlog_http_answers_total",
    help: "Answers, by endpoint and status; endpoint none: there is no such one.",
    labelNames: ["endpoint", "status"],
    registers: [registry],
    collect() {
      answers.reset();
      for (const [counted, byStatus] of counts) {
        const endpoint = counted === undefined ? "none" : `${counted.method} ${counted.path}`;
        for (const [status, count] of byStatus) answers.inc({ endpoint, status }, count);
      }
    },
  });
  return (endpoint, status) => {
    let byStatus = counts.get(endpoint);
    if (byStatus === undefined) counts.set(endpoint, (byStatus = new Map<number, number>()));
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  };
}
