import { setTimeout as delay } from "node:timers/promises";
import { type Database, openDatabase } from "./database.ts";

/** Pause between notifications: PostgreSQL lets one transaction at a time send them. */
const NOTIFY_PAUSE_MS = 10;

/** Hints to other processes that the log has grown. A hint may be lost, so the processes poll the log too. */
export interface Notifier {
  notify(position: number): void;
  close(): Promise<void>;
}

export function channelOf(storeId: string): string {
  return `eventstore ${storeId}`;
}

/**
 * Sends notifications on a separate connection after the commit. A transaction that notifies holds a lock of the whole
 * server while it commits, so writers of other logs would wait for it.
 */
export function createNotifier(url: string, storeId: string): Notifier {
  const database: Database = openDatabase({ url, connections: 1, name: "eventstore-lite notifier" });
  const channel = channelOf(storeId);
  let newest = 0;
  let isBusy = false;

  async function send(): Promise<void> {
    for (let sent = 0; sent < newest;) {
      sent = newest;
      await database.run((sql) => sql`SELECT pg_notify(${channel}, ${String(sent)})`).catch(() => undefined);
      await delay(NOTIFY_PAUSE_MS);
    }
    isBusy = false;
  }

  return {
    notify(position) {
      newest = position;
      if (isBusy) return;
      isBusy = true;
      void send();
    },
    close: () => database.close(),
  };
}
