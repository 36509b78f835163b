// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { key } from "../../src/commands/master-key.ts";
import { settingNames } from "../../src/config/schema.ts";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { createEventLog, STREAMS } from "../../src/log/event-log.ts";
import { capture, withLog } from "../harness/capture-command.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { onRuntime, RUNTIME_ENV } from "../harness/bun-deno-or-binary.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const filesOf = (pattern: string): string[] => [...new Bun.Glob(pattern).scanSync({ cwd: ROOT, dot: true })].sort();

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly uses?: string;
  readonly steps?: readonly Step[];
  readonly permissions?: Readonly<Record<string, string>>;
}

interface Workflow {
  readonly permissions?: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

const workflows = filesOf(".github/workflows/*.yml").map(
  (file) => [file, Bun.YAML.parse(read(file)) as Workflow] as const,
);

const stepsOf = ({ jobs }: Workflow): readonly Step[] => Object.values(jobs).flatMap(({ steps = [] }) => steps);

describe.each(workflows)("%s", (file, workflow) => {
  test("pins foreign actions to a commit, with the version in a comment", () => {
    const used = [...read(file).matchAll(/uses: ([^.\s]\S*)(.*)/g)].map(
      ([, action = "", beside = ""]) => action + beside,
    );
    const loose = used.filter((one) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(one));
    expect(loose).toEqual([]);
    expect(used.length).toBe(stepsOf(workflow).filter(({ uses }) => uses !== undefined).length);
  });

  test("has read permission by default and leaves no token in its checkout", () => {
    expect(workflow.permissions).toEqual({ contents: "read" });
    const checkouts = stepsOf(workflow).filter(({ uses }) => uses?.startsWith("actions/checkout@"));
    expect(checkouts.filter((step) => step.with?.["persist-credentials"] !== false)).toEqual([]);
  });

  test("runs existing scripts and passes no event text to a shell", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Readonly<Record<string, string>> };
    const commands = stepsOf(workflow).map(({ run = "" }) => run);
    const run = commands.flatMap((command) => [...command.matchAll(/ run ([\w:]+)/g)].map(([, name = ""]) => name));
    expect(run.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
    expect(commands.filter((command) => command.includes("${{"))).toEqual([]);
  });
});

/**
 * Checks that a job with permission to write has no checkout and uses no registry. It may only run pinned actions and
 * GitHub's own client.
 */
test("a job with write permission runs no code of the project or its dependencies", () => {
  const trusted = workflows
    .flatMap(([, { jobs }]) => Object.values(jobs))
    .filter(({ permissions = {} }) => Object.values(permissions).includes("write"));
  expect(trusted.map(({ permissions }) => permissions)).toEqual([
    { contents: "write", "id-token": "write", attestations: "write" },
  ]);
  const used = trusted.flatMap(({ steps = [] }) => steps.map(({ uses = "", run }) => run ?? uses.replace(/@.*/, "")));
  expect(used.filter((one) => !one.startsWith("gh release create "))).toEqual([
    "actions/download-artifact",
    "actions/attest",
    "actions/attest",
  ]);
});

const PROJECT = [
  ".ci/run",
  "README.md",
  "CONTRIBUTING.md",
  ".devcontainer/*.json",
  ".github/**/*.yml",
  "deploy/*",
  "docs/*.md",
];

test("all files name the runtime version of package.json", () => {
  const { engines, devDependencies } = JSON.parse(read("package.json")) as {
    engines: { bun: string };
    devDependencies: Readonly<Record<string, string>>;
  };
  const named = PROJECT.flatMap(filesOf).flatMap((file) =>
    [...read(file).matchAll(/bun@([\d.]+)/gi)].map(([, of]) => of),
  );
  expect(named.length).toBeGreaterThan(10);
  expect([...new Set(named)]).toEqual([engines.bun.replace(">=", "")]);
  expect(devDependencies["bun-types"]).toBe(named[0]);
});

const FORMS = filesOf("{.github/**/*.yml,deploy/*.yaml}");

test.each(FORMS)("%s is YAML", (file) => {
  expect(Bun.YAML.parse(read(file))).toBeObject();
});

const NAMES = {
  "docs/deploy.md": /^([A-Z][A-Z_]+)=/gm,
  "deploy/compose.yaml": /^ {6}([A-Z][A-Z_]+): /gm,
  "deploy/compose.postgresql.yaml": /^ {6}((?!POSTGRES_)[A-Z][A-Z_]+): /gm,
  "deploy/kubernetes.yaml": /(?<=^ {2}|name: )([A-Z][A-Z_]+)(?=: |, value:)/gm,
  "deploy/credentials.conf": /^Environment=([A-Z][A-Z_]+)=/gm,
  "deploy/Dockerfile": /(?<=^ENV .*)\b([A-Z][A-Z_]+)=/gm,
};

/** Settings of the proxy itself. */
const OF_THE_PROXY = ["REACHLOG_SITE", "REACHLOG_UPSTREAM"];

test("the systemd drop-in loads each credential that it passes on", () => {
  const text = read("deploy/credentials.conf");
  const loaded = [...text.matchAll(/^LoadCredential=(\w+):/gm)].map(([, name]) => name);
  expect([...text.matchAll(/_FILE=%d\/(\w+)$/gm)].map(([, name]) => name)).toEqual(loaded);
});

describe("the nightly backup", () => {
  const unit = read("deploy/reachlog-backup.service");
  const folder = /^Environment=BACKUPS=(.*)$/m.exec(unit)?.[1] ?? "none";
  const commands = [...unit.replaceAll("\\\n", "").matchAll(/^ExecStart=(.*)$/gm)].map(([, line = ""]) =>
    line.replaceAll("$$", "$").replaceAll("%%", "%"),
  );

  test("goes to a folder that the unit may write", () => {
    expect(/^ReadWritePaths=(.*)$/m.exec(unit)?.[1]?.split(" ")).toContain(folder);
  });

  test("is incremental and proved, changes folder after a refusal, and removes old folders", async () => {
    using place = temporaryFolder();
    const program = place.file("reachlog");
    writeFileSync(program, `#!/bin/sh\nexec ${onRuntime([]).join(" ")} "$@"\n`, { mode: 0o700 });
    const [former, next] = [7, 8].map((byte) => Buffer.alloc(32, byte).toString("base64"));
    const log = { DATABASE_URL: `sqlite:${place.file("log.sqlite")}`, REACHLOG_KEY: former! };
    await withLog(log, (opened) =>
      createEventLog(opened, () => Bun.randomUUIDv7()).append(STREAMS.requests, [clickOf({ channels: ["chat"] })], {}),
    );
    const backups = place.file("backups");
    mkdirSync(join(backups, "2020-01"), { recursive: true });
    utimesSync(join(backups, "2020-01"), 0, 0);
    const runNight = (env: Record<string, string>) => {
      const PATH = `${place.path}:${process.env["PATH"]}`;
      const { exitCode, stdout } = Bun.spawnSync(["sh", "-ec", commands.join("\n")], {
        env: { ...RUNTIME_ENV, PATH, BACKUPS: backups, ...env },
        cwd: place.path,
      });
      const proved = [...stdout.toString().matchAll(/\/(\S+) is whole and can be restored/g)].length;
      const folders = readdirSync(backups).map((name) => readdirSync(join(backups, name, "segments")).length);
      return { exitCode, proved, segments: folders.toSorted((one, other) => one - other) };
    };
    expect(runNight(log)).toEqual({ exitCode: 0, proved: 1, segments: [1] });
    expect(runNight(log)).toEqual({ exitCode: 0, proved: 1, segments: [2] });
    expect(await capture(key, ["rotate"], { env: { ...log, REACHLOG_KEY_NEXT: next! } })).toMatchObject({ code: 0 });
    expect(runNight({ ...log, REACHLOG_KEY: next! })).toEqual({ exitCode: 1, proved: 1, segments: [1, 2] });
  });
});

test.each(["deploy/compose.yaml", "deploy/compose.postgresql.yaml"])(
  "the containers of %s use exactly the secrets that they are given",
  (file) => {
    const { services, secrets } = Bun.YAML.parse(read(file)) as {
      services: Record<string, { environment: Record<string, string>; secrets?: string[] }>;
      secrets: object;
    };
    const given = Object.values(services).flatMap(({ environment, secrets: names = [] }) => {
      const used = Object.values(environment).flatMap((value) => /^\/run\/secrets\/(.*)/.exec(value)?.[1] ?? []);
      expect(used).toEqual(names);
      return names;
    });
    expect(given).toEqual(Object.keys(secrets));
  },
);

test("the image starts its program and checks its health without a shell", () => {
  const text = read("deploy/Dockerfile");
  const asked = [...text.matchAll(/^(?:HEALTHCHECK .* CMD|ENTRYPOINT|CMD) (.*)$/gm)].map(([, form = ""]) => form);
  const [health, program, start] = asked.map((form) => JSON.parse(form) as string[]);
  expect([program, health?.slice(0, 1)]).toEqual([["/usr/local/bin/reachlog"], ["/usr/local/bin/reachlog"]]);
  for (const command of [health?.slice(1), start]) {
    const { exitCode, stdout } = Bun.spawnSync([process.execPath, join(ROOT, "src/main.ts"), ...command!, "--help"]);
    expect([exitCode, stdout.toString()]).toEqual([
      0,
      expect.stringContaining(`Usage: reachlog ${command!.join(" ")}`),
    ]);
  }
});

test("the Kubernetes probes use existing endpoints, and a disruption keeps some instances", () => {
  interface Probe {
    readonly httpGet: { readonly path: string };
  }
  const [, deployment, , budget] = Bun.YAML.parse(read("deploy/kubernetes.yaml")) as [
    object,
    { spec: { replicas: number; template: { spec: { containers: Record<string, Probe>[] } } } },
    object,
    { spec: { minAvailable: number } },
  ];
  const { startupProbe, livenessProbe, readinessProbe } = deployment.spec.template.spec.containers[0]!;
  const paths = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet.path ?? "none");
  expect(paths).toEqual(["/livez", "/livez", "/readyz"]);
  expect(describeEndpoints().map(({ path }) => path)).toEqual(expect.arrayContaining(paths));
  expect(budget.spec.minAvailable).toBeLessThan(deployment.spec.replicas);
});

test.each(Object.entries(NAMES))("%s names only existing settings", (file, name) => {
  const named = [...read(file).matchAll(name)].map(([, setting = ""]) => setting);
  expect(named.length).toBeGreaterThan(1);
  expect(named.filter((one) => !settingNames.has(one) && !OF_THE_PROXY.includes(one))).toEqual([]);
});
