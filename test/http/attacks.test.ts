// These tests start the service or commands as processes.
import { afterAll } from "bun:test";
import { testAttacks } from "./attacks/attack.ts";
import { bodies } from "./attacks/bodies.ts";
import { callers } from "./attacks/wrong-credentials.ts";
import { framing } from "./attacks/request-framing.ts";
import { leaks } from "./attacks/leaks.ts";
import { routing } from "./attacks/routing.ts";
import { openTarget } from "./attacks/target.ts";

const target = await openTarget();
afterAll(() => target[Symbol.asyncDispose]());

testAttacks([...framing, ...routing, ...bodies, ...callers, ...leaks], () => target);
