/** A person on the sandbox's X. */
export interface Person {
  readonly id: string;
  readonly username: string;
  readonly name: string;
  /**
   * True if the person accepts our messages; false if not. Look-ups show the value. If absent, the person accepts them,
   * but look-ups do not say so.
   */
  readonly receives_your_dm?: boolean;
  /** True if X refuses a message to the person although the look-up showed that they accept messages. */
  readonly closed_when_sent?: boolean;
  /** True if X refuses a message to the person with the text that it also uses for a restricted account. */
  readonly not_permitted?: boolean;
  readonly protected?: boolean;
  readonly follows_you?: boolean;
  /** True if the person may authorize the app on the consent page. */
  readonly can_authorize?: boolean;
  /** False if the person's account is deleted or suspended: look-ups do not find it, and messages are refused. */
  readonly exists?: boolean;
  /** Newest post of the person, for searches. A changed text counts as a new post. */
  readonly post?: string;
}

export function exists(person: Person | undefined): person is Person {
  return person !== undefined && person.exists !== false;
}

function person(number: number, username: string, name: string, more: Partial<Person> = {}): Person {
  return {
    id: String(1_700_000_000_000_000_000n + BigInt(number) * 1_000n),
    username,
    name,
    receives_your_dm: true,
    ...more,
  };
}

/** Id of the only list on this X. It contains all people who cannot authorize the app. */
export const LIST_ID = "1750000000000000042";

/** People on this X at the start: those who can authorize the app, and those in the demo's sample list. */
export const CAST: readonly Person[] = [
  person(1, "acme_team", "Acme Team", { can_authorize: true }),
  person(2, "someone_else", "Someone Else", { can_authorize: true }),
  person(11, "ada_builds", "Ada Lovelace", { follows_you: true, post: "Who knows a good tool for link tracking?" }),
  person(12, "grace_codes", "Grace Hopper", { follows_you: true, post: "Notes from the compiler course" }),
  person(13, "linus_k", "Linus Karlsson", { post: "Link tracking without cookies: a thread" }),
  person(14, "mina_designs", "Mina Park", { follows_you: true }),
  person(15, "tomas_r", "Tomás Rivera", { post: "Our analytics plan for spring" }),
  person(16, "yuki_dev", "Yuki Tanaka"),
  person(17, "closed_carl", "Carl Closed", { receives_your_dm: false }),
  person(18, "late_lena", "Lena Late", { closed_when_sent: true, post: "Late again, but the link tracking works" }),
  person(19, "private_pia", "Pia Private", { protected: true, receives_your_dm: false }),
  person(20, "omar_writes", "Omar Haddad", { follows_you: true }),
  person(21, "sara_sells", "Sara Lind"),
  person(22, "ben_noconsent", "Ben Novak"),
];
