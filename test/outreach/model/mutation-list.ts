/** Edit of a source file: replaces a text that occurs once in the file. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Edits of the sources that break one rule of the outreach protocol. */
export interface Mutation {
  /** True if the search for a history that breaks the rule generates only histories about campaigns. */
  readonly isOfCampaigns?: true;
  readonly name: string;
  readonly edits: readonly Edit[];
}

const HANDLE = "src/log/decide-and-append.ts";
const DECIDE = "src/outreach/decide.ts";
const SEND = "src/outreach/send.ts";
const LIMITS = "src/outreach/quota-and-reasons-to-end-run.ts";
const WINDOW = "src/outreach/send-window.ts";
const RECOVERY = "src/outreach/recover-dead-run.ts";
const RECONCILE = "src/outreach/settle-messages-in-doubt.ts";
const QUOTA = "projections/quota.ts";
const CONTEXT = "src/outreach/run-context.ts";
const QUOTA_DAY = "src/outreach/quota-day.ts";
const CONTACTS = "projections/contacts.ts";
const RESTORED = "src/outreach/find-what-restored-log-lacks.ts";
const SUPPRESS = "src/recipients/suppress.ts";
const SCREENING = "src/outreach/screening.ts";
const RECORD_RESTORE = "src/log/notice-and-record-restore.ts";
const START_RUN = "src/outreach/start-run.ts";
const INSTANCES = "src/log/instance-heartbeats.ts";
const LOG_CLOCK = "src/log/log-time-and-clock-skew.ts";
const CIRCLES = "src/outreach/sources/paged-source.ts";

const one = (name: string, file: string, from: string, to: string): Mutation => ({ name, edits: [{ file, from, to }] });

const TAKE_PLACE = "      state.days.set(day, usedOn(state, day) + 1);\n";

const CAMPAIGN_RULES = "src/outreach/campaigns/recipient-refusal-rules.ts";
const DECIDED = "src/outreach/decide.ts";

/** Mutations that remove one rule of campaigns each. */
const OF_CAMPAIGNS: readonly Mutation[] = [
  one("a campaign writes to a recipient again", CAMPAIGN_RULES, 'if (status === "open") return undefined;', "return;"),
  one("campaigns keep no gap", DECIDED, "refuseTooSoon(state, contact, rules)", "undefined"),
  one("a campaign's longer gap is ignored", CAMPAIGN_RULES, "?.gap_days ?? 0);", "?.ms ?? 0);"),
  one(
    "a campaign needs no evidence of consent",
    "projections/contact-outreach-by-campaign.ts",
    "return campaign !== undefined || requireConsent ===",
    "return requireConsent ===",
  ),
  one(
    "a consent for one campaign holds for all",
    "projections/consent.ts",
    "record.consent_for === undefined ? record.basis : undefined",
    "record.basis",
  ),
  one(
    "a withdrawal that names a campaign ends nothing",
    "projections/consent.ts",
    "if (basis === undefined) return before;",
    'if (basis === undefined || (basis === "none" && name !== undefined)) return before;',
  ),
  one("the audience leaves out no recipient", DECIDED, "refuseLeftOut(state, contact, rules) ??", ""),
  one(
    "a reply ends no chain of follow-ups",
    CAMPAIGN_RULES,
    "if (chain.some(([, outreach]) => hasAnswered(contact, outreach)))",
    "if (false)",
  ),
  one(
    "follow-ups come without end",
    CAMPAIGN_RULES,
    "return sent.length < FOLLOW_UPS_MAX ?",
    "return sent.length < 9 ?",
  ),
  one(
    "a follow-up goes out after a reply to the message before",
    "src/outreach/send.ts",
    "if (refuseFollowUp(state, contact, context.rules) !== undefined)",
    "if (false)",
  ),
  one(
    "an ended campaign starts a run",
    DECIDED,
    'if (campaign !== undefined && campaign.ended_at !== null) return "campaign_ended";',
    "",
  ),
  one(
    "recipients join a run of another campaign",
    "src/outreach/requested/join-run.ts",
    " && current.campaign === campaign",
    "",
  ),
  one(
    "an outcome counts for the newest campaign",
    "projections/contact-outreach-by-campaign.ts",
    "if (own === contact) return change(contact);",
    "if (contact) return change(contact);",
  ),
  one(
    "a late reply answers the newest message only",
    CONTACTS,
    "for (const [campaign] of answered) changeOutreach(contact, campaign,",
    "for (const [campaign] of answered.slice(0, 1)) changeOutreach(contact, campaign,",
  ),
];

export const MUTATIONS: readonly Mutation[] = [
  ...OF_CAMPAIGNS.map((mutation) => ({ ...mutation, isOfCampaigns: true as const })),
  one(
    "the intent is not recorded",
    SEND,
    "await handle(context, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX })",
    "decide()",
  ),
  one("a run goes on that was asked to stop", START_RUN, "tasks.stopping, stop.requested]", "tasks.stopping]"),
  one("a decision names no version", HANDLE, "{ ...key, ...fence, expected: version }", "{ ...key, ...fence }"),
  one("a decision names no lease", HANDLE, "{ ...key, ...fence, expected: version }", "{ ...key, expected: version }"),
  {
    name: "a place is taken only by what was sent",
    edits: [
      { file: QUOTA, from: TAKE_PLACE, to: "" },
      {
        file: QUOTA,
        from: "      state.open.delete(event.data.attempt_id);\n      if (event.data.settled_by",
        to: '      const day = state.open.get(event.data.attempt_id) ?? "";\n      state.days.set(day, usedOn(state, day) + 1);\n      state.open.delete(event.data.attempt_id);\n      if (event.data.settled_by',
      },
    ],
  },
  one(
    "a doubt gives its place back",
    QUOTA,
    "      postpone(state, event.data.attempt_id, msOf(event.time));\n    } else",
    '      const day = state.open.get(event.data.attempt_id) ?? "";\n      state.days.set(day, usedOn(state, day) - 1);\n    } else',
  ),
  one(
    "a changed time zone has a day of its own at once",
    QUOTA,
    "  if (!isAfterChange(state, moment)) return usedOn(state, moment.day);",
    "  if (true) return usedOn(state, moment.day);",
  ),
  one(
    "days count again with the first message of another time zone",
    QUOTA,
    "moment.ms < changed_at + QUOTA_WINDOW_MS",
    "moment.ms < changed_at",
  ),
  {
    // Removes two checks, because either one alone keeps the daily limit: one before each message, and one by which a
    // run looks up no more people than the day has places for.
    name: "the day's places are counted only before a batch",
    edits: [
      {
        file: DECIDE,
        from: "if (end !== undefined) return { refusal: { end } };",
        to: "",
      },
      {
        file: SCREENING,
        from: "Math.min(LOOKUP_BATCH, Math.max(1, left()))",
        to: "LOOKUP_BATCH",
      },
    ],
  },
  one(
    "who is suppressed is known as of the run's start",
    DECIDE,
    "const verdict = judgeUser(state, rules, user);",
    "const seen = ((rules as any).seen ??= structuredClone(state.contacts));\n  const verdict = judgeUser({ ...state, contacts: seen }, rules, user);",
  ),
  one(
    "a suppression is not looked for before each request",
    SEND,
    'if (isSuppressed(state, context.rules, attempt.recipient)) return "suppressed";',
    "",
  ),
  one(
    "the linked account is not looked at before each request",
    SEND,
    'if (state.account.user?.id !== context.accountId) return "other_account";',
    "",
  ),
  one(
    "an outcome is recorded although the attempt is settled",
    SEND,
    'if (attempt === undefined || (newEvent.type === "DirectMessageInDoubt" && attempt.in_doubt)) return { events: [] };',
    "",
  ),
  {
    name: "what is absent counts as sent",
    edits: [
      { file: RECONCILE, from: "if (found !== undefined) {", to: "if (found !== undefined || isLast) {" },
      { file: RECONCILE, from: "message_id: found.id,", to: 'message_id: found?.id ?? "0",' },
    ],
  },
  one("what is absent is sent again", RECONCILE, "    retry: false,", "    retry: true,"),
  one(
    "a doubt counts as a failure, to be tried again",
    "src/outreach/outcomes/decide-send-outcome.ts",
    'return { newEvent: { type: "DirectMessageInDoubt", data: { ...attempt, detail: result.detail } } };',
    'return { newEvent: failed("unreachable", result.detail, true) };',
  ),
  one("a dead run's attempts are not marked in doubt", RECONCILE, "  await markInDoubt(context, attempts);\n", ""),
  one(
    "a dead run is closed without a look at what it left open",
    RECOVERY,
    "await settleOpen(context, waiting, callerOfLookup)",
    "await Promise.resolve(undefined)",
  ),
  {
    name: "conversations are read at once",
    edits: [
      { file: RECONCILE, from: "context.clock()) + context.settleMs;", to: "context.clock());" },
      { file: RECONCILE, from: "notBefore = context.clock() + context.settleMs;", to: "notBefore = 0;" },
    ],
  },
  one("one absent read is enough", RECONCILE, "const ABSENT_READS = 2;", "const ABSENT_READS = 1;"),
  one(
    "the lease is not looked at before a request",
    SEND,
    "const isOurs = await context.lease.keep(SEND_MS_MAX);",
    "const isOurs = () => true;",
  ),
  one(
    "the lease is looked at before the last wait",
    SEND,
    "const isOurs = await context.lease.keep(SEND_MS_MAX);",
    "const lasted = (await context.lease.keep(SEND_MS_MAX))();\n  const isOurs = () => lasted;",
  ),
  one(
    "an answer about the lease is believed however late it is",
    "src/log/leases-and-roles.ts",
    "return sinceMs >= 0 && Math.max(sinceMs, elapsedMs() - asked.elapsed) < ttlMs - ms;",
    "return true;",
  ),
  one(
    "reconciling takes the lease of the run that goes on",
    RECOVERY,
    "const lease = await takeRunLease(context, context.makeId(), steal);",
    'const lease = await takeRunLease(context, current?.run_id ?? "", steal);',
  ),
  one("the day is that of UTC", CONTEXT, "...momentIn(context.timezone,", '...momentIn("UTC",'),
  one(
    "the day is that of the clock alone",
    QUOTA_DAY,
    'return Math.max(clock(), newestMs(projector.state("quota"), projector.time));',
    "return clock();",
  ),
  one(
    "the day is that of the machine's clock",
    QUOTA_DAY,
    "function newestMoment({ projector, clock }: StateContext): number {\n  return Math.max(clock(), newestMs(",
    "function newestMoment({ projector, wallClock: clock = Date.now }: StateContext): number {\n  return Math.max(clock(), newestMs(",
  ),
  one(
    "a run starts on a machine whose clock is wrong",
    START_RUN,
    "if (isSkewed(skewMs)) {",
    "if (isSkewed(skewMs - skewMs)) {",
  ),
  one(
    "the clocks are not compared before a request",
    SEND,
    'if (isSkewed(context.skewMs())) return "clock_skewed";\n',
    "",
  ),
  one(
    "the newest event is not compared with the machine's clock",
    LOG_CLOCK,
    "return newest === undefined ? -Infinity : Date.parse(newest);",
    "return newest === undefined ? -Infinity : -Infinity;",
  ),
  one(
    "a lease tells nothing of the log's time",
    LOG_CLOCK,
    "if (lease !== undefined) learn(",
    "if (lease === null) learn(",
  ),
  one("a wait over midnight sends on the old day", SEND, 'if (now.day !== day) return "day_over";', ""),
  one(
    "an answer in doubt is repeated like a 401",
    "src/account/tokens.ts",
    'if (result.outcome !== "unauthorized") return result;',
    'if (result.outcome !== "unauthorized" && result.outcome !== "in_doubt") return result;',
  ),
  one("the inbox is not read", SCREENING, "  await readNewMessages(run, retry);\n", ""),
  one(
    "the inbox is read without the late",
    "src/outreach/read-and-record-inbox-messages.ts",
    "const LATE_MS = 10 * 60_000;",
    "const LATE_MS = -3_600_000;",
  ),
  {
    // Disables all three places that suppress a recipient by name after a hash of the recipient was found in the log or
    // in an imported list. Each place is needed: after a later change of handle, the hash no longer fits.
    name: "a recipient who is suppressed by hash is named neither by a list, a message nor a skip",
    edits: [
      { file: SUPPRESS, from: "recipients.filter(isFound)", to: "recipients.filter(() => false)" },
      {
        file: DECIDE,
        from: "return [...createDecision(hashes)(state.contacts, records), ...skips, ...passed];",
        to: "return [...skips, ...passed];",
      },
      {
        file: "src/recipients/import-suppressions.ts",
        from: "if (records.size === 0) return;",
        to: "if (records.size >= 0) return;",
      },
    ],
  },
  one("a held recipient is written to", DECIDE, "if (contact?.held === true) return", "if (false) return"),
  one("a hold is not looked for before each request", SEND, 'if (contact?.held === true) return "held";', ""),
  one(
    "an opt-out is not recorded where a hash suppresses the recipient",
    "src/outreach/read-and-record-inbox-messages.ts",
    'if (wish === "stop")\n',
    'if (wish === "stop" && state.contacts.hashes.size === 0)\n',
  ),
  one(
    "a page to opt out answers while a message is on its way",
    "src/recipients/opt-out-and-untrack-by-page.ts",
    "  await untilNotInFlight(context, id);\n",
    "",
  ),
  one("a restored log lacks an opt-out", SCREENING, "  await recordKeptOptOuts(run);\n", ""),
  one(
    "a recipient who is found twice is judged twice",
    SCREENING,
    ": seen.has(user.id)) continue;",
    ": false) continue;",
  ),
  one(
    "a run ends without an outcome for a requested recipient",
    "src/outreach/requested/recipients-named-in-trigger.ts",
    "{ events: [...toNotReached(current, end.data.run_id, left), end, ...report] }",
    "{ events: [end, ...report] }",
  ),
  one(
    "a run for named recipients is for all",
    SCREENING,
    'end !== undefined || run.projector.state("run").current?.recipients !== undefined',
    "end !== undefined",
  ),
  one(
    "a retry is allowed whatever came of it",
    "projections/contacts.ts",
    'if (outreachIn(contact, campaign)?.status !== "failed") return contact;',
    "",
  ),
  one(
    "a run starts although one is open in the log",
    "src/outreach/start-run.ts",
    'if (context.projector.state("run").current !== null) return undefined;',
    "",
  ),
  one(
    "the stats leave out what a look at the conversation found",
    "projections/message-totals.ts",
    "if (kind !== undefined) totals[kind]++;",
    'if (kind !== undefined && (type !== "DirectMessageSent" || data.settled_by === "answer")) totals[kind]++;',
  ),
  one(
    "no event says that the log was restored",
    RECORD_RESTORE,
    'if (store.begunAs === "new" || (await findLast(store, "LogRestored"))?.data.epoch === store.epoch) return;',
    "if (store.epoch !== undefined) return;",
  ),
  one(
    "an import counts as a new log",
    RECORD_RESTORE,
    'if (store.begunAs === "new" ||',
    'if (store.begunAs !== "restore" ||',
  ),
  one(
    "the day of a restore is as any other",
    RESTORED,
    "  if (restored === undefined) return false;",
    "  if (restored !== 0) return false;",
  ),
  one(
    "no message is looked for after a restore",
    RESTORED,
    'if (restored === undefined || run.clock() - restored > VISIBLE_FOR_MS) return "none";',
    'if (restored === undefined || run.clock() > 0) return "none";',
  ),
  one(
    "who was attempted before is not looked for after a restore",
    RESTORED,
    "  const own = outreachState(run).account.user?.id;\n",
    '  const own = outreachState(run).account.user?.id;\n  const known = [...outreachState(run).contacts.people.values()].find(({ id }) => id === user.id);\n  if (known?.attempted_at !== undefined) return "none";\n',
  ),
  one(
    "what was found after a restore closes no recipient",
    CONTACTS,
    "if (found === undefined) return;",
    "if (contact) return;",
  ),
  one("the key file is not asked who was forgotten", "src/outreach/decide.ts", " || isForgotten(recipient);", ";"),
  one(
    "forget takes the keys of a handle that another person has",
    "src/privacy/forget-person-or-address.ts",
    "    .filter(isHeld)\n",
    '    .filter((handle) => isHeld(handle) || handle !== "")\n',
  ),
  one(
    "forget takes what was recorded by a handle of those who had it before",
    "src/privacy/person-keys.ts",
    "one !== toBaseRef(one) && !spared.has(one)",
    "one !== toBaseRef(one)",
  ),
  one(
    "an intent is recorded although the window is closed",
    DECIDE,
    "if (isClosedFor(rules.window, contact, now)) return { refusal: { end: undefined, isWindowClosed: true } };",
    "",
  ),
  one("the window is not looked at before each request", SEND, 'return isClosed ? "window_closed" : undefined;', ""),
  one(
    "a run starts although the window is closed",
    DECIDE,
    'return refusesStart(rules.window, now) ? "window_closed" : "start";',
    'return "start";',
  ),
  one("a recipient's own zone does not count", WINDOW, "(own ?? timezone)", "timezone"),
  one(
    "the window counts from midnight, as if clocks never changed",
    WINDOW,
    "const { dayOfWeek, hour, minute } = toZone(timezone, ms);",
    'const midnight = toZone(timezone, ms).startOfDay();\n  const { dayOfWeek, hour, minute } = toZone("UTC", ms + midnight.offsetNanoseconds / 1e6);',
  ),
  one(
    "the window goes by the newest event alone",
    WINDOW,
    "return !isOpen(hours, timezone, ms) || !isOpen(hours, timezone, clockMs);",
    "return !isOpen(hours, timezone, ms);",
  ),
  one(
    "who waits for the window is not met again",
    SCREENING,
    'if (written === "closed") seen.delete(user.id);',
    'if (written === "closed") continue;',
  ),
  one("a run sends one message beyond its limit", LIMITS, "run.limit - run.places", "run.limit + 1 - run.places"),
  one("a limit counts only what was surely sent", LIMITS, "run.limit - run.places", "run.limit - run.sent"),
  one("a limit counts what was not sent", "projections/current-run.ts", "if (frees_quota) current.places--;", ""),
  one("failures end no run", LIMITS, "return stopAfterFailures !== undefined && tries", "return false && tries"),
  one(
    "what was never asked for counts as a failure",
    LIMITS,
    "const failures = failed - withdrawn;",
    "const failures = failed;",
  ),
  one(
    "a run for one basis writes to all",
    LIMITS,
    "wanted.basis === undefined || wanted.basis === found.basis",
    "true",
  ),
  one(
    "a run for one source writes to all",
    LIMITS,
    "(wanted.source === undefined || wanted.source === found.source)",
    "true",
  ),
  one(
    "the projection does not mark who was forgotten",
    CONTACTS,
    "      mark(state, event.data.hashes, change);\n",
    "",
  ),
  one(
    "one person's refusal is the account's",
    LIMITS,
    "export const REFUSED_IN_A_ROW_MAX = 5;",
    "export const REFUSED_IN_A_ROW_MAX = 1;",
  ),
  one(
    "one fault of a read ends the run",
    "src/outreach/pacing-and-retries.ts",
    "export const READ_ATTEMPTS_MAX = 7;",
    "export const READ_ATTEMPTS_MAX = 1;",
  ),
  one(
    "cursors are followed wherever they lead",
    CIRCLES,
    "return isRepeated || emptyInARow >= EMPTY_PAGES_MAX ? undefined : next;",
    "return next;",
  ),
  one(
    "an intent that the log refuses is sent all the same",
    HANDLE,
    "      if (!(fault instanceof VersionConflict)) throw fault;\n",
    '      if (fault instanceof Error && fault.name === "StoreFull") return { events, appended: undefined };\n      if (!(fault instanceof VersionConflict)) throw fault;\n',
  ),
  one(
    "what was taken right before a restore is not waited for",
    RESTORED,
    " || sinceMs < context.settleMs) return true;",
    ") return true;",
  ),
  one(
    "a server's log that is a copy goes on as the log it is of",
    RECORD_RESTORE,
    "if (!(await place.isElsewhere())) return;",
    "if ((await place.isElsewhere()) !== undefined) return;",
  ),
  one(
    "an operator's word that the log was put back counts for nothing",
    RECORD_RESTORE,
    'if (store.begunAs === "new" ||',
    'if (store.begunAs === "new" || store.begunAs === "operator" ||',
  ),
  one(
    "a log is replaced without a look for a living instance",
    INSTANCES,
    "if (living === undefined) return;",
    "if (living !== null) return;",
  ),
  one(
    "an instance is taken for dead between two heartbeats",
    INSTANCES,
    "const DEAD_AFTER_MS = 30_000;",
    "const DEAD_AFTER_MS = 0;",
  ),
  one(
    "an instance goes on with a log that another one was put in the place of",
    "src/log/watch-for-lost-or-replaced-log.ts",
    'if (presence === "same") return undefined;',
    'if (presence === "same" || presence === "replaced") return undefined;',
  ),
];
