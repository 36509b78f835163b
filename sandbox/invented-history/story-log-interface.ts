/**
 * Event of the product as the story, a made-up history for the demo, writes it. The product checks that its data fits.
 */
export interface StoryEvent {
  readonly type: string;
  readonly data: object;
}

/** Recipient as the product's events name one. */
export interface StoryRecipient {
  readonly id: string;
  readonly username: string;
}

/** Short link in a message of the story. */
export interface StoryLink {
  readonly domain: string;
  readonly code: string;
  readonly target: string;
}

/** The message that a template makes for one recipient. */
export interface StoryMessage {
  readonly variant: string;
  /** Links of the template that the message contains. */
  readonly shared: readonly StoryLink[];
  /**
   * Codes of the recipient's personal links, one for each link in `shared` and in the same order. Empty if the message
   * was written without the argument `secret`, so that the recipient has no personal links.
   */
  readonly ownCodes: readonly string[];
  /** Members of the product's event of the intent to send the message. */
  readonly intent: { readonly text: string };
}

export interface StoryTemplate {
  /** Members that identify the template. The demo copies these members into the events of its invented history. */
  readonly names: object;
  /** Writes the message. With `secret`, the recipient gets links of their own, whose codes derive from it. */
  write(recipient: StoryRecipient, about: { name: string; fields: object }, secret?: string): StoryMessage;
}

/** The product's log, and the parts of the product that make the content of its events. */
export interface StoryLog extends AsyncDisposable {
  append(
    stream: string,
    events: readonly StoryEvent[],
    caller: string,
  ): Promise<{ readonly first: number; readonly ids: readonly string[] }>;
  head(): Promise<{ readonly position: number; readonly hash: string }>;
  openTemplate(text: string, name: string): StoryTemplate;
  /** Returns the number by which clicks of a link count their visitor on that day. */
  placeVisitor(link: string, visitor: { readonly ip: string; readonly userAgent: string }): Promise<number | undefined>;
  /** Returns keyed hashes of the recipient's names, as suppressions keep them. */
  hashesOf(recipient: StoryRecipient): readonly string[];
}

/** Messages on the simulated X, which gives each one an id. */
export interface StoryMailbox {
  /** Adds a message, and returns its id. */
  deliver(sender: string, recipient: string, text: string): string;
}

/** The product's names for its streams. */
export const STORY_STREAMS = {
  account: "account",
  outreach: "outreach",
  requests: "requests",
  access: "access",
  log: "log",
} as const;

/** Caller of the events that the product causes by itself. */
export const PRODUCT = "reachlog";

/** Name of the operator's API token, and of the token by which a scheduler starts runs. */
export const OPERATOR = "mara";
export const SCHEDULER = "scheduler";
