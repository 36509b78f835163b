// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openApp } from "../harness/in-process/app.ts";
import { declaredIn } from "./parse-prometheus-text.ts";

const folder = join(import.meta.dirname, "../../deploy/observability");
const read = (name: string): string => readFileSync(join(folder, name), "utf8");

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}
interface RuleTests {
  readonly tests: readonly {
    readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: unknown[] }[];
  }[];
}
interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

const rules = (Bun.YAML.parse(read("alerts.yml")) as Rules).groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(read("dashboard.json")) as Dashboard;

/** Metrics that Prometheus itself creates. */
const BY_PROMETHEUS = new Set(["up"]);

/** Metrics in an expression, by the names that /metrics declares. */
function metricsIn(expression: string): readonly string[] {
  const names = expression
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)/g, " ")
    .match(/\b(?:reachlog|process)_[a-z_]+|\bup\b/g);
  return (names ?? []).map((name) => name.replace(/_(?:bucket|sum|count)$/, ""));
}

test("each metric in alerts and dashboard exists in the service", async () => {
  await using world = await openApp();
  const declared = declaredIn(await world.deps.metrics.text());
  const expressions = [
    ...rules.map(({ expr }) => expr),
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ];
  expect(expressions.length).toBeGreaterThan(rules.length + 20);
  for (const expression of expressions) {
    const named = metricsIn(expression);
    expect([expression, named.length > 0]).toEqual([expression, true]);
    for (const name of named)
      expect([expression, name, declared.has(name) || BY_PROMETHEUS.has(name)]).toEqual([expression, name, true]);
  }
});

test("each metric of the service is used by an alert or the dashboard", async () => {
  await using world = await openApp();
  const shown = new Set(
    [
      ...rules.map(({ expr }) => expr),
      ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ].flatMap(metricsIn),
  );
  const declared = declaredIn(await world.deps.metrics.text());
  expect([...declared].filter((name) => !shown.has(name))).toEqual(["reachlog_build_info"]);
});

test("each alert has a test that it fires, and one that it does not", () => {
  const { tests } = Bun.YAML.parse(read("alerts.test.yml")) as RuleTests;
  const cases = tests.flatMap(({ alert_rule_test }) => alert_rule_test);
  const names = rules.map(({ alert }) => alert).sort();
  const namesOf = (fires: boolean) =>
    cases
      .filter(({ exp_alerts }) => exp_alerts.length > 0 === fires)
      .map(({ alertname }) => alertname)
      .sort();
  expect([namesOf(true), namesOf(false)]).toEqual([names, names]);
});
