#!/usr/bin/env bun
import { parseArgs } from "node:util";
import { startSandbox } from "./sandbox.ts";

/** `bun main.ts [--port PORT]`: serves the networks until stopped. Prints their addresses and credentials as JSON. */
const { values } = parseArgs({ options: { port: { type: "string", default: "4010" } } });
const { url, urls, credentials } = await startSandbox({ port: Number(values.port) });
process.stdout.write(`${JSON.stringify({ url, urls, credentials }, null, 2)}\n`);
