import { existsSync } from "node:fs";
import { join } from "node:path";
import { harnessesOf, STARTING_PROCESSES, testFiles } from "./harness-of-each-test.ts";
import { importsOf, sourceFiles } from "./imports.ts";

/**
 * Tests of files and folders of `src` that have no test at the same path. The longest matching entry counts. An entry
 * for a folder applies to a file only if no test in the same top-level folder of `test` imports the file.
 */
export const TESTED_AT: Readonly<Record<string, string>> = {
  "console/parts/verification-result.tsx": "console/parts/log-verification-and-downloads",
  "http/access/check-host-load-and-caller.ts": "http/access/routes-hosts-and-request-ids",
  "vault/derive-keys.ts": "vault/master-key",
  "operations.ts": "operations-answer-alike-everywhere",
  "privacy/open-log.ts": "privacy/start-opens-key-files-once",
  "outreach/campaigns/parse-campaign-text.ts": "outreach/campaigns/campaign-texts-topics-and-changes",
  "outreach/start-run.ts": "outreach/runs-quota-and-repeated-triggers",
  "account/refresh-tokens.ts": "account/token-lease",
  "http/features/opt-out-answer.tsx": "http/features/opt-out",
  "recipients/opt-out-and-untrack-by-page.ts": "http/features/opt-out",
  "backup/": "backup/increments",
  "backup/remote-object-names.ts": "backup/remote-backups",
  "backup/parse-backup-place.ts": "backup/remote-increments",
  "backup/make-or-verify-backup.ts": "commands/backup-migrate-and-archive",
  "backup/put-backup-in-place.ts": "commands/restore-and-clock-corrected",
  "backup/rehearse-restore.ts": "commands/restore-and-clock-corrected",
  "backup/restore.ts": "commands/restore-and-clock-corrected",
  "commands/shared/ask-service.ts": "process/ask-service",
  "commands/audit/prove-and-check-proofs.ts": "commands/prove",
  "commands/audit/verify.ts": "process/verify-log-against-signed-head",
  "commands/development/load-sandbox-and-postgres.ts": "process/npm-package",
  "commands/development/open-log-for-invented-history.ts": "sandbox/busy-story",
  "commands/shared/print-findings.ts": "commands/doctor",
  "commands/account.ts": "operations-answer-alike-everywhere",
  "commands/mcp.ts": "process/mcp",
  "commands/mcp/": "process/mcp",
  "commands/shared/operation-command.ts": "operations-answer-alike-everywhere",
  "http/server/serve-operation.ts": "operations-answer-alike-everywhere",
  "commands/shared/run-operation.ts": "operations-answer-alike-everywhere",
  "account/account.operations.ts": "operations-answer-alike-everywhere",
  "links/links.operations.ts": "operations-answer-alike-everywhere",
  "outreach/quota-runs-and-settling.operations.ts": "operations-answer-alike-everywhere",
  "outreach/report/send-team-report.operations.ts": "outreach/make-team-report",
  "history/sentences/word-run-report-for-chat.ts": "outreach/make-team-report",
  "privacy/forget-clicks-of-address.operations.ts": "operations-answer-alike-everywhere",
  "privacy/list-api-tokens.operations.ts": "commands/token",
  "outreach/campaigns/campaigns.operations.ts": "operations-answer-alike-everywhere",
  "outreach/campaigns/campaign-json.ts": "console/pages/campaign-list-and-page",
  "outreach/campaigns/count-audience.ts": "console/pages/campaign-list-and-page",
  "outreach/campaigns/read-campaigns.ts": "console/pages/campaign-list-and-page",
  "commands/campaigns.ts": "operations-answer-alike-everywhere",
  "outreach/preview.operations.ts": "commands/outreach-preview",
  "recipients/recipients.operations.ts": "operations-answer-alike-everywhere",
  "recipients/recipient-json.ts": "operations-answer-alike-everywhere",
  "recipients/preview-import.ts": "console/pages/import",
  "recipients/file/preview-columns-and-dates.ts": "console/pages/import",
  "recipients/file/parse-column-choices.ts": "http/features/import-and-held-recipients",
  "http/features/import-preview.ts": "http/features/import-and-held-recipients",
  "http/features/keep-file-in-form.ts": "console/pages/import",
  "history/stats-and-clicks.operations.ts": "operations-answer-alike-everywhere",
  "history/event-json.ts": "recipients/history-and-event-effects.operations",
  "platform/operation.ts": "operations-answer-alike-everywhere",
  "projector/operation-states-as-of.ts": "operations-answer-alike-everywhere",
  "projector/moment-of-console-page.ts": "console/page-reads-states",
  "platform/sorted-page.ts": "recipients/recipient-list-and-page",
  "outreach/attention/recent-operator-decisions.ts": "console/pages/attention",
  "outreach/attention/read-attention.ts": "console/pages/attention",
  "outreach/requested/": "outreach/requested/recipients-named-in-trigger",
  "outreach/run-and-dry-run-page-data.ts": "console/overview-run-status-and-buttons",
  "outreach/dry-run/estimate-next-run.ts": "console/overview-run-status-and-buttons",
  "config/optional-parts.ts": "console/pages/setup",
  "commands/outreach/reconcile.ts": "process/watch-stop-and-reconcile",
  "commands/outreach/watch.ts": "commands/outreach-watch",
  "commands/shared/program-invocation.ts": "commands/shared/root-command",
  "commands/shared/progress.ts": "commands/replay",
  "config/parse-what-if-rules.ts": "commands/what-if",
  "outreach/what-if/": "outreach/what-if/matches-run-by-other-rules",
  "outreach/what-if/answer-what-if.ts": "commands/what-if",
  "outreach/what-if/report.ts": "commands/what-if",
  "commands/ready.ts": "process/ask-service",
  "commands/recipients/": "commands/recipients",
  "commands/recipients/import-export-suppressions.ts": "commands/suppressions",
  "commands/setup/print-default-settings.ts": "process/binary",
  "commands/shared/write-text-and-new-files.ts": "process/backup-export-import",
  "config/": "config/config",
  "config/load-env-file.ts": "process/env-file",
  "backup/import-exported-events.ts": "audit/export-import-round-trip",
  "config/edit-tokens-file.ts": "commands/token",
  "config/parse-api-tokens.ts": "commands/token",
  "console/": "console/overview-people-and-every-page",
  "console/pages/api-reference.tsx": "browser/console",
  "console/parts/channel-status.tsx": "browser/console",
  "console/render-console.ts": "console/forms",
  "console/parts/dead-letter-actions.tsx": "console/pages/deliveries",
  "console/pages/error-page.tsx": "console/forms",
  "console/pages/import-form-and-preview.tsx": "console/pages/import",
  "console/pages/overview-and-attention.tsx": "browser/console",
  "console/parts/event-sentence.tsx": "console/sentences",
  "console/parts/recipient-actions.tsx": "console/pages/people",
  "console/parts/run-card.tsx": "console/overview-run-status-and-buttons",
  "console/parts/run-form.tsx": "console/overview-run-status-and-buttons",
  "console/parts/setup-steps.tsx": "console/pages/setup",
  "console/pages/sign-in.tsx": "console/sign-out",
  "delivery/attempt-dispatches.ts": "delivery/dispatcher-retry",
  "delivery/in-flight.ts": "delivery/dispatcher-batches-and-digests",
  "delivery/dispatch-status.ts": "commands/deliveries-and-test-message",
  "delivery/retry-discard-settle.operations.ts": "commands/deliveries-and-test-message",
  "delivery/deliveries-lag-and-resume.operations.ts": "commands/deliveries-and-test-message",
  "delivery/letter-filter-input.ts": "http/features/list-and-decide-dead-letters",
  "delivery/channel-lag.ts": "commands/channel-lag",
  "history/": "history/history-of-recipient-link-or-event",
  "history/run-list-and-page.ts": "console/pages/run-list-and-page",
  "history/log-and-news-pages.ts": "console/pages/activity",
  "history/causes-and-effects.ts": "console/pages/activity",
  "history/chart-figures.ts": "console/parts/charts",
  "history/link-list-and-page.ts": "console/pages/link-list-and-page",
  "history/tally-clicks-and-bot-bursts.ts": "history/news",
  "history/news-severity-and-words.ts": "history/news",
  "history/sum-replies-clicks-and-conversions.ts": "console/pages/results",
  "history/search-by-id-or-name.ts": "console/pages/find",
  "history/log-filter.ts": "console/activity-filter-and-export",
  "history/select-events.ts": "audit/export-import-round-trip",
  "history/sentences/": "history/event-sentences",
  "http/features/": "http/endpoints",
  "http/features/verify-log-and-download-proofs.ts": "console/parts/log-verification-and-downloads",
  "http/streams/file-stream.ts": "console/activity-filter-and-export",
  "http/server/": "http/arbitrary-requests",
  "http/server/form-routes.ts": "console/forms",
  "http/server/node-server.ts": "http/access/routes-hosts-and-request-ids",
  "links/conversion-attribution.ts": "http/features/conversions",
  "networks/messaging/whatsapp-statuses.ts": "http/features/whatsapp-statuses",
  "links/find-personal-link-of-click.ts": "http/features/redirect",
  "links/ad-network-visitor-ids.ts": "http/features/record-click-and-redirect",
  "networks/ads/": "networks/ads/bodies",
  "log/export-formats/": "audit/export-formats",
  "log/event-and-consistency-proofs.ts": "commands/prove",
  "log/witness-server.ts": "commands/witness",
  "main.ts": "process/command-line",
  "metrics/": "metrics/alerts-and-dashboard-metrics",
  "links/add-and-personalize-links.ts": "outreach/decide-turn",
  "networks/classify-graph-api-answer.ts": "networks/meta-answers",
  "networks/unpooled-fetch.ts": "networks/safe-fetch",
  "networks/chat/webhook.ts": "networks/channel-contract",
  "networks/x/read-messages.ts": "networks/x-inbox",
  "networks/x/send-get-request.ts": "networks/x/x-api",
  "networks/x/parse-users.ts": "networks/x-followers-members-and-authors",
  "outreach/task-tracker.ts": "outreach/one-run-at-a-time",
  "recipients/file/": "recipients/parse-imported-lists",
  "recipients/parse-day.ts": "recipients/parse-consent",
  "recipients/file/read-file-thread.ts": "process/import-real-files",
  "outreach/confirm-clock-after-future-events.ts": "process/clock-jump",
  "outreach/judge-recipients.ts": "commands/outreach-preview",
  "outreach/settle-messages-in-doubt.ts": "outreach/in-doubt",
  "outreach/screening.ts": "outreach/read-retries",
  "outreach/send.ts": "outreach/last-check-before-send",
  "platform/ip-address.ts": "http/access/rate-limit",
  "platform/common-schemas.ts": "http/endpoints",
  "platform/escape-control-characters.ts": "platform/logger",
  "platform/new-file.ts": "commands/audit-export-filters-and-errors",
  "platform/omit-undefined.ts": "delivery/attempt-outcome",
  "platform/describe-system-errors.ts": "commands/shared/exit-code",
  "log/progress-and-cancellation.ts": "backup/move-log",
  "platform/serial-queue.ts": "vault/rotation",
  "platform/decode-utf8.ts": "audit/read-lines",
  "platform/version.ts": "networks/user-agent",
  "privacy/": "privacy/keyring",
  "privacy/encrypt-on-writer.ts": "privacy/encrypted-events",
  "privacy/rotate-master-key.ts": "commands/master-key",
  "privacy/locate-log.ts": "privacy/start-opens-key-files-once",
  "privacy/find-lost-keys.ts": "commands/backup-migrate-and-archive",
  "projector/": "projector/projector",
  "projector/parse-day-range.ts": "history/results-by-group-and-interval",
  "service/": "service/start-with-changed-projections",
  "service/examine-installation.ts": "commands/doctor",
  "service/check-stored-data-is-readable.ts": "commands/upgrade-check",
  "service/examination-finding.ts": "commands/doctor",
  "service/fold-in-worker.ts": "log/rebuild-projections",
  "service/fold-thread.ts": "process/replay",
  "service/reconcile-messages.ts": "process/watch-stop-and-reconcile",
  "privacy/log-context-types.ts": "service/open-reachlog",
  "service/open-account-and-outreach.ts": "outreach/rate-limits-over-full-day",
  "vault/": "vault/postgres-secrets",
};

export interface Tested {
  /** Path of the tested file within `src`. */
  readonly file: string;
  /** Paths of the file's tests from the project's root. */
  readonly tests: readonly string[];
  /** The entry of {@link TESTED_AT} that names the tests; absent if they were found otherwise. */
  readonly entry?: string;
}

/**
 * Finds the tests of each file of `src`. The first hit counts: a test at the file's path, the file's entry in
 * TESTED_AT, importing tests in the folder of the same name, a folder's entry in TESTED_AT, any importing test.
 */
export function testsOf(root: string): readonly Tested[] {
  // A declaration file contains no code to run.
  const sources = sourceFiles(root).filter((file) => file.startsWith("src/") && !file.endsWith(".d.ts"));
  const tests = testFiles(root);
  const importers = Map.groupBy(importsOf(root, tests), ({ to }) => to);
  const entries = Object.keys(TESTED_AT).toSorted((a, b) => b.length - a.length);
  return sources.map((file) => {
    const path = file.slice("src/".length);
    const own = `test/${path.replace(/\.tsx?$/, "")}.test.ts`;
    if (existsSync(join(root, own))) return { file, tests: [own] };
    const declared = (entry: string): Tested => ({ file, tests: [`test/${TESTED_AT[entry]}.test.ts`], entry });
    if (TESTED_AT[path] !== undefined) return declared(path);
    const imported = (importers.get(file) ?? []).map(({ from }) => from);
    const room = file.split("/")[1];
    const ofRoom = imported.filter((test) => test.split("/")[1] === room);
    if (ofRoom.length > 0) return { file, tests: [...new Set(ofRoom)] };
    const entry = entries.find((folder) => path.startsWith(folder));
    return entry === undefined ? { file, tests: [...new Set(imported)] } : declared(entry);
  });
}

/** Returns a predicate: true if the test runs the file, in its own process or in one that it starts. */
export function createReach(root: string): (test: string, file: string) => boolean {
  const imported = Map.groupBy(
    importsOf(root, [...sourceFiles(root), ...new Bun.Glob("test/**/*.ts").scanSync(root)]),
    ({ from }) => from,
  );
  const harnesses = harnessesOf(root);
  return (test, file) => {
    if (STARTING_PROCESSES.has(harnesses.get(test) ?? "")) return true;
    const seen = new Set([test]);
    for (const one of seen) for (const { to } of imported.get(one) ?? []) seen.add(to);
    return seen.has(file);
  };
}
