/** Preloaded: a runtime whose faults repeat all that they were given, and that throws on SIGUSR2 out of any order. */
function repeating(url: string, init: RequestInit): Error {
  const told = `${url} ${JSON.stringify([...new Headers(init.headers)])} ${JSON.stringify(init.body)}`;
  const cause = new Error(`the request was ${told}`);
  return Object.assign(new TypeError(`cannot fetch ${told}`, { cause }), { url, init, told });
}

// oxlint-disable-next-line no-restricted-properties -- what is replaced is what the service calls
globalThis.fetch = Object.assign((url: string, init: RequestInit = {}) => Promise.reject(repeating(url, init)), {
  preconnect: () => {},
}) as typeof fetch;

process.on("SIGUSR2", () => {
  throw new Error("thrown on purpose");
});
