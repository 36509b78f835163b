/** What each scope lets the app do, as the consent page tells it. */
export const SCOPES: Readonly<Record<string, string>> = {
  "tweet.read": "See posts, also of protected accounts you can view",
  "tweet.write": "Post for you",
  "users.read": "See any account you can view",
  "follows.read": "See whom you follow and who follows you",
  "list.read": "See lists, also your private ones",
  "dm.read": "Read your direct messages",
  "dm.write": "Send direct messages for you",
  "offline.access": "Stay connected until you revoke it",
};
