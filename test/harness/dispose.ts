import { afterEach } from "bun:test";

/** Returns a function that passes on a resource and disposes it after the test. */
export function disposedAfterEach(): <Resource extends AsyncDisposable>(resource: Resource) => Resource {
  let stack = new AsyncDisposableStack();
  afterEach(async () => {
    const used = stack;
    stack = new AsyncDisposableStack();
    await used.disposeAsync();
  });
  return (resource) => stack.use(resource);
}
