/** A person's click, as a shortener posts it. Not a bot's, so each channel gets it. */
export const CLICK = {
  event: "click",
  domain: "go.example",
  short_code: "welcome",
  original_url: "https://shop.example/",
  user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
} as const;
