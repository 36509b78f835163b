import { afterEach } from "bun:test";

/** Answers a function that lets each test dispose what it was given, and passes it on. */
export function disposedAfterEach(): <Resource extends AsyncDisposable>(resource: Resource) => Resource {
  let stack = new AsyncDisposableStack();
  afterEach(async () => {
    const used = stack;
    stack = new AsyncDisposableStack();
    await used.disposeAsync();
  });
  return (resource) => stack.use(resource);
}
