/** A click of a person, as a link shortener posts it. Each channel gets it. */
export const CLICK = {
  event: "click",
  domain: "go.example",
  short_code: "welcome",
  original_url: "https://shop.example/",
  user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
} as const;

/** Channels of a service with one network each for ads, team chat and messages. */
export const USUAL_CHANNELS = ["ads", "chat", "messaging"] as const;
export type UsualChannel = (typeof USUAL_CHANNELS)[number];
