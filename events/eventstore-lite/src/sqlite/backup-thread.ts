// Copies a log with VACUUM INTO and looks whether the copy is whole; started by backup.ts.
import { DatabaseSync } from "node:sqlite";
import { answerBackup } from "./backup.ts";
import { openReader } from "./connections.ts";
import { markAsCopy } from "./epochs.ts";

export interface BackupOrder {
  readonly source: string;
  readonly target: string;
}

function copy({ source, target }: BackupOrder): void {
  const db = openReader(source);
  try {
    db.prepare("VACUUM INTO ?").run(target);
  } finally {
    db.close();
  }
}

function mark({ target }: BackupOrder): void {
  const db = new DatabaseSync(target);
  try {
    // Nobody knows the file yet, and a crash leaves nothing of it: a journal would only be left behind.
    db.exec("PRAGMA journal_mode = MEMORY");
    markAsCopy(db);
  } finally {
    db.close();
  }
}

await answerBackup((order: BackupOrder) => {
  copy(order);
  mark(order);
});
