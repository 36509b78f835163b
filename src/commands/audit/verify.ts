import { existsSync, readFileSync } from "node:fs";
import { parsePublicKey, SigningKeyRefused } from "eventstore-lite/proof";
import { readKnownHeads, type Compared } from "../../log/sign-and-compare-checkpoints.ts";
import { verifyLog, type VerifiedLog } from "../../log/verify-log.ts";
import { absolutePath, Command, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
import { answer, EXIT } from "../shared/terminal-answers-and-exit-codes.ts";
import { openExistingStoredLog } from "../shared/open-log-and-record-reads.ts";
import { withProgress } from "../shared/progress.ts";
import { usageError } from "../../platform/service-error.ts";

export const verify: MakeCommand = (terminal) =>
  new Command("verify")
    .summary("check the hash chain, and the log against earlier heads")
    .description(
      `Recomputes the hash chain on all cores, and compares the log with the service's
checkpoint beside it, if there is one. With --head it also checks a head that was
exported earlier: the log's key signed it, and the log still holds its events.
Each fault is printed in one sentence with the first position known to be bad,
and the exit code is 1.`,
    )
    .option("--head <file>", "what reachlog audit head wrote earlier", absolutePath)
    .option(
      "--public-key <key>",
      "that head's public key, as a file or in base64; needed if the signing key is not here",
    )
    .option(...JSON_OPTION)
    .examples("reachlog audit verify --head /mnt/elsewhere/head-of-monday")
    .action(async ({ head, publicKey, json }) => {
      const given = publicKey === undefined ? undefined : readKeyOption("--public-key", publicKey, parsePublicKey);
      await using store = await openExistingStoredLog(terminal);
      const known = await readKnownHeads(store.checkpoints, head, given);
      const { position } = await store.head();
      const verified = await withProgress(terminal, "verifying", position, (onProgress) =>
        verifyLog(store, known, { onProgress }),
      );
      answer(terminal, json, toJson(verified), formatVerified(verified));
      return verified.isWhole ? EXIT.ok : EXIT.fault;
    });

function formatVerified({ verification: { checked, head, fault }, compared }: VerifiedLog): string {
  const chain =
    fault === undefined
      ? `${checked} events, the chain is whole; head ${head.position} ${head.hash}`
      : `the chain is broken at position ${fault.position}: ${fault.reason}`;
  const heads = compared.map((one) =>
    one.fault === undefined ? `it holds all ${one.checkpoint.position} events of ${one.what}` : one.fault,
  );
  return [chain, ...heads].map((line) => `${line}\n`).join("");
}

function toJson({ verification: { checked, head, fault }, compared, isWhole: ok }: VerifiedLog): object {
  const heads = compared.map((one: Compared) => ({
    what: one.what,
    ok: one.fault === undefined,
    position: one.fault === undefined ? one.checkpoint.position : null,
    fault: one.fault ?? null,
  }));
  return { ok, checked, head, fault: fault ?? null, heads };
}

/**
 * Parses the public key that an option gives, as text or as the path of a file. Throws a ServiceError (usage) if it is
 * no key.
 */
export function readKeyOption<Key>(option: string, given: string, parse: (text: string) => Key): Key {
  try {
    return parse(existsSync(given) ? readFileSync(given, "utf8").trim() : given);
  } catch (fault) {
    throw fault instanceof SigningKeyRefused ? usageError(`${option}: ${fault.message}`) : fault;
  }
}
