// These tests call the code directly.
import { expect, test } from "bun:test";
import { namedEnvFiles, originalEnvironment } from "../../src/platform/runtime-environment-and-env-files.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

test("the original environment is read from the system's record, and undefined without one", async () => {
  using folder = temporaryFolder();
  const record = folder.file("environ");
  await Bun.write(record, "A=1\0B=x=y\0C=\0=D\0");
  expect(originalEnvironment(record)).toEqual({ A: "1", B: "x=y", C: "" });
  expect(originalEnvironment(folder.file("none"))).toBeUndefined();
});

test("env files in Bun's flags are found in both spellings", () => {
  expect(namedEnvFiles(["--no-install", "--env-file=a.env", "--env-file", "b.env"])).toEqual(["a.env", "b.env"]);
  expect(namedEnvFiles(["--no-env-file"])).toEqual([]);
});
