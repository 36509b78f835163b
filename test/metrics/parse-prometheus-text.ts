/** One sample of a metric, as Prometheus reads it. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const HEADER = /^# (?:HELP ([a-z_]+) \S.*|TYPE ([a-z_]+) (counter|gauge|histogram))$/;
const SAMPLE = /^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)+)\})? (-?[\d.e+-]+)$/;
const LABEL = /([a-z]+)="((?:[^"\\]|\\.)*)"/g;
const SUFFIX = /_(?:bucket|sum|count)$/;

/** Parses Prometheus's text format strictly. Throws for an invalid line, and for a metric without help or type. */
export function parseExposition(text: string): readonly Sample[] {
  const helps = new Set<string>();
  const types = new Map<string, string>();
  return text.split("\n").flatMap((line) => {
    if (line === "") return [];
    const [, help, typed, type] = HEADER.exec(line) ?? [];
    if (help !== undefined) helps.add(help);
    else if (typed !== undefined) types.set(typed, type ?? "");
    if (help !== undefined || typed !== undefined) return [];
    const [, name, labels = "", value] = SAMPLE.exec(line) ?? [];
    if (name === undefined || Number.isNaN(Number(value))) throw new Error(`no line of the format: ${line}`);
    const family = types.get(name.replace(SUFFIX, "")) === "histogram" ? name.replace(SUFFIX, "") : name;
    if (!helps.has(family) || !types.has(family)) throw new Error(`of no family: ${line}`);
    const named = [...labels.matchAll(LABEL)].map(([, label = "", given = ""]) => [label, given]);
    return [{ name, labels: Object.fromEntries(named) as Record<string, string>, value: Number(value) }];
  });
}

/** Names of the metrics that a text declares. */
export function declaredIn(text: string): ReadonlySet<string> {
  return new Set([...text.matchAll(/^# TYPE ([a-z_]+) /gm)].map(([, name = ""]) => name));
}
