// On no harness.
import { expect, test } from "bun:test";
import { namedEnvFiles, originalEnvironment } from "../../src/platform/bun-or-node.ts";
import { temporaryFolder } from "../harness/temporary.ts";

test("the original environment is the system's record of it, and unknown without one", async () => {
  using folder = temporaryFolder();
  const record = folder.file("environ");
  await Bun.write(record, "A=1\0B=x=y\0C=\0=D\0");
  expect(originalEnvironment(record)).toEqual({ A: "1", B: "x=y", C: "" });
  expect(originalEnvironment(folder.file("none"))).toBeUndefined();
});

test("the files that Bun is told to read are known in both spellings", () => {
  expect(namedEnvFiles(["--no-install", "--env-file=a.env", "--env-file", "b.env"])).toEqual(["a.env", "b.env"]);
  expect(namedEnvFiles(["--no-env-file"])).toEqual([]);
});
