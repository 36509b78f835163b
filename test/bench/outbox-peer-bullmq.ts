/**
 * Outbox that a team on Node would use: fastify and BullMQ on a durable Redis. Runs on Node, in the folder in which
 * they are installed.
 */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { CHANNELS, deliver, type Channel } from "./compared-outbox-delivery.ts";
import { takeClicks, type Click } from "./receive-outbox-clicks.ts";

// The parts of the packages' interfaces that are used here; the packages are installed only for the comparison.
interface Connection {
  readonly path: string;
  readonly maxRetriesPerRequest: null;
}
interface Job {
  readonly name: Channel;
  readonly data: { readonly id: string; readonly click: Click };
}
interface Queue {
  addBulk(jobs: readonly Job[]): Promise<unknown>;
}
interface Worker {
  on(event: "error", handler: (error: Error) => void): void;
}
interface BullMq {
  readonly Queue: new (name: string, options: { connection: Connection; defaultJobOptions: object }) => Queue;
  readonly Worker: new (
    name: string,
    work: (job: Job) => Promise<void>,
    options: { connection: Connection; concurrency: number },
  ) => Worker;
}
interface IoRedis {
  readonly Redis: new (options: Connection) => {
    config(command: "GET", name: string): Promise<readonly string[]>;
    quit(): Promise<unknown>;
  };
}

const QUEUE = "dispatches";

/**
 * Number of jobs that the worker runs at the same time. The results stay the same with twice as many, with a second
 * worker, or with a queue for each channel.
 */
const IN_FLIGHT = 50;

/** Options of a BullMQ job. A completed job is removed, because that gives BullMQ the least work. */
const JOB = { attempts: 10, backoff: { type: "exponential", delay: 1_000 }, removeOnComplete: true };

const require = createRequire(import.meta.url);
const { Queue, Worker } = require("bullmq") as BullMq;
const { Redis } = require("ioredis") as IoRedis;

// Arguments of this program: the path of the Redis socket, and the URL of the benchmark's server that receives the
// clicks in place of the networks.
const [path = "", sinks = ""] = process.argv.slice(2);
// BullMQ requires this setting for a connection that waits for jobs.
const connection: Connection = { path, maxRetriesPerRequest: null };
await expectDurable();

const queue = new Queue(QUEUE, { connection, defaultJobOptions: JOB });
const work = ({ name, data }: Job): Promise<void> => deliver(sinks, name, data.id, data.click);
new Worker(QUEUE, work, { connection, concurrency: IN_FLIGHT }).on("error", (error) => console.error(error));

// A click becomes three jobs, one for each channel, added in one round trip and answered once Redis has synced them. A
// single job would be a quarter less work, but would repeat two posts if the third one fails.
await takeClicks(async (click) => {
  const id = randomUUID();
  await queue.addBulk(CHANNELS.map((name) => ({ name, data: { id, click } })));
  return id;
});

async function expectDurable(): Promise<void> {
  const redis = new Redis(connection);
  for (const [name, wanted] of [
    ["appendonly", "yes"],
    ["appendfsync", "always"],
  ] as const) {
    const [, found] = await redis.config("GET", name);
    if (found !== wanted) throw new Error(`${name} is ${found}`);
  }
  await redis.quit();
}
