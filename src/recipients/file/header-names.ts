// Column names that people and programs write, by the column of ours that they mean.
import { fieldName } from "../../template/normalize-field.ts";
import { CONSENT_MEMBERS } from "../parse-consent.ts";

/** Column names of files, separated by commas, for each column of ours. */
type Names = Readonly<Record<string, string>>;

/** Column names of a file that can only mean this one column of ours. */
const CERTAIN: Names = {
  username: "handle, user name, x handle, x username, twitter handle, twitter username, screen name",
  id: "x id, x user id, twitter id, twitter user id",
  timezone: "time zone",
};

/**
 * Column names of a file that mean this column of ours, unless another name in the header means it more clearly; then
 * they become template fields.
 */
const LIKELY: Names = {
  username: `
    twitter, twitter url, twitter link, twitter profile, twitter profile url, twitter account, x url, x link,
    x profile, x profile url, x account, x (twitter), twitter (x), x / twitter, twitter page, twitter/x handle,
    x/twitter handle, twitter/x url, x twitter handle, twitter screen name`,
  code: "short code, slug, back half",
  target: "url, long url, original url, destination, destination url, target url",
};

/**
 * Column names of a file that may mean this column of ours or something else. The import asks the operator, because a
 * wrong guess could change a consent.
 */
const ASKED: Names = {
  name: "first name, full name, display name, given name, contact name, vorname, prénom, nombre, nome",
  basis: `
    opt in, opted in, opt in status, opt in type, consent, consent given, consent status, consented,
    gdpr consent, marketing consent, email opt in, legal basis, lawful basis, consent basis, permission status,
    permission, gdpr, subscribed, accepts marketing, marketing permissions, einwilligung, consentement,
    legal basis for processing contact's data`,
  consent_at: `
    opt in date, opt in time, opt in date/time, date opted in, date of opt in, opt in timestamp, opt in at, opt in on, opted in at, opted in on, opted in date,
    consent date, consent time, consent timestamp, date of consent, consented at, consented on,
    gdpr consent date, confirm time, datum der einwilligung, einwilligung am`,
  consent_source: "opt in source, opt in url, consent url, consent form, consent origin",
  consent_text: "opt in text, opt in wording, consent wording, consent statement, consent version",
  consent_for: "consent for, consent topic, opt in topic",
  tracking: "tracking consent, tracking opt in, tracking allowed, consent to tracking, click tracking",
  tracking_at: "tracking date, tracking consent date, tracking consent at",
  tracking_source: "tracking consent source",
  tracking_text: "tracking consent text",
  suppressed_at: `
    suppressed on, suppression date, unsubscribed at, unsubscribed on, unsubscribe date, unsubscribe time,
    unsub time, opt out date, opt out time, opted out at, opted out on, date`,
  reason: "why, note, notes, comment, comments, unsubscribe reason, unsub reason, opt out reason, suppression reason",
};

/**
 * Column names that a preview assigns to this column of ours, for the operator to check. An import without a preview
 * makes them template fields.
 */
const GUESSED: Names = {
  name: "firstname, contact, person, recipient, prenom",
  consent_at: "date, signup date, sign up date, subscribed at, created at",
  consent_source: "source, signup source, sign up source, lead source, quelle",
};

/**
 * Column names of a file that may mean the column which identifies a row. The import asks the operator if no other name
 * in the file means that column.
 */
const MISSED: Names = {
  username: `
    user, account, account name, x, profile, profile url, profile link, x profile link, username (x), handle (x),
    username (twitter), handle (twitter), x username (without @), twitter username (without @), x account name,
    your x handle, your x username, your twitter handle, what is your x handle?, social handle, social media handle,
    social profile, nickname, benutzername, nutzername, nom d'utilisateur, usuario, nome utente`,
  id: "user id, account id, x account id, twitter account id, numeric id",
  code: "short link, short url, shortlink url, alias, key, keyword, path, custom link",
  target:
    "link, redirect, redirect url, redirect to, website, website url, landing page, address, web address, points to",
};

/** Names of columns that say, in each row, if the recipient opted out. */
const OPT_OUT = `
  opt out, opted out, has opted out, email opt out, has opted out of email, unsubscribed, dnc,
  unsubscribed from all email, do not contact, do not message, do not email, do not mail, suppressed,
  marketing opt out, blocklisted, blacklisted, opt out status, unsubscribe status, abgemeldet`;

/** Reduces a column name to letters and digits, so that `Opt-in Date`, `opt_in_date` and `OptInDate` are one name. */
export function compactName(raw: string): string {
  return fieldName(raw).replace(/[^\p{L}\p{N}]+/gu, "");
}

const compactNames = (all: string): readonly string[] => all.split(",").map(compactName);

function byCompactName(names: Names): ReadonlyMap<string, string> {
  return new Map(Object.entries(names).flatMap(([column, all]) => compactNames(all).map((name) => [name, column])));
}

/**
 * Our columns whose names programs also write without separators, such as `consentAt`. `id` is missing, because an
 * `ID#` in a file is often the id of another program.
 */
const COLUMNS = [..."username name timezone hash reason suppressed_at code target".split(" "), ...CONSENT_MEMBERS];

const CERTAIN_BY_NAME = new Map([...COLUMNS.map((one) => [compactName(one), one] as const), ...byCompactName(CERTAIN)]);
const LIKELY_BY_NAME = byCompactName(LIKELY);
const ASKED_BY_NAME = byCompactName(ASKED);
const GUESSED_BY_NAME = byCompactName(GUESSED);
const MISSED_BY_NAME = byCompactName(MISSED);
const OPT_OUT_NAMES: ReadonlySet<string> = new Set(compactNames(OPT_OUT));

/** Returns the one of the `known` columns that a header's name certainly means; undefined if there is none. */
export function certainColumn(raw: string, known: ReadonlySet<string>): string | undefined {
  const snake = fieldName(raw).replace(/[ _-]+/g, "_");
  if (known.has(snake)) return snake;
  const column = CERTAIN_BY_NAME.get(compactName(raw));
  return column !== undefined && known.has(column) ? column : undefined;
}

/**
 * Returns the column that a header's name means unless another name means it more clearly; undefined if there is none.
 */
export function likelyColumn(raw: string): string | undefined {
  return LIKELY_BY_NAME.get(compactName(raw));
}

/**
 * Returns the column that a header's name may mean, about which the import asks the operator; undefined if there is
 * none.
 */
export function askedColumn(raw: string): string | undefined {
  return ASKED_BY_NAME.get(compactName(raw));
}

/** Returns the column to which a preview assigns a header's name; undefined if there is none. */
export function guessedColumn(raw: string): string | undefined {
  return askedColumn(raw) ?? GUESSED_BY_NAME.get(compactName(raw));
}

/**
 * Returns the identifying column that a header's name may mean, for files in which no name means it clearly; undefined
 * if there is none.
 */
export function missedColumn(raw: string): string | undefined {
  return MISSED_BY_NAME.get(compactName(raw));
}

export function isOptOutColumn(raw: string): boolean {
  return OPT_OUT_NAMES.has(compactName(raw));
}
