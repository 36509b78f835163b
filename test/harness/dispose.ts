import { afterEach } from "bun:test";

/** Returns a function that registers a resource for disposal after the present test, and returns the resource. */
export function disposedAfterEach(): <Resource extends AsyncDisposable>(resource: Resource) => Resource {
  let stack = new AsyncDisposableStack();
  afterEach(async () => {
    const used = stack;
    stack = new AsyncDisposableStack();
    await used.disposeAsync();
  });
  return (resource) => stack.use(resource);
}
